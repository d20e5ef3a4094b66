//! `cuzk demo`: all steps from an empty cache to a proof, on the bundled sector.

use std::path::PathBuf;

use clap::Args;
use cuzk_core::ProofRequest;
use cuzk_core::job::JobOptions;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_memory::Cancellation;

use super::Context;
use super::params::{Wanted, ensure_wanted, left_of};
use super::prove::{Order, Shown, prove};
use crate::failure::Failure;
use crate::failure_report::Failures;
use crate::interrupt::Interrupt;
use crate::output_path::OutputPath;
use crate::timeline::{Drawing, TimelineFile};

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The kind of proof: porep, winning-post, window-post or snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(crate) kind: ProofKind,
    /// Keep the proof in FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the times of all stages into FILE: .svg is a waterfall with the devices'
    /// idle gaps, .json a trace for Perfetto.
    #[arg(long, value_name = "FILE", value_parser = TimelineFile::parser())]
    pub(crate) timeline: Option<TimelineFile>,
}

pub(crate) fn run(context: &Context, args: &Demo) -> Result<(), Failure> {
    let out = args.out.as_deref().map(OutputPath::new).transpose()?;
    let drawing = args.timeline.as_ref().map(Drawing::new).transpose()?;
    let outs = out.iter().chain(drawing.as_ref().map(Drawing::out));
    OutputPath::check_distinct(outs.clone())?;
    OutputPath::check_no_input(outs, [])?;
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
    let failures = Failures::new(context.json);
    let shown = Shown {
        drawing: drawing.as_ref(),
        verbose: true,
    };
    let proved = prove(context, &[order], shown, &interrupt, failures);
    // The parameters are by far the largest files that a demo leaves.
    let left = || left_of(circuit, &context.config.srs.param_cache);
    match interrupt.signal() {
        Some(_) => proved.map_err(|failure| failure.and(left())),
        None => proved,
    }
}

/// Makes the parameters unless they are there, or a signal comes.
fn make_parameters(
    context: &Context,
    circuit: CircuitId,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let folder = context.config.srs.param_cache.clone();
    let left = move || format!("{}; nothing is proved", left_of(circuit, &folder));
    let context = context.clone();
    let stop = Cancellation::default();
    let wanted = Wanted {
        seed: None,
        acknowledge_insecure: false,
        stop: stop.clone(),
    };
    let made = interrupt.stops("making parameters", left, &stop, move || {
        ensure_wanted(&context, circuit, &wanted)
    })?;
    made.map(drop)
}

/// Returns a request for a proof of the bundled 2 KiB sector.
pub(crate) fn bundled_request(kind: ProofKind) -> Result<ProofRequest, Failure> {
    Ok(ProofRequest::from_json(bundled_json(kind))?)
}

/// Returns the file of the same request.
pub(crate) fn bundled_json(kind: ProofKind) -> &'static [u8] {
    match kind {
        ProofKind::Porep => include_bytes!("../../data/porep.json"),
        ProofKind::WinningPost => include_bytes!("../../data/winning-post.json"),
        ProofKind::WindowPost => include_bytes!("../../data/window-post.json"),
        ProofKind::SnapDeals => include_bytes!("../../data/snap-deals.json"),
    }
}
