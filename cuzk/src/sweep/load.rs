//! The load of one setting, in a process of its own.
//!
//! The parent writes one line, the [`Order`], and gets one line, the sample. So peak memory,
//! page faults and gpu_threads are those of one setting alone.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, thread};

use cuzk_core::config::Devices;
use cuzk_core::engine::devices;
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::{Span, WaterfallOptions, waterfall_svg};
use cuzk_core::{Config, Engine, JobHandle, ProofRequest};
use cuzk_filecoin::decode;
use cuzk_tune::child::{self, Child};
use cuzk_tune::counters::Counters;
use serde::{Deserialize, Serialize};

use super::args::Sweep;
use super::arm::Setting;
use super::repeated::Repeated;
use super::request;
use super::sample::Sample;
use crate::bench::double::Double;
use crate::commands::{Context, for_one_command};
use crate::failure::{Failure, failed};
use crate::in_flight::in_flight;
use crate::output_path::OutputPath;

/// One measurement to make.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) setting: Setting,
    /// The file for a waterfall of the run.
    pub(super) waterfall: Option<PathBuf>,
}

/// Has a new process measure, and returns its sample.
pub(super) fn measure(order: &Order) -> Result<Sample, Failure> {
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    // The same arguments say the same configuration and the same request.
    command.args(env::args_os().skip(1)).arg("--child");
    let mut child = Child::start(&mut command).map_err(failed)?;
    let question = serde_json::to_string(order).map_err(failed)?;
    let answer = child
        .ask(&question)
        .map_err(|error| failed(format!("{}: {error}; its reason is above", order.setting)))?;
    serde_json::from_str(&answer).map_err(failed)
}

/// Runs as the process that measures.
pub(super) fn answer(context: &Context, args: &Sweep) -> Result<(), Failure> {
    let served: Result<(), Served> = child::serve(|line| {
        let order: Order = serde_json::from_str(line).map_err(failed)?;
        let sample = sample(context, args, &order)?;
        Ok(serde_json::to_string(&sample).map_err(failed)?)
    });
    served.map_err(|Served(failure)| failure)
}

fn sample(context: &Context, args: &Sweep, order: &Order) -> Result<Sample, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let setting = order.setting;
    let config = setting.configure(context.config.clone(), cores, args.gpu_threads);
    // Before the engine starts its threads, which are counted, too.
    let mut counters = Counters::open();
    let engine = start(config, args.double)?;
    let work = Work {
        request: request(args)?,
        partitions: args.partitions,
    };
    // Circuit and parameters are loaded before anything is measured.
    prove(&engine, &work, 1, 1)?;
    let started = Instant::now();
    let counted = counters.count(|| prove(&engine, &work, setting.c, setting.j));
    let (proved, usage) = counted.map_err(failed)?;
    let whole_s = started.elapsed().as_secs_f64();
    let (prove_s, spans) = proved?;
    if let Some(path) = &order.waterfall {
        let options = WaterfallOptions {
            title: format!(
                "cuzk sweep: {} {}{}, {setting}",
                args.kind,
                args.sector_size,
                args.of_partitions()
            ),
            ..WaterfallOptions::default()
        };
        let svg = waterfall_svg(&spans, &options);
        OutputPath::new(path)?.write(svg.as_bytes())?;
    }
    Ok(Sample::new(whole_s, prove_s, &spans, &usage))
}

/// Starts an engine on its devices, or on a double of one.
fn start(mut config: Config, double: Option<[u64; 2]>) -> Result<Engine, Failure> {
    let Some(waits) = double else {
        return Ok(for_one_command(Engine::start(config)?));
    };
    let [region, b_g2] = waits.map(Duration::from_millis);
    config.gpus.devices = Devices::Cpu;
    let pool = Arc::new(config.synthesis.pool().map_err(cuzk_core::Error::from)?);
    let cpu = devices(&config, &pool)?.into_iter();
    let doubles = cpu.map(|cpu| Double::device(cpu, region, b_g2)).collect();
    Ok(for_one_command(Engine::start_on(config, pool, doubles)?))
}

/// What is proved again and again.
struct Work {
    request: ProofRequest,
    /// The partitions of a proof; as the request has them if it is not given.
    partitions: Option<usize>,
}

impl Work {
    /// Submits one proof. The request is decoded for each.
    fn submit(&self, engine: &Engine) -> Result<JobHandle, cuzk_core::Error> {
        // Priority `normal` for every kind, because critical jobs run one after the other.
        let options = JobOptions {
            priority: Some(Priority::Normal),
            ..JobOptions::default()
        };
        let Some(partitions) = self.partitions else {
            return engine.submit_with(&self.request, options);
        };
        let statement = Arc::from(decode(&self.request)?);
        engine.submit_job(Arc::new(Repeated::new(statement, partitions)), options)
    }
}

/// Makes `c` proofs with at most `j` in flight. Returns the seconds of each, and their spans.
fn prove(
    engine: &Engine,
    work: &Work,
    c: usize,
    j: usize,
) -> Result<(Vec<f64>, Vec<Span>), Failure> {
    let proved = in_flight(c, j, || {
        let started = Instant::now();
        let job = work.submit(engine)?;
        job.wait()?;
        let seconds = started.elapsed().as_secs_f64();
        Ok((seconds, engine.timeline().of_job(job.number())))
    })?;
    let (seconds, spans): (Vec<_>, Vec<_>) = proved.into_iter().unzip();
    Ok((seconds, spans.concat()))
}

/// The reason for which a child stopped serving.
struct Served(Failure);

impl From<std::io::Error> for Served {
    fn from(error: std::io::Error) -> Self {
        Self(failed(error))
    }
}

impl From<Failure> for Served {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}
