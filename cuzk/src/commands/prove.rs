//! `cuzk prove --request FILE --out PROOF`, as many of both as one likes: all are
//! submitted to one engine before the first is waited for.
//!
//! SIGINT or SIGTERM stops what runs at its next chunk; see [`super::stopped`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::job::{JobHandle, JobOptions, Outcome, ProofOutput};
use cuzk_core::timeline::{DeviceUse, Span, Timeline, device_use};
use cuzk_core::{Engine, ProofRequest};
use serde::Serialize;

use super::stopped::stop;
use super::timeline::TimelineFile;
use super::{Context, read_request, write};
use crate::args::Prove;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Signal};
use crate::memory::peak_rss_bytes;
use crate::{output, progress};

/// How often the progress line looks at the jobs, and for a signal.
const POLL: Duration = Duration::from_millis(100);

/// What proving a request came to.
#[derive(Debug, Serialize)]
struct ProveReport {
    kind: String,
    sector_size: String,
    partitions: usize,
    proof_bytes: usize,
    verified: bool,
    prove_s: f64,
    peak_rss_bytes: Option<u64>,
    timeline: Vec<Span>,
    /// Over all that this command proves.
    devices: Vec<DeviceUse>,
}

/// A request, where its proof goes, and how it is to be treated.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) request: ProofRequest,
    pub(crate) out: Option<PathBuf>,
    pub(crate) options: JobOptions,
}

pub(crate) fn run(context: &Context, args: &Prove) -> Result<(), Failure> {
    if args.request.len() != args.out.len() {
        return Err(Failure::input(format!(
            "--request is given {} time(s) and --out {}: each request needs an --out of its own",
            args.request.len(),
            args.out.len()
        )));
    }
    if !args.id.is_empty() && args.id.len() != args.request.len() {
        return Err(Failure::input(format!(
            "--id is given {} time(s) and --request {}: give one for each, or none",
            args.id.len(),
            args.request.len()
        )));
    }
    let ids = args.id.iter().cloned().map(Some);
    let ids = ids.chain(std::iter::repeat(None));
    let orders: Vec<_> = (args.request.iter().zip(&args.out).zip(ids))
        .map(|((request, out), id)| {
            let options = JobOptions {
                id,
                priority: args.priority,
                deadline: args.deadline_s.map(Duration::from_secs),
            };
            Ok(Order {
                request: read_request(request)?,
                out: Some(out.clone()),
                options,
            })
        })
        .collect::<Result<_, Failure>>()?;
    prove(context, &orders, args.timeline.as_ref())
}

/// A job that has ended, how, and how long after the first was submitted.
struct Ended<'a> {
    job: &'a JobHandle,
    out: Option<&'a Path>,
    outcome: Outcome,
    prove_s: f64,
}

/// Proves what is ordered, keeps the proofs, prints a report each, and writes the
/// timeline of all. What is proved is kept even if something else fails.
pub(crate) fn prove(
    context: &Context,
    orders: &[Order],
    timeline_file: Option<&TimelineFile>,
) -> Result<(), Failure> {
    let interrupt = Interrupt::watch()?;
    let engine = Engine::start(context.config.clone())?;
    let started = Instant::now();
    let jobs: Vec<_> = (orders.iter())
        .map(|order| engine.submit_with(&order.request, order.options.clone()))
        .collect::<Result<_, _>>()?;
    let outcomes = match wait(&jobs, started, &interrupt)? {
        Waited::All(outcomes) => outcomes,
        Waited::Until(signal) => {
            let failure = stop(context, engine, &jobs, orders, timeline_file, signal);
            return Err(failure);
        }
    };
    let timeline = engine.timeline().clone();
    engine.shutdown();
    let spans = timeline.spans();
    if let Some(file) = timeline_file {
        file.write(&spans, &title(&jobs))?;
    }
    let devices = device_use(&spans);
    let ended = jobs.iter().zip(orders).zip(outcomes);
    let reports = ended.map(|((job, order), (outcome, prove_s))| {
        let ended = Ended {
            job,
            out: order.out.as_deref(),
            outcome,
            prove_s,
        };
        keep_and_print(context, &ended, &timeline, &devices)
    });
    // Each is kept before the first failure is looked at.
    reports.collect::<Vec<_>>().into_iter().collect()
}

