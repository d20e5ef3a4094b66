//! A machine: what it has, how the engine on it is configured, and what work costs there.
//!
//! Not a measurement by itself: `assumed` names the keys whose values nobody measured.
//! The invariant: a machine from [`Machine::parse`] has values within their ranges.

use serde::{Deserialize, Serialize};

use crate::costs::Costs;
use crate::{PlanError, table};

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// A name for people.
    pub name: String,
    /// The keys and tables of this file that were assumed, not measured.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// The share of the processors that other programs had while the costs were measured, 0 to
    /// 1. None if nobody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
    /// The processor.
    pub cpu: Cpu,
    /// The memory.
    pub memory: Memory,
    /// The disk with the parameters.
    pub disk: Disk,
    /// The network to those who ask for proofs.
    pub network: Network,
    /// The GPUs. Without any, the processor is the device.
    pub gpus: Gpus,
    /// The configuration of the engine.
    pub engine: Engine,
    /// How much stages slow each other.
    pub contention: Contention,
    /// The costs of the work.
    #[serde(default)]
    pub costs: Costs,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Threads that run at once.
    pub hardware_threads: u32,
    /// The last-level cache of all cores together, in MiB.
    pub l3_mib: f64,
    /// The instructions of the kernels that the costs are of. They count only where the engine
    /// uses the same.
    pub isa: Instructions,
}

/// Instructions of the kernels on the processor, by the names that an engine's `[cpu] isa` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instructions {
    /// AVX-512 IFMA.
    Ifma,
    /// AVX2 with FMA.
    Avx2,
    /// blst's assembly.
    Scalar,
    /// Plain Rust.
    Portable,
}

impl Instructions {
    /// All, fastest first.
    pub const ALL: [Self; 4] = [Self::Ifma, Self::Avx2, Self::Scalar, Self::Portable];

    /// Returns the name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ifma => "ifma",
            Self::Avx2 => "avx2",
            Self::Scalar => "scalar",
            Self::Portable => "portable",
        }
    }

    /// Returns the instructions of this name, if there are any.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its size, in GiB.
    pub total_gib: f64,
    /// Its bandwidth, in GB/s.
    pub bandwidth_gb_per_s: f64,
    /// The size of one DIMM, in GiB.
    pub dimm_gib: f64,
}

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// The rate of reading, in MB/s.
    pub read_mb_per_s: f64,
}

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The rate of receiving requests, in Mbit/s.
    pub receive_mbit_per_s: f64,
}

/// GPUs of one type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpus {
    /// Their number. 0: the processor is the device.
    pub count: u32,
    /// The memory of each, in GiB.
    pub memory_gib: f64,
    /// The rate from the host's memory to each, in GB/s.
    pub pcie_gb_per_s: f64,
}

/// The end of a partition's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dealloc {
    /// Freed on a thread of its own at once.
    Unbounded,
    /// Freed, one partition after the other.
    Serial,
    /// Kept for the next partition.
    Recycle,
}

/// The answer of synthesis to a running MSM in G2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Throttle {
    /// It goes on.
    Off,
    /// It yields before every 64th chunk, and is back at once if no thread waits.
    Yield,
    /// It sleeps.
    Nap,
}

/// The configuration of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Partitions synthesised at a time.
    pub partition_workers: u32,
    /// Partitions that may wait for a device.
    pub synthesis_lookahead: u32,
    /// Workers of each device.
    pub workers_per_device: u32,
    /// Threads of the MSM in G2 beside a GPU. 0 is all.
    pub gpu_threads: u32,
    /// The end of a partition's memory.
    pub dealloc: Dealloc,
    /// The answer of synthesis to a running MSM in G2.
    pub throttle: Throttle,
    /// The memory that the engine may use, in GiB.
    pub budget_gib: f64,
    /// The part of it that only critical work may use, in GiB.
    pub critical_reserve_gib: f64,
}

/// How much stages slow each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// The share of a stage's time, alone, in which it waits for memory. The wait grows
    /// with the use of the bandwidth.
    pub memory_wait_share: f64,
    /// The share of time by which synthesis grows if other work fills the whole L3.
    pub l3_share: f64,
    /// The share of time that every thread loses while one thread frees memory: each
    /// page's removal from the TLBs interrupts all cores.
    pub shootdown_share_per_freeing_thread: f64,
    /// The rate at which a thread frees memory, in GB/s.
    pub freeing_gb_per_s: f64,
}

