//! `cuzk plan calibrate`: the costs of proofs on this machine, as a description.
//!
//! It proves the bundled request of each kind alone, by the engine as it is configured.
//! Costs are processor time, because that is disturbed least by other programs. The time
//! is divided among the stages by the timeline. The width of a stage is processor time
//! over wall time, so this should run while nothing else does. If other programs have most
//! of the cores, all threads are assumed, and the file says so. It also says how much of the
//! processors they had.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use cuzk_core::config::{Host, available_memory_bytes};
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::{Span, Stage};
use cuzk_core::{Config, Engine};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_kernels::Isa;
use cuzk_plan::costs::{Costs, KindCosts};
use cuzk_plan::kind::{self, Kind};
use cuzk_plan::machine::{
    Contention, Cpu, Dealloc, Disk, Engine as Configured, Gpus, Instructions, Machine, Memory,
    Network, Throttle,
};
use cuzk_tune::counters::Counters;
use cuzk_tune::others::Others;

use super::disturbance::warning;
use super::{Context, KINDS};
use crate::commands::demo::bundled_request;
use crate::commands::for_one_command;
use crate::commands::params::ensure_parameters;
use crate::failure::{Failure, failed};
use crate::output;
use crate::output_path::OutputPath;
use crate::progress::Doing;

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// Write the description into FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The proofs of each kind. The one that took the least processor time counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
}

/// Values that this command does not measure.
const ASSUMED: [&str; 6] = [
    "cpu.l3_mib",
    "memory.bandwidth_gb_per_s",
    "memory.dimm_gib",
    "disk.read_mb_per_s",
    "network.receive_mbit_per_s",
    "contention",
];

/// The memory of a partition that the CPU proves: twelve vectors, 14 GiB at 32 GiB.
const OWN_BYTES_PER_CONSTRAINT: f64 = 115.0;

/// The memory traffic of a partition's quotient and MSMs, counted from their passes.
const KERNELS_BYTES_PER_POINT: f64 = 3000.0;

/// One measured proof.
#[derive(Clone, Copy)]
struct Measured {
    thread_s: f64,
    synthesis_s: f64,
    device_s: f64,
    finish_s: f64,
}

pub(crate) fn run(context: &Context, args: &Calibrate) -> Result<(), Failure> {
    let out = OutputPath::new(&args.out)?;
    let doing = Doing::begin("getting parameters");
    let mut config = context.config.clone();
    config.srs.multiples = Vec::new();
    for (kind, _) in KINDS {
        let sector_size = SectorSize::KiB2;
        ensure_parameters(context, CircuitId { kind, sector_size })?;
    }
    let isa = instructions(config.cpu.isa)?;
    let engine = for_one_command(Engine::start(config.clone())?);
    let mut costs = Costs::default();
    let mut assumed = ASSUMED.map(str::to_owned).to_vec();
    let others = Others::begin();
    for (kind, plan_kind) in KINDS {
        doing.now(&format!("measuring {kind}"));
        // The first proof loads the circuit and maps the parameters.
        measure(&engine, kind)?;
        let mut best = measure(&engine, kind)?;
        for _ in 1..args.runs {
            let next = measure(&engine, kind)?;
            if next.thread_s < best.thread_s {
                best = next;
            }
        }
        if best.is_disturbed() {
            let of = |stage| format!("costs.{}.{stage}_threads", plan_kind.name());
            assumed.extend([of("synthesis"), of("cpu_kernels")]);
        }
        costs.set(plan_kind, best.costs(plan_kind, config.synthesis.threads));
    }
    let others_share = others.share().map(|share| (1e3 * share).round() / 1e3);
    engine.shutdown();
    drop(doing);
    let machine = Machine {
        others_share,
        ..describe(&config, isa, costs, assumed)
    };
    let text = toml_text(&machine)?;
    // The written text must read back.
    Machine::parse(&output::shown(&args.out), &text).map_err(failed)?;
    out.write(text.as_bytes())?;
    let assumes_threads = machine.assumed.len() > ASSUMED.len();
    if let Some(warning) = warning(machine.others_share, assumes_threads) {
        output::say(warning);
    }
    output::print_beside(out.is_stdout(), context.json, &machine, |_| {
        format!("wrote {}", output::shown(&args.out))
    })
}

fn measure(engine: &Engine, kind: ProofKind) -> Result<Measured, Failure> {
    let request = bundled_request(kind)?;
    let options = JobOptions {
        priority: Some(Priority::Normal),
        ..JobOptions::default()
    };
    let mut counters = Counters::open();
    let started = Instant::now();
    let prove = || {
        let job = engine.submit_with(&request, options)?;
        job.wait().map(|_| job.number())
    };
    let (job, usage) = counters.count(prove).map_err(failed)?;
    let spans = engine.timeline().of_job(job?);
    let wall_s = started.elapsed().as_secs_f64();
    let of = |stages: &[Stage]| -> f64 {
        let spans = spans.iter().filter(|span| stages.contains(&span.stage));
        spans.map(|span: &Span| span.length().as_secs_f64()).sum()
    };
    let synthesis = [Stage::Witness, Stage::CircuitWitness, Stage::Evaluate];
    // It is a part of finishing, and has all threads, as the kernels have.
    let b_g2_s = of(&[Stage::BG2]);
    let measured = Measured {
        thread_s: (usage.user + usage.system).as_secs_f64(),
        synthesis_s: of(&synthesis),
        device_s: of(&[Stage::Prepare, Stage::Device]) + b_g2_s,
        finish_s: (of(&[Stage::Decode, Stage::Finish]) - b_g2_s).max(0.0),
    };
    debug_assert!(measured.busy_s() <= wall_s);
    Ok(measured)
}

