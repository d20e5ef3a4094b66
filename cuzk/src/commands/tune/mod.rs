//! `cuzk tune gpu-threads`: the MSM in G2 on several numbers of threads, beside the next
//! partition, and the line of the configuration that follows from it.
//!
//! It measures the work that the engine does on this machine with this configuration. One
//! side is the MSM of a bundled request's witness, by the kernel of `cuzk-kernels` on a
//! pool of its own. Every engine makes this MSM so, with a GPU or without one. The other
//! side is the work on the next partition, of the same request, on synthesis' pool. It is the
//! witness, the evaluation and the quotient. In an engine whose GPU evaluates it is the witness
//! alone. The bases are multiples of the generator, so no parameters are needed.
//!
//! The MSMs in G1 of the next partition are not measured. In a PoRep they begin after the MSM in
//! G2 has ended, because the quotient takes longer than it.
//!
//! The throttle stays down, whatever the configuration says. The time that a witness and
//! an evaluation give way is bounded. That bound hides the whole synthesis of a bundled
//! circuit and little of a full-size one's.

mod report;
mod work;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cuzk_filecoin::ProofKind;
use cuzk_tune::plot;
use cuzk_tune::sweep::thread_counts;

use self::report::{Report, lines, text};
use self::work::Work;
use super::Context;
use crate::failure::{Failure, failed};
use crate::output;
use crate::output_path::OutputPath;
use crate::progress::Doing;

#[derive(Debug, Subcommand)]
pub(crate) enum Tune {
    /// Find the best number of threads for the MSM in G2 beside the next partition.
    GpuThreads(TuneGpuThreads),
}

#[derive(Debug, Args)]
pub(crate) struct TuneGpuThreads {
    /// The kind whose bundled request is synthesised: porep, winning-post, window-post or
    /// snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(crate) kind: ProofKind,
    /// The number of rounds that the medians are taken over; every number of threads has
    /// its turn in each. With fewer than 5, only all cores are recommended.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Draw the measurements into FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

pub(crate) fn gpu_threads(context: &Context, args: &TuneGpuThreads) -> Result<(), Failure> {
    let svg = args.svg.as_deref().map(OutputPath::new).transpose()?;
    let doing = Doing::begin("getting the compiled circuit");
    let work = Work::new(context, args.kind)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    doing.now("measuring");
    let sweep = work.measure(&thread_counts(cores), args.rounds, |round| {
        doing.now(&format!("measuring: round {round} of {}", args.rounds));
    })?;
    drop(doing);
    let report = Report::new(&work, &sweep, args.rounds, cores)
        .ok_or_else(|| Failure::failed("nothing was measured"))?;
    let printed = output::print_beside(
        svg.as_ref().is_some_and(OutputPath::is_stdout),
        context.json,
        &report,
        text,
    );
    // The report is useful without the drawing, and the drawing without the report.
    let drawn = svg.map_or(Ok(()), |svg| draw(&report, &svg));
    printed.and(drawn).map_err(Failure::reported)
}

fn draw(report: &Report, out: &OutputPath) -> Result<(), Failure> {
    let axes = ["gpu_threads", "seconds"];
    let svg = plot::svg("gpu_threads", axes, &lines(&report.rows)).map_err(failed)?;
    out.write(svg.as_bytes())
}