impl Machine {
    /// Returns the machine that `text` of the file of this name describes.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] for a key that is unknown, missing or of the wrong type.
    /// [`PlanError::Value`] for a value outside of its range, and for the key `cpu.ifma` of
    /// earlier files. That key does not say which kernels the costs are of if they are not IFMA's.
    pub fn parse(file: &str, text: &str) -> Result<Self, PlanError> {
        let of_earlier_file = |error| earlier_key(file, text).unwrap_or(error);
        let machine: Self = table::read(file, text).map_err(of_earlier_file)?;
        table::check_paths(file, text, &machine.assumed)?;
        machine.check(file)?;
        Ok(machine)
    }

    /// Returns the text of a file that describes this machine.
    ///
    /// # Errors
    /// [`PlanError::Syntax`] if a value cannot be written.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        toml::to_string(self).map_err(|error| PlanError::Syntax {
            file: self.name.clone(),
            problem: error.to_string(),
        })
    }

    fn check(&self, file: &str) -> Result<(), PlanError> {
        let others = self
            .others_share
            .map(|share| ("others_share", share, (0.0, 1.0)));
        let ranges = others.into_iter().chain(self.hardware_ranges());
        for (key, value, range) in ranges.chain(self.engine_ranges()) {
            table::check_range(file, key, value, range)?;
        }
        Ok(())
    }

    fn hardware_ranges(&self) -> [Range; 9] {
        let pcie_least = if self.gpus.count > 0 { 0.1 } else { 0.0 };
        let (cpu, memory, gpus) = (&self.cpu, &self.memory, &self.gpus);
        let threads = cpu.hardware_threads.into();
        let receive_mbit_per_s = self.network.receive_mbit_per_s;
        [
            ("cpu.hardware_threads", threads, (1.0, 4096.0)),
            ("cpu.l3_mib", cpu.l3_mib, (0.1, 1e6)),
            ("memory.total_gib", memory.total_gib, (0.5, 1e6)),
            (
                "memory.bandwidth_gb_per_s",
                memory.bandwidth_gb_per_s,
                (0.1, 1e6),
            ),
            ("memory.dimm_gib", memory.dimm_gib, (0.5, 1e4)),
            ("disk.read_mb_per_s", self.disk.read_mb_per_s, (1.0, 1e6)),
            ("network.receive_mbit_per_s", receive_mbit_per_s, (0.1, 1e7)),
            ("gpus.count", gpus.count.into(), (0.0, 64.0)),
            ("gpus.pcie_gb_per_s", gpus.pcie_gb_per_s, (pcie_least, 1e4)),
        ]
    }

    fn engine_ranges(&self) -> [Range; 10] {
        let (engine, contention) = (&self.engine, &self.contention);
        let reserve_gib = engine.critical_reserve_gib;
        let shootdown_share = contention.shootdown_share_per_freeing_thread;
        let (least, most) = (1.0, 1024.0);
        [
            (
                "engine.partition_workers",
                engine.partition_workers.into(),
                (least, most),
            ),
            (
                "engine.synthesis_lookahead",
                engine.synthesis_lookahead.into(),
                (least, most),
            ),
            (
                "engine.workers_per_device",
                engine.workers_per_device.into(),
                (least, 64.0),
            ),
            (
                "engine.gpu_threads",
                engine.gpu_threads.into(),
                (0.0, 4096.0),
            ),
            (
                "engine.budget_gib",
                engine.budget_gib,
                (0.1, self.memory.total_gib),
            ),
            (
                "engine.critical_reserve_gib",
                reserve_gib,
                (0.0, engine.budget_gib / 2.0),
            ),
            (
                "contention.memory_wait_share",
                contention.memory_wait_share,
                (0.0, 1.0),
            ),
            ("contention.l3_share", contention.l3_share, (0.0, 10.0)),
            (
                "contention.shootdown_share_per_freeing_thread",
                shootdown_share,
                (0.0, 1.0),
            ),
            (
                "contention.freeing_gb_per_s",
                contention.freeing_gb_per_s,
                (0.01, 1e4),
            ),
        ]
    }
}

/// Returns the error of a file that has the key of earlier files.
fn earlier_key(file: &str, text: &str) -> Option<PlanError> {
    let value = table::value_at(text, "cpu.ifma")?;
    let names = Instructions::ALL.map(|one| format!("{:?}", one.name()));
    Some(PlanError::Value {
        file: file.to_owned(),
        key: "cpu.ifma".to_owned(),
        expected: format!("cpu.isa in its place, one of {}", names.join(", ")),
        got: format!("ifma = {value}"),
    })
}

/// A key, its value, and the least and the most that it may be.
type Range = (&'static str, f64, (f64, f64));
