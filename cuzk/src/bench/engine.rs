//! The engine around the kernels:
//!
//! * the wait of an urgent job;
//! * the cost of many jobs at once;
//! * the time that is spent neither on synthesis nor on proving;
//! * the idle time of a device that only waits.
//!
//! The peer is the same engine with one job at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_core::config::Devices;
use cuzk_core::engine::devices;
use cuzk_core::job::{JobHandle, JobOptions};
use cuzk_core::timeline::{Span, Stage, device_use};
use cuzk_core::{Config, Engine, ProofRequest};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};

use super::comparison::{Comparison, alternate, median, seconds};
use super::double::Double;
use crate::bench::args::Bench;
use crate::commands::demo::bundled_request;
use crate::commands::params::ensure_parameters;
use crate::commands::{Context, for_one_command};
use crate::failure::Failure;

/// The number of sectors that are being sealed when the urgent job comes.
const SEALING: usize = 20;

/// The number of jobs in flight at once.
const IN_FLIGHT: usize = 6;

/// The region of a device that only waits, and the number of these regions.
const REGION: Duration = Duration::from_millis(50);
const REGIONS: usize = 60;

/// Returns the configuration of a measured engine, with as many threads as the current
/// pool. The engine uses existing multiples and makes none: that would slow the peer.
pub(super) fn engine_config(context: &Context) -> Config {
    let mut config = context.config.clone();
    config.synthesis.threads = rayon::current_num_threads();
    config.srs.multiples = Vec::new();
    config
}

pub(crate) fn engine(context: &Context, args: &Bench) -> Result<Vec<Comparison>, Failure> {
    for kind in [ProofKind::Porep, ProofKind::WinningPost, args.kind()] {
        let id = CircuitId {
            kind,
            sector_size: SectorSize::KiB2,
        };
        ensure_parameters(context, id)?;
    }
    let engine = for_one_command(Engine::start(engine_config(context))?);
    let mut lines = urgent(&engine, args.runs)?;
    lines.push(many(&engine, args)?);
    lines.push(overhead(&engine, args)?);
    engine.shutdown();
    lines.push(idle(context)?);
    Ok(lines)
}

/// Measures a WinningPoSt alone, and one that comes while sectors are being sealed: the
/// time until its proof, and the time until its device region.
fn urgent(engine: &Engine, runs: u32) -> Result<Vec<Comparison>, Failure> {
    let winning = bundled_request(ProofKind::WinningPost)?;
    let porep = bundled_request(ProofKind::Porep)?;
    // Everything is loaded before anything is measured.
    engine.submit(&winning)?.wait()?;
    let mut regions = [Vec::new(), Vec::new()];
    let mut prove = |beside: usize| {
        let job = engine.submit(&winning)?;
        job.wait()?;
        regions[beside].push(until_device(engine, &job));
        Ok(())
    };
    let alone = seconds(&mut || prove(0)).and_then(|first| {
        let mut times = vec![first];
        for _ in 1..runs {
            times.push(seconds(&mut || prove(0))?);
        }
        Ok(median(times))
    })?;
    let mut beside = Vec::new();
    for _ in 0..runs {
        let sealing = (0..SEALING).map(|_| engine.submit(&porep));
        let sealing = sealing.collect::<Result<Vec<_>, _>>()?;
        wait_for_region(engine, &sealing[0]);
        beside.push(seconds(&mut || prove(1))?);
        for job in &sealing {
            job.cancel();
        }
        for job in &sealing {
            drop(job.wait());
        }
    }
    let [region_alone, region_beside] = regions.map(median);
    let line = |stage, ours_s, peer_s: f64| Comparison {
        stage,
        kind: Some(ProofKind::WinningPost.to_string()),
        size: format!("beside {SEALING} porep"),
        threads: rayon::current_num_threads(),
        ours_s,
        peer: Some("alone"),
        peer_s: Some(peer_s),
        ratio: Some(peer_s / ours_s),
        ..Comparison::default()
    };
    Ok(vec![
        line("urgent proof", median(beside), alone),
        line("urgent start", region_beside, region_alone),
    ])
}

/// Returns the seconds from the submission to the device's lock.
fn until_device(engine: &Engine, job: &JobHandle) -> f64 {
    let spans = engine.timeline().of_job(job.number());
    let start = spans.iter().map(|span| span.start).min();
    let region = spans.iter().find(|span| span.stage == Stage::Device);
    let wait = region
        .zip(start)
        .map(|(region, start)| region.start - start);
    wait.unwrap_or_default().as_secs_f64()
}

