//! WinningPoSts of a daemon: alone, and while a flood of other clients calls it.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cuzk_filecoin::ProofKind;
use cuzk_server::wire::v1::SubmitProofRequest;
use cuzk_tune::machine::Host;
use serde::Serialize;

use super::daemon::Daemon;
use super::{config_with_journal, requests, senders};
use crate::bench::args::Bench;
use crate::bench::comparison::median;
use crate::commands::Context;
use crate::failure::{Failure, failed};
use crate::output;
use crate::progress::Doing;

/// PoReps that wait or run while the flood is on, beside one for each run, which may end
/// meanwhile.
const QUEUED: u64 = 20;

/// The time for which the flood is on before anything is measured.
const RISE: Duration = Duration::from_secs(15);

/// That time before a single run. One run shows that the flood works, and is no measurement.
const RISE_OF_ONE: Duration = Duration::from_secs(1);

/// The pause between two WinningPoSts, in which PoReps go on.
const PAUSE: Duration = Duration::from_millis(200);

/// The latencies of WinningPoSts in milliseconds.
#[derive(Debug, Serialize)]
struct Latencies {
    median_ms: f64,
    p99_ms: f64,
    highest_ms: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    stage: &'static str,
    machine: Host,
    threads: usize,
    runs: u32,
    alone: Latencies,
    flooded: Latencies,
    /// Flooded by alone.
    p99_ratio: f64,
    median_ratio: f64,
    p99_ratio_target: f64,
    /// PoReps proved beside them.
    poreps: u64,
    resident_peak_bytes: u64,
    /// `memory.total_budget`.
    budget_bytes: u64,
}

pub(super) fn run(
    context: &Context,
    args: &Bench,
    host: &Host,
    folder: &Path,
) -> Result<(), Failure> {
    let doing = Doing::begin("starting a daemon");
    let config = config_with_journal(context, folder, "daemon.redb");
    let budget_bytes = config.memory.total_budget_bytes;
    let daemon = Daemon::start(config, folder)?;
    let mut number = 0;
    // The first loads everything.
    measure(&daemon, 1, &mut number)?;
    doing.now("measuring alone");
    let alone = measure(&daemon, args.runs, &mut number)?;
    doing.now("measuring under the flood");
    // Before the flood, in which each request waits for many others. A submission takes 20 s there.
    let submitted = QUEUED + u64::from(args.runs);
    submit_poreps(&daemon, submitted)?;
    let flood = Flood::start(daemon.socket())?;
    std::thread::sleep(if args.runs > 1 { RISE } else { RISE_OF_ONE });
    let flooded = measure(&daemon, args.runs, &mut number)?;
    drop(flood);
    let (alone, flooded) = (latencies(alone), latencies(flooded));
    let report = Report {
        stage: "server-flood",
        machine: host.clone(),
        threads: rayon::current_num_threads(),
        runs: args.runs,
        p99_ratio: flooded.p99_ms / alone.p99_ms,
        median_ratio: flooded.median_ms / alone.median_ms,
        p99_ratio_target: 1.1,
        alone,
        flooded,
        poreps: submitted - daemon.jobs_left("porep-c2")?,
        resident_peak_bytes: daemon.peak_bytes()?,
        budget_bytes,
    };
    drop(doing);
    output::print(context.json, &report, text)
}

/// Returns the seconds of so many WinningPoSts, one after the other.
fn measure(daemon: &Daemon, runs: u32, number: &mut u64) -> Result<Vec<f64>, Failure> {
    let request = requests::bundled(ProofKind::WinningPost)?;
    let mut seconds = Vec::new();
    for _ in 0..runs {
        std::thread::sleep(PAUSE);
        *number += 1;
        let request = SubmitProofRequest {
            request_id: format!("winning-{number}"),
            ..request.clone()
        };
        let called = Instant::now();
        daemon.prove(request)?;
        seconds.push(called.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Submits so many PoReps, and waits for none.
fn submit_poreps(daemon: &Daemon, jobs: u64) -> Result<(), Failure> {
    let request = requests::bundled(ProofKind::Porep)?;
    for number in 0..jobs {
        daemon.submit(SubmitProofRequest {
            request_id: format!("porep-{number}"),
            ..request.clone()
        })?;
    }
    Ok(())
}

/// The process that sends. Dropped, it ends.
struct Flood(Child);

impl Flood {
    fn start(socket: &Path) -> Result<Self, Failure> {
        let mut child = Command::new("nice")
            .args(["-n", "19"])
            .arg(std::env::current_exe().map_err(failed)?)
            .args(["bench", "server", "--flood", "--child"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let line = format!("{}\n", socket.display());
        if let Some(input) = &mut child.stdin {
            input.write_all(line.as_bytes()).map_err(failed)?;
        }
        Ok(Self(child))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn latencies(mut seconds: Vec<f64>) -> Latencies {
    seconds.sort_by(f64::total_cmp);
    let last = seconds.len() - 1;
    Latencies {
        p99_ms: 1e3 * seconds[(seconds.len() * 99).div_ceil(100) - 1],
        highest_ms: 1e3 * seconds[last],
        median_ms: 1e3 * median(seconds),
    }
}

fn text(report: &Report) -> String {
    let line = |name: &str, latencies: &Latencies| {
        format!(
            "  {name}: median {:.0} ms, 99th percentile {:.0} ms, highest {:.0} ms",
            latencies.median_ms, latencies.p99_ms, latencies.highest_ms
        )
    };
    let lines = [
        report.machine.to_string(),
        format!(
            "server winning-post under a flood, {} runs each, {} thread(s)",
            report.runs, report.threads
        ),
        line("alone", &report.alone),
        line("flooded", &report.flooded),
        format!(
            "  99th percentile by that alone: {:.2}, target {}; medians {:.2}",
            report.p99_ratio, report.p99_ratio_target, report.median_ratio
        ),
        format!(
            "  {} clients sent 200 MiB requests; {} PoReps were proved beside them",
            senders::LARGE,
            report.poreps
        ),
        format!(
            "  resident memory at most {} MiB; total_budget is {} MiB",
            report.resident_peak_bytes >> 20,
            report.budget_bytes >> 20
        ),
    ];
    lines.join("\n")
}