impl Measured {
    fn busy_s(&self) -> f64 {
        self.synthesis_s + self.device_s + self.finish_s
    }

    /// Returns true if other programs had most of the cores: the stages, which have all
    /// threads, had less than one. The width of a stage is then unknown.
    fn is_disturbed(&self) -> bool {
        self.thread_s < self.busy_s()
    }

    fn costs(&self, kind: Kind, threads: usize) -> KindCosts {
        let shape = kind.shape(kind::SectorSize::KiB2);
        let (wide_s, busy_s) = (self.synthesis_s + self.device_s, self.busy_s().max(1e-9));
        // Decoding and finishing have one thread. The rest of the processor's time is of
        // the other stages, which have all.
        let finish_s = self.finish_s * (self.thread_s / busy_s).min(1.0);
        let width = if self.is_disturbed() {
            threads as f64
        } else {
            ((self.thread_s - finish_s) / wide_s.max(1e-9)).clamp(1.0, threads as f64)
        };
        let share = (self.thread_s - finish_s).max(0.0) / wide_s.max(1e-9);
        let ns_per = |part_s: f64, count: u64| part_s * share * 1e9 / count as f64;
        KindCosts {
            synthesis_thread_ns_per_constraint: ns_per(self.synthesis_s, shape.constraints),
            synthesis_threads: width,
            synthesis_bytes_per_constraint: 70.0,
            cpu_kernels_thread_ns_per_point: ns_per(self.device_s, shape.points()),
            cpu_kernels_threads: width,
            cpu_kernels_bytes_per_point: KERNELS_BYTES_PER_POINT,
            finish_ms_per_partition: finish_s * 1e3,
            own_bytes_per_constraint: OWN_BYTES_PER_CONSTRAINT,
            circuit_bytes_per_constraint: 0.2,
            ..KindCosts::default()
        }
    }
}

/// Returns the model's name of an engine's instructions.
pub(super) fn instructions(isa: Isa) -> Result<Instructions, Failure> {
    let unknown = || failed(format!("the model does not know the instructions {isa}"));
    Instructions::of_name(isa.name()).ok_or_else(unknown)
}

fn describe(config: &Config, isa: Instructions, costs: Costs, assumed: Vec<String>) -> Machine {
    const GIB: f64 = (1_u64 << 30) as f64;
    let host = Host::detect();
    let total = host.memory_bytes.or_else(available_memory_bytes);
    let total_gib = total.map_or(1.0, |bytes| bytes as f64 / GIB);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Machine {
        name: format!("{} cores, {total_gib:.0} GiB, measured", host.cores),
        assumed,
        others_share: None,
        cpu: Cpu {
            hardware_threads: count(host.cores),
            l3_mib: 32.0,
            isa,
        },
        memory: Memory {
            total_gib,
            bandwidth_gb_per_s: 50.0,
            dimm_gib: 16.0,
        },
        disk: Disk {
            read_mb_per_s: 1000.0,
        },
        network: Network {
            receive_mbit_per_s: 1000.0,
        },
        gpus: Gpus {
            count: 0,
            memory_gib: 0.0,
            pcie_gb_per_s: 0.0,
        },
        engine: Configured {
            partition_workers: count(config.synthesis.partition_workers),
            synthesis_lookahead: count(config.pipeline.synthesis_lookahead),
            workers_per_device: count(config.gpus.gpu_workers_per_device),
            gpu_threads: count(config.gpus.gpu_threads),
            dealloc: Dealloc::Recycle,
            throttle: Throttle::Off,
            budget_gib: (config.memory.usable_bytes() as f64 / GIB).min(total_gib),
            critical_reserve_gib: config.memory.critical_reserve_bytes as f64 / GIB,
        },
        contention: Contention {
            memory_wait_share: 0.425,
            l3_share: 0.0,
            shootdown_share_per_freeing_thread: 0.01,
            freeing_gb_per_s: 10.0,
        },
        costs,
    }
}

fn toml_text(machine: &Machine) -> Result<String, Failure> {
    let table = machine.to_toml().map_err(failed)?;
    Ok(format!(
        "# Written by `cuzk plan calibrate`. The shipped descriptions in configs/machines\n\
         # explain each key.\n{table}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description names the instructions that the engine computes with, and reads back.
    #[test]
    fn a_description_names_the_instructions_of_its_costs() {
        for isa in Isa::all() {
            let mut config = Config::default();
            config.cpu.isa = isa;
            let named = instructions(isa).unwrap();
            let machine = Machine {
                others_share: Some(0.482),
                ..describe(&config, named, Costs::default(), Vec::new())
            };
            let text = toml_text(&machine).unwrap();
            assert!(text.contains(&format!("isa = \"{isa}\"")), "{text}");
            assert!(text.contains("\nothers_share = 0.482\n"), "{text}");
            assert_eq!(Machine::parse("this.toml", &text), Ok(machine));
        }
    }
}
