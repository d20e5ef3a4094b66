//! The time that the daemon adds to a job.
//!
//! A proof takes much longer than all that is added to it, and its own time varies by more.
//! So the time outside of the engine's job is compared, too. It is the time from the call
//! to its proof, without the time from the acceptance of the job to its end. Both engines
//! measure that in the same way.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cuzk_core::engine::devices;
use cuzk_core::job::JobOptions;
use cuzk_core::{Config, Engine};
use cuzk_filecoin::ProofKind;
use cuzk_server::wire::v1::SubmitProofRequest;
use cuzk_tune::machine::Host;
use serde::Serialize;

use super::daemon::Daemon;
use super::{config_with_journal, requests};
use crate::bench::args::Bench;
use crate::bench::comparison::median;
use crate::commands::{Context, for_one_command};
use crate::failure::Failure;
use crate::output;
use crate::progress::Doing;

/// The seconds of one job.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// From the call to the proof.
    whole_s: f64,
    /// The part of it that is not the engine's job.
    outside_s: f64,
}

/// A job through the daemon, and one of the embedded engine beside it.
#[derive(Clone, Copy, Debug, Serialize)]
struct Pair {
    daemon: Sample,
    embedded: Sample,
}

#[derive(Debug, Serialize)]
struct Report {
    stage: &'static str,
    kind: &'static str,
    request_bytes: usize,
    machine: Host,
    threads: usize,
    /// Medians.
    daemon_s: f64,
    embedded_s: f64,
    /// The median of the differences within pairs.
    pairs_differ_ms: f64,
    outside_daemon_ms: f64,
    outside_embedded_ms: f64,
    /// The difference of the two medians outside of the job.
    added_ms: f64,
    target_ms: f64,
    pairs: Vec<Pair>,
}

/// One request on both sides.
struct Case {
    kind: ProofKind,
    request: SubmitProofRequest,
    target_ms: f64,
}

impl Case {
    fn of(kind: ProofKind) -> Result<Self, Failure> {
        let (request, target_ms) = match kind {
            ProofKind::Porep => (requests::large_porep()?, 150.0),
            other => (requests::bundled(other)?, 2.0),
        };
        Ok(Self {
            kind,
            request,
            target_ms,
        })
    }
}

pub(super) fn run(
    context: &Context,
    args: &Bench,
    host: &Host,
    folder: &Path,
    kinds: &[ProofKind],
) -> Result<(), Failure> {
    let doing = Doing::begin("starting a daemon and an engine");
    let embedded = embedded(&config_with_journal(context, folder, "embedded.redb"))?;
    let config = config_with_journal(context, folder, "daemon.redb");
    let daemon = Daemon::start(config, folder)?;
    for (at, &kind) in kinds.iter().enumerate() {
        let case = &Case::of(kind)?;
        let input = requests::input(&case.request);
        let mut pairs = Vec::new();
        for run in 0..=args.runs {
            doing.now(&format!("{}: run {run} of {}", case.kind, args.runs));
            let pair = pair(&daemon, &embedded, case, &input, run)?;
            // The first loads everything.
            if run > 0 {
                pairs.push(pair);
            }
        }
        let report = report(case, host, input.len(), pairs);
        // The machine of all figures is named once, and with JSON in each object.
        let text = |report: &Report| match at {
            0 => format!("{}\n{}", report.machine, text(report)),
            _ => text(report),
        };
        doing.suspend(|| output::print(context.json, &report, text))?;
    }
    drop(doing);
    embedded.shutdown();
    Ok(())
}

/// Starts an engine as the daemon does, in this process.
fn embedded(config: &Config) -> Result<Engine, Failure> {
    let config = config.beside_requests().map_err(cuzk_core::Error::from)?;
    let pool = Arc::new(config.synthesis.pool().map_err(cuzk_core::Error::from)?);
    let devices = devices(&config, &pool)?;
    let decoder = cuzk_server::decoder();
    Ok(for_one_command(Engine::start_with(
        config, pool, devices, decoder,
    )?))
}

/// Measures both sides. They take turns in being first.
fn pair(
    daemon: &Daemon,
    embedded: &Engine,
    case: &Case,
    input: &[u8],
    run: u32,
) -> Result<Pair, Failure> {
    let id = format!("{}-{run}", case.kind);
    let through = || through_daemon(daemon, &case.request, &id);
    let within = || in_process(embedded, input, &id, case.kind);
    let (first, second) = if run.is_multiple_of(2) {
        let first = through()?;
        (first, within()?)
    } else {
        let second = within()?;
        (through()?, second)
    };
    Ok(Pair {
        daemon: first,
        embedded: second,
    })
}

fn through_daemon(
    daemon: &Daemon,
    request: &SubmitProofRequest,
    id: &str,
) -> Result<Sample, Failure> {
    let mut request = request.clone();
    // Another name is another job.
    id.clone_into(&mut request.request_id);
    let called = Instant::now();
    let response = daemon.prove(request)?;
    let whole_s = called.elapsed().as_secs_f64();
    Ok(Sample {
        whole_s,
        outside_s: whole_s - daemon.job_s(&response.job_id)?,
    })
}

fn in_process(engine: &Engine, input: &[u8], id: &str, kind: ProofKind) -> Result<Sample, Failure> {
    let options = JobOptions {
        waits: matches!(kind, ProofKind::Porep | ProofKind::SnapDeals),
        id: Some(id.to_owned()),
        ..JobOptions::default()
    };
    let called = Instant::now();
    let job = engine.submit_bytes(input, options)?;
    job.wait()?;
    let whole_s = called.elapsed().as_secs_f64();
    Ok(Sample {
        whole_s,
        outside_s: whole_s - job.times().total.as_secs_f64(),
    })
}

fn report(case: &Case, host: &Host, request_bytes: usize, pairs: Vec<Pair>) -> Report {
    let of = |value: fn(&Pair) -> f64| median(pairs.iter().map(value).collect());
    let outside_daemon_ms = 1e3 * of(|pair| pair.daemon.outside_s);
    let outside_embedded_ms = 1e3 * of(|pair| pair.embedded.outside_s);
    Report {
        stage: "server",
        kind: case.kind.name(),
        request_bytes,
        machine: host.clone(),
        threads: rayon::current_num_threads(),
        daemon_s: of(|pair| pair.daemon.whole_s),
        embedded_s: of(|pair| pair.embedded.whole_s),
        pairs_differ_ms: 1e3 * of(|pair| pair.daemon.whole_s - pair.embedded.whole_s),
        outside_daemon_ms,
        outside_embedded_ms,
        added_ms: outside_daemon_ms - outside_embedded_ms,
        target_ms: case.target_ms,
        pairs,
    }
}

fn text(report: &Report) -> String {
    let lines = [
        format!(
            "server {}, {} bytes, {} thread(s): {:.3} s through the daemon, embedded engine {:.3} s",
            report.kind, report.request_bytes, report.threads, report.daemon_s, report.embedded_s
        ),
        format!(
            "  the median difference within {} pairs: {:.1} ms",
            report.pairs.len(),
            report.pairs_differ_ms
        ),
        format!(
            "  outside of the job: {:.2} ms and {:.2} ms; the daemon adds {:.2} ms, target {} ms",
            report.outside_daemon_ms, report.outside_embedded_ms, report.added_ms, report.target_ms
        ),
    ];
    lines.join("\n")
}
