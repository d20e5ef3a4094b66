//! `cuzk bench STAGE`: ours and a peer, alternating, in one run.
//!
//! Not a test: nothing here passes or fails by a time. The invariant: both
//! sides get the same input, and where both give the same their results are compared
//! before anything is measured. (Proofs and parameters have randomness in them:
//! tests compare those with the peer's, with it fixed, and an engine verifies its
//! proofs.)

mod circuit;
mod device;
mod double;
mod engine;
mod eval;
mod interventions;
mod kernel;

use std::time::Instant;

use cuzk_core::Config;
use serde::Serialize;

use crate::args::{Bench, BenchStage};
use crate::commands::Context;
use crate::failure::Failure;
use crate::output;

/// One peer's line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Comparison {
    stage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The circuit's sector size, or the length of the vectors.
    size: String,
    threads: usize,
    ours_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    /// How many times as fast as with the first number of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_bytes: Option<u64>,
}

impl Comparison {
    /// A stage that no peer has.
    fn alone(stage: &'static str, size: String, seconds: Vec<f64>) -> Self {
        Self {
            stage,
            size,
            threads: rayon::current_num_threads(),
            ours_s: median(seconds),
            ..Self::default()
        }
    }
}

/// The medians of alternating runs, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medians {
    pub(crate) ours_s: f64,
    pub(crate) peer_s: f64,
}

impl Medians {
    fn into_comparison(self, stage: &'static str, size: String, peer: &'static str) -> Comparison {
        Comparison {
            stage,
            size,
            threads: rayon::current_num_threads(),
            ours_s: self.ours_s,
            peer: Some(peer),
            peer_s: Some(self.peer_s),
            ratio: Some(self.peer_s / self.ours_s),
            ..Comparison::default()
        }
    }
}

pub(crate) fn run(context: &Context, args: &Bench) -> Result<(), Failure> {
    if args.svg.is_some() && args.stage != BenchStage::Interventions {
        let problem = "--svg: only `cuzk bench interventions` draws what it measured";
        return Err(Failure::input(problem));
    }
    let mut first: Vec<f64> = Vec::new();
    for &threads in &args.threads {
        let mut comparisons = measure(context, args, threads)?;
        for (comparison, first_s) in comparisons.iter_mut().zip(&first) {
            comparison.scaling = Some(first_s / comparison.ours_s);
        }
        if first.is_empty() {
            first = comparisons.iter().map(|line| line.ours_s).collect();
        }
        for comparison in &comparisons {
            output::print(context.json, comparison, text)?;
        }
    }
    Ok(())
}

/// Returns the configuration of a measured engine, with as many threads as the current
/// pool. The engine uses existing multiples and makes none: that would slow the peer.
fn engine_config(context: &Context) -> Config {
    let mut config = context.config.clone();
    config.synthesis.threads = rayon::current_num_threads();
    config.srs.multiples = Vec::new();
    config
}

fn measure(context: &Context, args: &Bench, threads: usize) -> Result<Vec<Comparison>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let isa = context.config.cpu.isa;
    pool.install(|| match args.stage {
        BenchStage::Pce => circuit::pce(args),
        BenchStage::Witness => circuit::witness(isa, args),
        BenchStage::Eval => eval::eval(context, args),
        BenchStage::Params => circuit::params(isa, args),
        BenchStage::Prove => circuit::prove(context, args),
        BenchStage::Engine => engine::engine(context, args),
        BenchStage::Device => device::of_kind(context, args),
        BenchStage::DeviceShape => device::of_size(context, args),
        BenchStage::DeviceLoad => device::load(context, args),
        BenchStage::Ntt => kernel::ntt(isa, args),
        BenchStage::MsmG1 => kernel::msm_g1(isa, args),
        BenchStage::MsmG2 => kernel::msm_g2(isa, args),
        BenchStage::SumG1 => kernel::sum_g1(isa, args),
        // Arms instead of a peer, so it prints by itself.
        BenchStage::Interventions => interventions::run(context, args).map(|()| Vec::new()),
    })
}

/// Runs both sides `runs` times, alternating, and takes the medians.
pub(crate) fn alternate<A, B>(
    runs: u32,
    mut ours: impl FnMut() -> Result<A, Failure>,
    mut peer: impl FnMut() -> Result<B, Failure>,
) -> Result<Medians, Failure> {
    let (mut ours_s, mut peer_s) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        ours_s.push(seconds(&mut ours)?);
        peer_s.push(seconds(&mut peer)?);
    }
    Ok(Medians {
        ours_s: median(ours_s),
        peer_s: median(peer_s),
    })
}

/// How long `work` takes; its result is dropped after the clock has stopped.
pub(crate) fn seconds<T>(work: &mut impl FnMut() -> Result<T, Failure>) -> Result<f64, Failure> {
    let started = Instant::now();
    let result = work()?;
    let seconds = started.elapsed().as_secs_f64();
    drop(result);
    Ok(seconds)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    let (low, high) = (seconds[(seconds.len() - 1) / 2], seconds[seconds.len() / 2]);
    f64::midpoint(low, high)
}

fn bytes_text(comparison: &Comparison) -> Option<String> {
    let (ours_bytes, peer_bytes) = (comparison.ours_bytes?, comparison.peer_bytes?);
    Some(format!(", {ours_bytes} bytes to {peer_bytes}"))
}

/// The two sides disagree: nothing that follows would mean anything.
pub(crate) fn differs(stage: &str) -> Failure {
    Failure::failed(format!(
        "{stage}: the peer's result differs from ours; please report it"
    ))
}

fn text(comparison: &Comparison) -> String {
    let what = match &comparison.kind {
        Some(kind) => format!("{} {kind} {}", comparison.stage, comparison.size),
        None => format!("{} {}", comparison.stage, comparison.size),
    };
    let ours = format!(
        "{what}, {} thread(s): {:.3} s",
        comparison.threads, comparison.ours_s
    );
    let ours = match comparison.scaling {
        Some(scaling) => format!("{ours} (scaling {scaling:.2})"),
        None => ours,
    };
    match (comparison.peer, comparison.peer_s, comparison.ratio) {
        (Some(peer), Some(peer_s), Some(ratio)) => {
            let bytes = bytes_text(comparison).unwrap_or_default();
            format!("{ours}, {peer} {peer_s:.3} s, ratio {ratio:.2}{bytes}")
        }
        _ => match (
            comparison.peer,
            comparison.ours_bytes,
            comparison.peer_bytes,
        ) {
            (Some(peer), Some(ours_bytes), Some(peer_bytes)) => {
                format!("{ours}, {ours_bytes} bytes, {peer} {peer_bytes} bytes")
            }
            _ => ours,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_even_and_odd_counts() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
