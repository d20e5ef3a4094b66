//! One setting of the three keys, and the engine that runs with it.

use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::{Span, Stage};
use cuzk_core::{Config, Engine, ProofRequest};
use cuzk_memory::Dealloc;
use cuzk_tune::counters::Counters;
use serde::{Deserialize, Serialize};

use crate::bench::args::Bench;
use crate::bench::engine::engine_config;
use crate::commands::demo::bundled_request;
use crate::commands::{Context, for_one_command};
use crate::failure::{Failure, failed};
use crate::threads::none_left;

/// The number of proofs that each caller asks for, one after the other. It is large enough
/// that all callers have a proof in flight for most of the time.
const PROOFS_A_CALLER: usize = 2;

/// The keys of the interventions. The first arm has all of them off: vectors are unmapped at
/// once, the MSM in G2 has every core, and no work gives way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) dealloc: String,
    pub(super) gpu_threads: usize,
    pub(super) throttle: bool,
    /// Synthesis' threads.
    pub(super) threads: usize,
}

impl Arm {
    /// Returns the arms: all keys off, each key on alone, and all keys as in the
    /// configuration.
    pub(super) fn all(config: &Config, args: &Bench) -> Vec<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let off = Self {
            name: "all off".to_owned(),
            dealloc: Dealloc::Unbounded.as_str().to_owned(),
            gpu_threads: cores,
            throttle: false,
            threads: rayon::current_num_threads(),
        };
        let dealloc = |dealloc: Dealloc| Self {
            name: format!("dealloc = {}", dealloc.as_str()),
            dealloc: dealloc.as_str().to_owned(),
            ..off.clone()
        };
        let mut arms = vec![
            off.clone(),
            dealloc(Dealloc::Serial),
            dealloc(Dealloc::Recycle),
        ];
        let counts = match &args.gpu_threads[..] {
            [] => vec![(cores / 2).max(1)],
            counts => counts.to_vec(),
        };
        arms.extend(counts.into_iter().map(|gpu_threads| Self {
            name: format!("gpu_threads = {gpu_threads}"),
            gpu_threads,
            ..off.clone()
        }));
        arms.push(Self {
            name: "throttle = true".to_owned(),
            throttle: true,
            ..off.clone()
        });
        arms.push(Self {
            name: "as configured".to_owned(),
            dealloc: config.memory.dealloc.as_str().to_owned(),
            gpu_threads: config.gpus.gpu_threads,
            throttle: config.pipeline.throttle,
            ..off
        });
        arms
    }

    fn configure(&self, mut config: Config) -> Result<Config, Failure> {
        let named = |dealloc: &Dealloc| dealloc.as_str() == self.dealloc;
        let dealloc = Dealloc::ALL.into_iter().find(named);
        config.memory.dealloc = dealloc.ok_or_else(|| failed("no such dealloc"))?;
        config.gpus.gpu_threads = self.gpu_threads;
        config.pipeline.throttle = self.throttle;
        config.synthesis.threads = self.threads;
        Ok(config)
    }
}

/// The cost of one turn of an arm: seconds and counts, of one proof.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// The time of all proofs together, by their number.
    pub(super) proof_s: f64,
    pub(super) b_g2_s: f64,
    pub(super) witness_s: f64,
    pub(super) evaluate_s: f64,
    pub(super) device_s: f64,
    /// Processor time of the engine in the kernel.
    pub(super) system_s: f64,
    pub(super) page_faults: f64,
    /// The count of the whole machine, if the machine counts them.
    pub(super) tlb_shootdowns: Option<f64>,
}

/// An engine, and the request that it proves.
pub(super) struct Running {
    engine: Engine,
    request: ProofRequest,
    counters: Counters,
}

impl Running {
    /// Starts the engine of an arm and proves once, so that circuit and parameters are loaded.
    pub(super) fn start(arm: &Arm, context: &Context, args: &Bench) -> Result<Self, Failure> {
        let counters = Counters::open();
        let running = Self {
            engine: for_one_command(Engine::start(arm.configure(engine_config(context))?)?),
            request: bundled_request(args.kind())?,
            counters,
        };
        let most = args.in_flight.iter().copied().max().unwrap_or(1);
        running.prove(most, 1)?;
        Ok(running)
    }

    /// Measures proofs of `in_flight` callers, each of which has one proof in flight.
    pub(super) fn sample(&mut self, in_flight: usize) -> Result<Sample, Failure> {
        let mut counters = std::mem::replace(&mut self.counters, Counters::open());
        let started = Instant::now();
        let (proved, usage) = counters
            .count(|| self.prove(in_flight, PROOFS_A_CALLER))
            .map_err(failed)?;
        let whole = started.elapsed();
        self.counters = counters;
        let spans = proved?;
        let proofs = (in_flight * PROOFS_A_CALLER) as f64;
        let of = |stages: &[Stage]| {
            let spans = spans.iter().filter(|span| stages.contains(&span.stage));
            spans.map(Span::length).sum::<Duration>().as_secs_f64() / proofs
        };
        Ok(Sample {
            proof_s: whole.as_secs_f64() / proofs,
            b_g2_s: of(&[Stage::BG2]),
            witness_s: of(&[Stage::Witness, Stage::CircuitWitness]),
            evaluate_s: of(&[Stage::Evaluate]),
            device_s: of(&[Stage::Device]),
            system_s: usage.system.as_secs_f64() / proofs,
            page_faults: usage.page_faults as f64 / proofs,
            tlb_shootdowns: usage.tlb_shootdowns.map(|count| count as f64 / proofs),
        })
    }

    /// Makes `each` proofs for each of `callers` and returns their spans.
    fn prove(&self, callers: usize, each: usize) -> Result<Vec<Span>, Failure> {
        // Priority `normal` for every kind, because critical jobs run one after the other.
        let options = || JobOptions {
            priority: Some(Priority::Normal),
            ..JobOptions::default()
        };
        let caller = || {
            let mut spans = Vec::new();
            for _ in 0..each {
                let job = self.engine.submit_with(&self.request, options())?;
                job.wait()?;
                spans.extend(self.engine.timeline().of_job(job.number()));
            }
            Ok::<_, Failure>(spans)
        };
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, caller);
            let callers: Result<Vec<_>, _> = (0..callers).map(start).collect();
            let callers = callers.map_err(|error| none_left(&error))?;
            let mut spans = Vec::new();
            for caller in callers {
                match caller.join() {
                    Ok(proved) => spans.extend(proved?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(spans)
        })
    }
}