/// Waits until a partition of `job` is on the device.
fn wait_for_region(engine: &Engine, job: &JobHandle) {
    let locked = |span: &Span| span.stage == Stage::LockWait;
    while job.poll().is_none() && !engine.timeline().of_job(job.number()).iter().any(locked) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Measures many jobs in flight, against one after the other.
fn many(engine: &Engine, args: &Bench) -> Result<Comparison, Failure> {
    let request = bundled_request(args.kind())?;
    // Priority `normal` for every kind, because critical jobs run one after the other.
    let submit = |request: &ProofRequest| {
        let options = JobOptions {
            priority: Some(cuzk_core::scheduler::priority::Priority::Normal),
            ..JobOptions::default()
        };
        engine.submit_with(request, options)
    };
    submit(&request)?.wait()?;
    let at_once = || {
        let jobs = (0..IN_FLIGHT).map(|_| submit(&request));
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        for job in jobs {
            job.wait()?;
        }
        Ok(())
    };
    let in_turn = || {
        for _ in 0..IN_FLIGHT {
            submit(&request)?.wait()?;
        }
        Ok(())
    };
    let medians = alternate(args.runs, at_once, in_turn)?;
    let size = format!("{IN_FLIGHT} in flight");
    Ok(Comparison {
        kind: Some(args.kind().to_string()),
        ..medians.into_comparison("throughput", size, "one at a time")
    })
}

/// Measures the time of a proof that is none of decoding, synthesis, proving and
/// verifying.
fn overhead(engine: &Engine, args: &Bench) -> Result<Comparison, Failure> {
    let request = bundled_request(args.kind())?;
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let started = Instant::now();
        let job = engine.submit(&request)?;
        job.wait()?;
        let total = started.elapsed();
        let working = working(&engine.timeline().of_job(job.number()));
        whole.push(total.as_secs_f64());
        rest.push(total.saturating_sub(working).as_secs_f64());
    }
    let (whole_s, rest_s) = (median(whole), median(rest));
    Ok(Comparison {
        stage: "overhead",
        kind: Some(args.kind().to_string()),
        size: format!("{:.2} % of the proof", 100.0 * rest_s / whole_s),
        threads: rayon::current_num_threads(),
        ours_s: rest_s,
        peer: Some("the whole proof"),
        peer_s: Some(whole_s),
        ..Comparison::default()
    })
}

/// Returns the time of all stages of work together. One partition is in one stage at a
/// time, so their durations add up.
fn working(spans: &[Span]) -> Duration {
    let part_of_another = [
        Stage::Quotient,
        Stage::Msm,
        Stage::BG2,
        Stage::Assemble,
        Stage::Verify,
    ];
    let work = spans.iter().filter(|span| {
        let stage = span.stage;
        !stage.is_wait() && stage != Stage::Dealloc && !part_of_another.contains(&stage)
    });
    work.map(Span::length).sum()
}

/// Measures how long the engine leaves a device idle. The device's region is a wait. Real
/// jobs are decoded, synthesized and verified beside it.
fn idle(context: &Context) -> Result<Comparison, Failure> {
    let kind = ProofKind::WindowPost;
    let id = CircuitId {
        kind,
        sector_size: SectorSize::KiB2,
    };
    ensure_parameters(context, id)?;
    let mut config = engine_config(context);
    config.gpus.devices = Devices::Cpu;
    let pool = Arc::new(config.synthesis.pool()?);
    let cpu = devices(&config, &pool)?;
    let devices = cpu
        .into_iter()
        .map(|cpu| Double::device(cpu, REGION, Duration::ZERO));
    let engine = for_one_command(Engine::start_on(config, pool, devices.collect())?);
    let request = bundled_request(kind)?;
    let first = engine.submit(&request)?;
    first.wait()?;
    let jobs = (0..REGIONS).map(|_| engine.submit(&request));
    for job in jobs.collect::<Result<Vec<_>, _>>()? {
        job.wait()?;
    }
    let mut spans = engine.timeline().spans();
    spans.retain(|span| span.job != Some(first.number()));
    let used = device_use(&spans);
    let [used] = &used[..] else {
        return Err(Failure::failed("there is one device"));
    };
    let gaps = used.longest_gaps(3).into_iter();
    let gaps: Vec<_> = gaps
        .map(|gap| format!("{:.1}", gap.length.as_secs_f64() * 1e3))
        .collect();
    Ok(Comparison {
        stage: "device",
        kind: Some(kind.to_string()),
        size: format!(
            "{REGIONS} regions of {} ms, {} gaps, the longest {} ms",
            REGION.as_millis(),
            used.gaps.len(),
            gaps.join(", ")
        ),
        threads: rayon::current_num_threads(),
        ours_s: used.total().as_secs_f64(),
        peer: Some("busy"),
        peer_s: Some(used.busy.as_secs_f64()),
        ratio: Some(used.utilisation()),
        ..Comparison::default()
    })
}
