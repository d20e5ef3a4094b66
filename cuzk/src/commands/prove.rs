//! `cuzk prove --request FILE --out PROOF`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_core::job::{JobHandle, ProofOutput};
use cuzk_core::timeline::Span;
use cuzk_core::{Engine, ProofRequest};
use serde::Serialize;

use super::{Context, read_request, write};
use crate::args::Prove;
use crate::failure::Failure;
use crate::memory::peak_rss_bytes;
use crate::{output, progress};

/// How often the progress line looks at the job.
const POLL: Duration = Duration::from_millis(100);

/// What proving a request came to.
#[derive(Debug, Serialize)]
pub(crate) struct ProveReport {
    kind: String,
    sector_size: String,
    partitions: usize,
    proof_bytes: usize,
    verified: bool,
    prove_s: f64,
    peak_rss_bytes: Option<u64>,
    timeline: Vec<Span>,
}

pub(crate) fn run(context: &Context, args: &Prove) -> Result<(), Failure> {
    let request = read_request(&args.request)?;
    prove(context, &request, Some(&args.out))
}

/// Proves `request`, keeps the proof in `out` and prints the report.
pub(crate) fn prove(
    context: &Context,
    request: &ProofRequest,
    out: Option<&Path>,
) -> Result<(), Failure> {
    let engine = Engine::start(context.config.clone())?;
    let started = Instant::now();
    let job = engine.submit(request)?;
    let proof = wait(&job)?;
    let prove_s = started.elapsed().as_secs_f64();
    let timeline = engine.timeline().of_job(job.number());
    engine.shutdown();
    if let Some(out) = out {
        write(out, proof.as_bytes())?;
    }
    let circuit = job.circuit();
    let report = ProveReport {
        kind: circuit.kind.to_string(),
        sector_size: circuit.sector_size.to_string(),
        partitions: proof.partitions(),
        proof_bytes: proof.as_bytes().len(),
        verified: true,
        prove_s,
        peak_rss_bytes: peak_rss_bytes(),
        timeline,
    };
    output::print(context.json, &report, text)
}

fn wait(job: &JobHandle) -> Result<Arc<ProofOutput>, Failure> {
    let spinner = progress::spinner("proving");
    let outcome = loop {
        if let Some(outcome) = job.wait_for(POLL) {
            break outcome;
        }
        let progress = job.progress();
        spinner.set_message(format!(
            "proving: {} of {} partitions done",
            progress.partitions_done, progress.partitions
        ));
    };
    spinner.finish_and_clear();
    Ok(outcome?)
}

fn text(report: &ProveReport) -> String {
    let mut lines = vec![format!(
        "{:<12} {:>9} {:>10} {:>10}",
        "stage", "partition", "start s", "length s"
    )];
    lines.extend(report.timeline.iter().map(|span| {
        format!(
            "{:<12} {:>9} {:>10.3} {:>10.3}",
            span.stage,
            span.partition
                .map_or_else(|| "-".to_owned(), |partition| partition.to_string()),
            span.start.as_secs_f64(),
            span.length().as_secs_f64(),
        )
    }));
    lines.push(format!(
        "{} {}: a proof of {} bytes, {} partition(s), verified, in {:.1} s{}",
        report.kind,
        report.sector_size,
        report.proof_bytes,
        report.partitions,
        report.prove_s,
        report
            .peak_rss_bytes
            .map_or_else(String::new, |bytes| format!(
                ", peak memory {} MiB",
                bytes >> 20
            )),
    ));
    lines.join("\n")
}
