//! `cuzk demo`: the whole way, on the bundled sector, from an empty cache.

use cuzk_core::ProofRequest;
use cuzk_core::job::JobOptions;
use cuzk_core::kinds::{CircuitId, ProofKind, SectorSize};

use super::Context;
use super::params::ensure_parameters;
use super::prove::{Order, prove};
use crate::args::Demo;
use crate::failure::Failure;

/// The seed of the demo's parameters, which is as good as any other.
const SEED: u64 = 0;

pub(crate) fn run(context: &Context, args: &Demo) -> Result<(), Failure> {
    let request = bundled_request(args.kind)?;
    let circuit = CircuitId {
        kind: args.kind,
        sector_size: SectorSize::KiB2,
    };
    ensure_parameters(context, circuit, SEED, false)?;
    let order = Order {
        request,
        out: args.out.clone(),
        options: JobOptions::default(),
    };
    prove(context, &[order], args.timeline.as_ref())
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
