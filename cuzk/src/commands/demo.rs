//! `cuzk demo`: the whole way, on the bundled sector, from an empty cache.

use cuzk_core::ProofRequest;
use cuzk_core::job::JobOptions;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

use super::Context;
use super::params::ensure_parameters;
use super::prove::{Order, prove};
use crate::args::Demo;
use crate::failure::{Failure, Said};
use crate::interrupt::Interrupt;
use crate::place::Place;
use crate::timeline::Drawing;

/// The seed of the demo's parameters, which is as good as any other.
const SEED: u64 = 0;

pub(crate) fn run(context: &Context, args: &Demo) -> Result<(), Failure> {
    let out = args.out.as_deref().map(Place::new).transpose()?;
    let drawing = args.timeline.as_ref().map(Drawing::new).transpose()?;
    Place::check_distinct(out.iter().chain(drawing.as_ref().map(Drawing::place)))?;
    let request = bundled_request(args.kind)?;
    let circuit = CircuitId {
        kind: args.kind,
        sector_size: SectorSize::KiB2,
    };
    let interrupt = Interrupt::watch()?;
    make_parameters(context, circuit, &interrupt)?;
    let order = Order {
        path: None,
        request,
        out,
        options: JobOptions::default(),
    };
    let said = Said::new(context.json);
    prove(context, &[order], drawing.as_ref(), &interrupt, said)
}

/// Makes the parameters unless they are there, or a signal comes.
fn make_parameters(
    context: &Context,
    circuit: CircuitId,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let left = format!("{circuit}: its test parameters are not made, and nothing is kept");
    let context = context.clone();
    // A file that is unfinished when a signal comes is no file of the cache.
    let made = interrupt.unless_it_comes("making parameters", left, move || {
        ensure_parameters(&context, circuit, SEED, false)
    })?;
    made.map(drop)
}

/// A request for a proof of the bundled 2 KiB sector.
pub(crate) fn bundled_request(kind: ProofKind) -> Result<ProofRequest, Failure> {
    let json: &[u8] = match kind {
        ProofKind::Porep => include_bytes!("../../../data/sector-2kib/porep.json"),
        ProofKind::WinningPost => include_bytes!("../../../data/sector-2kib/winning-post.json"),
        ProofKind::WindowPost => include_bytes!("../../../data/sector-2kib/window-post.json"),
        ProofKind::SnapDeals => include_bytes!("../../../data/sector-2kib/snap-deals.json"),
    };
    Ok(ProofRequest::from_json(json)?)
}