fn keep_and_print(
    context: &Context,
    ended: &Ended<'_>,
    timeline: &Timeline,
    devices: &[DeviceUse],
) -> Result<(), Failure> {
    let proof: &ProofOutput = match &ended.outcome {
        Ok(proof) => proof,
        Err(error) => return Err(Arc::clone(error).into()),
    };
    if let Some(out) = ended.out {
        write(out, proof.as_bytes())?;
    }
    let circuit = ended.job.circuit();
    let report = ProveReport {
        kind: circuit.kind.to_string(),
        sector_size: circuit.sector_size.to_string(),
        partitions: proof.partitions(),
        proof_bytes: proof.as_bytes().len(),
        verified: true,
        prove_s: ended.prove_s,
        peak_rss_bytes: peak_rss_bytes(),
        timeline: timeline.of_job(ended.job.number()),
        devices: devices.to_vec(),
    };
    output::print(context.json, &report, text)
}

/// What waiting came to.
enum Waited {
    /// How each ended, and after how many seconds.
    All(Vec<(Outcome, f64)>),
    /// A signal came first.
    Until(Signal),
}

/// Waits for all, or for a signal.
fn wait(jobs: &[JobHandle], started: Instant, interrupt: &Interrupt) -> Result<Waited, Failure> {
    let spinner = progress::spinner("proving");
    // Not looked at when a signal comes, and so not waited for.
    let each = |job: &JobHandle| {
        let job = job.clone();
        thread::spawn(move || (job.wait(), started.elapsed().as_secs_f64()))
    };
    let waiting: Vec<_> = jobs.iter().map(each).collect();
    for job in jobs {
        while job.wait_for(POLL).is_none() {
            if let Some(signal) = interrupt.signal() {
                spinner.finish_and_clear();
                return Ok(Waited::Until(signal));
            }
            let (done, partitions) = progress_of(jobs);
            spinner.set_message(format!("proving: {done} of {partitions} partitions done"));
        }
    }
    spinner.finish_and_clear();
    let joined = waiting.into_iter().map(|waiting| waiting.join());
    let outcomes = joined.collect::<Result<_, _>>();
    outcomes
        .map(Waited::All)
        .map_err(|_| Failure::failed("waiting for a proof panicked; please report it"))
}

/// Partitions done and partitions, of all jobs.
fn progress_of(jobs: &[JobHandle]) -> (usize, usize) {
    let each = jobs.iter().map(JobHandle::progress);
    each.fold((0, 0), |(done, all), progress| {
        (done + progress.partitions_done, all + progress.partitions)
    })
}

/// What a timeline of these jobs is headed.
pub(super) fn title(jobs: &[JobHandle]) -> String {
    let mut circuits: Vec<_> = jobs.iter().map(|job| job.circuit().to_string()).collect();
    circuits.dedup();
    format!("cuzk prove: {}", circuits.join(", "))
}

fn text(report: &ProveReport) -> String {
    let mut lines = vec![format!(
        "{:<15} {:>9} {:>10} {:>10}  {}",
        "stage", "partition", "start s", "length s", "thread"
    )];
    lines.extend(report.timeline.iter().map(|span| {
        format!(
            "{:<15} {:>9} {:>10.3} {:>10.3}  {}",
            span.stage,
            span.partition
                .map_or_else(|| "-".to_owned(), |partition| partition.to_string()),
            span.start.as_secs_f64(),
            span.length().as_secs_f64(),
            span.lane,
        )
    }));
    lines.extend(report.devices.iter().map(DeviceUse::to_string));
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
