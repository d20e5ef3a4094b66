//! The arguments of `cuzk sweep`.

use std::path::PathBuf;

use clap::Args;
use cuzk_core::config::COUNT_MAX;
use cuzk_filecoin::{ProofKind, SectorSize};

use super::arm::{Arm, Pipeline};

/// The most partitions of a proof. The queue of the engine holds more.
const PARTITIONS_MAX: usize = 100;

/// The arms without `--arms`: each intervention alone, and all in the order of the design.
const ARMS: &str = "none,1,2,3,1+2,1+2+3";

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// The kind of proof: porep, winning-post, window-post or snap-deals.
    #[arg(long, default_value_t = ProofKind::Porep)]
    pub(super) kind: ProofKind,
    /// The sector size. 2KiB has a bundled request; other sizes need --request.
    #[arg(long, default_value_t = SectorSize::KiB2)]
    pub(super) sector_size: SectorSize,
    /// Prove the request in FILE, which is of --kind and --sector-size. Its parameters must
    /// exist.
    #[arg(long, value_name = "FILE")]
    pub(super) request: Option<PathBuf>,
    /// Give each proof so many partitions, which are those of the request in turn. Default:
    /// as the request has. A PoRep of 32 GiB has ten.
    #[arg(long, value_name = "PARTITIONS", value_parser = partitions)]
    pub(super) partitions: Option<usize>,
    /// The number of proofs in all. Several numbers are all measured. Default: 10; with
    /// --short 4.
    #[arg(long, value_name = "PROOFS", value_delimiter = ',', value_parser = proofs)]
    pub(super) c: Vec<usize>,
    /// The number of proofs in flight. Several numbers are all measured. Default: 1,4; with
    /// --short 1,2. An inflation is against 1.
    #[arg(long, value_name = "PROOFS", value_delimiter = ',', value_parser = proofs)]
    pub(super) j: Vec<usize>,
    /// The interventions that are on: `none`, or numbers joined by `+`. 1 bounds
    /// deallocation, 2 sets gpu_threads, 3 throttles synthesis during the MSM in G2.
    /// `configured` leaves these keys as the configuration has them. Default:
    /// none,1,2,3,1+2,1+2+3; with --short none,1+2+3.
    #[arg(long, value_delimiter = ',')]
    pub(super) arms: Vec<Arm>,
    /// The pipeline: `ours` has the configured circuit and workers. `seed` has those of
    /// configs/phase-9.toml.
    #[arg(long, value_delimiter = ',', default_value = "ours")]
    pub(super) pipeline: Vec<Pipeline>,
    /// The value of gpu_threads in arms with 2. Default: a sixth of the cores, at least 1.
    #[arg(long, value_name = "THREADS", value_parser = gpu_threads)]
    pub(super) gpu_threads: Option<usize>,
    /// Prove on a double of a device. Its region is a wait of so many milliseconds. Then the
    /// MSM in G2 is a wait of so many, with the throttle raised. The request has one
    /// partition, which --partitions repeats. Example: 1800,500.
    #[arg(long, value_name = "REGION_MS,B_G2_MS", value_parser = double)]
    pub(super) double: Option<[u64; 2]>,
    /// The number of rounds. Each setting has its turn in every round. Default: 3; with
    /// --short 1.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: Option<u32>,
    /// Keep each measurement in FILE. The same command goes on there after an interruption.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Measure little, and begin no measurement after four minutes.
    #[arg(long)]
    pub(super) short: bool,
    /// Draw throughput.svg, stages.svg and waterfall.svg into DIR.
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
    /// This process measures one setting for another one.
    #[arg(long, hide = true)]
    pub(super) child: bool,
}

impl Sweep {
    pub(super) fn c(&self) -> Vec<usize> {
        or(&self.c, if self.short { &[4] } else { &[10] })
    }

    pub(super) fn j(&self) -> Vec<usize> {
        or(&self.j, if self.short { &[1, 2] } else { &[1, 4] })
    }

    pub(super) fn arms(&self) -> Vec<Arm> {
        if !self.arms.is_empty() {
            return distinct(&self.arms);
        }
        let arms = if self.short { "none,1+2+3" } else { ARMS };
        arms.split(',').filter_map(|arm| arm.parse().ok()).collect()
    }

    pub(super) fn pipelines(&self) -> Vec<Pipeline> {
        distinct(&self.pipeline)
    }

    /// Returns the partitions of a proof, as titles have them.
    pub(super) fn of_partitions(&self) -> String {
        match self.partitions {
            Some(partitions) => format!(" of {partitions} partitions"),
            None => String::new(),
        }
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.short { 1 } else { 3 })
    }
}

fn or(given: &[usize], default: &[usize]) -> Vec<usize> {
    distinct(if given.is_empty() { default } else { given })
}

fn distinct<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(value) {
            distinct.push(*value);
        }
    }
    distinct
}

/// Parses a number of proofs. More would measure the engine's refusals.
fn proofs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=1000) => Ok(number),
        _ => Err("expected a number from 1 to 1000".to_owned()),
    }
}

/// Parses a number of partitions.
fn partitions(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=PARTITIONS_MAX) => Ok(number),
        _ => Err(format!("expected a number from 1 to {PARTITIONS_MAX}")),
    }
}

fn double(text: &str) -> Result<[u64; 2], String> {
    let waits: Option<Vec<u64>> = text.split(',').map(|ms| ms.parse().ok()).collect();
    match waits.as_deref() {
        Some(&[region_ms, b_g2_ms]) if region_ms.max(b_g2_ms) <= 600_000 => {
            Ok([region_ms, b_g2_ms])
        }
        _ => Err("expected two times of at most 600000 milliseconds, such as 1800,500".to_owned()),
    }
}

fn gpu_threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|&number: &usize| (1..=COUNT_MAX).contains(&(number as u64)))
        .ok_or_else(|| format!("expected a number from 1 to {COUNT_MAX}"))
}
