//! The stages of a partition on a machine: how long each takes alone, and what it uses.
//!
//! Not their order, which is the pipeline's.

use cuzk_scheduler::admission::Need;

use crate::PlanError;
use crate::contention::{Demand, Role};
use crate::costs::KindCosts;
use crate::kind::{Kind, SectorSize, Shape};
use crate::machine::{Dealloc, Machine};
use crate::units::{bytes, gib};

/// The bytes of a request's partition. A partition of a 32 GiB PoRep has 1.35 MB, and
/// the size grows with the number of challenges, not with the circuit.
const REQUEST_BYTES: f64 = 1.35e6;

/// A stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Its time alone, in seconds.
    pub alone_s: f64,
    /// Its use of shared resources meanwhile.
    pub demand: Demand,
}

/// All stages of a partition of one kind, and its memory.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The kind.
    pub kind: Kind,
    /// The partitions of a proof.
    pub partitions: u32,
    /// The request's way over the network.
    pub receiving: Stage,
    /// Reading the circuit and its resident parameters, the first time.
    pub loading: Stage,
    /// Witness and evaluation.
    pub synthesis: Stage,
    /// Work before the device's lock.
    pub preparation: Stage,
    /// Work under the device's lock.
    pub kernels: Stage,
    /// The MSM in G2 beside a GPU.
    pub g2: Stage,
    /// Assembly and verification.
    pub finish: Stage,
    /// Freeing of the partition's memory.
    pub freeing: Stage,
    /// The memory that a partition needs.
    pub need: Need<Kind>,
}

struct Cook<'a> {
    machine: &'a Machine,
    costs: &'a KindCosts,
    shape: Shape,
    critical: bool,
}

impl Recipe {
    /// Returns the recipe of `kind` on `machine`.
    ///
    /// # Errors
    /// [`PlanError::NoCosts`].
    pub fn new(machine: &Machine, kind: Kind, size: SectorSize) -> Result<Self, PlanError> {
        let costs = machine.costs.of(kind).ok_or_else(|| PlanError::NoCosts {
            machine: machine.name.clone(),
            kind: kind.name().to_owned(),
        })?;
        let shape = kind.shape(size);
        let critical = kind.is_critical();
        let cook = Cook {
            machine,
            costs,
            shape,
            critical,
        };
        Ok(Self {
            kind,
            partitions: shape.partitions,
            receiving: cook.transfer(REQUEST_BYTES * 8e-6 / machine.network.receive_mbit_per_s),
            loading: cook.transfer(cook.shared_bytes() * 1e-6 / machine.disk.read_mb_per_s),
            synthesis: cook.synthesis(),
            preparation: cook.preparation(),
            kernels: cook.kernels(),
            g2: cook.g2(),
            finish: cook.work(
                Role::Processor,
                costs.finish_ms_per_partition * 1e-3,
                1.0,
                0.0,
            ),
            freeing: cook.freeing(),
            need: cook.need(kind),
        })
    }
}

impl Cook<'_> {
    /// Returns the threads of a stage for which the file says `threads`.
    fn threads(&self, threads: f64) -> f64 {
        let all = f64::from(self.machine.cpu.hardware_threads);
        if threads == 0.0 {
            all
        } else {
            threads.min(all)
        }
    }

    /// Returns a stage of `thread_s` seconds of all threads together.
    fn work(&self, role: Role, thread_s: f64, threads: f64, bytes: f64) -> Stage {
        let threads = self.threads(threads);
        self.stage(role, thread_s / threads, threads, bytes)
    }

    fn stage(&self, role: Role, alone_s: f64, threads: f64, bytes: f64) -> Stage {
        let gb_per_s = if alone_s > 0.0 {
            bytes * 1e-9 / alone_s
        } else {
            0.0
        };
        Stage {
            alone_s,
            demand: Demand {
                role,
                threads,
                gb_per_s,
                cache_mib: 0.0,
                critical: self.critical,
            },
        }
    }

    fn transfer(&self, seconds: f64) -> Stage {
        self.stage(Role::Transfer, seconds, 0.0, 0.0)
    }

    fn per_constraint(&self, cost: f64) -> f64 {
        cost * self.shape.constraints as f64
    }

    fn synthesis(&self) -> Stage {
        let costs = self.costs;
        let thread_s = self.per_constraint(costs.synthesis_thread_ns_per_constraint) * 1e-9;
        let bytes = self.per_constraint(costs.synthesis_bytes_per_constraint);
        self.work(Role::Synthesis, thread_s, costs.synthesis_threads, bytes)
    }

    fn preparation(&self) -> Stage {
        let costs = self.costs;
        let thread_s = self.per_constraint(costs.preparation_thread_ns_per_constraint) * 1e-9;
        let transferred = self.per_constraint(costs.transfer_bytes_per_constraint);
        let bytes = self.per_constraint(costs.preparation_bytes_per_constraint) + transferred;
        let transfer_s = match self.machine.gpus.count {
            0 => 0.0,
            _ => transferred * 1e-9 / self.machine.gpus.pcie_gb_per_s,
        };
        self.stage(Role::Processor, thread_s + transfer_s, 1.0, bytes)
    }

    fn kernels(&self) -> Stage {
        let (costs, points) = (self.costs, self.shape.points() as f64);
        if self.machine.gpus.count > 0 {
            let alone_s = costs.gpu_kernels_ns_per_point * 1e-9 * points;
            return self.stage(Role::Device, alone_s.max(self.reading_s()), 0.0, 0.0);
        }
        let thread_s = costs.cpu_kernels_thread_ns_per_point * 1e-9 * points;
        let bytes = costs.cpu_kernels_bytes_per_point * points;
        let mut stage = self.work(Role::Processor, thread_s, costs.cpu_kernels_threads, bytes);
        // The points come from the disk while others are computed with.
        if self.reading_s() > stage.alone_s {
            let share = stage.alone_s / self.reading_s();
            stage.alone_s = self.reading_s();
            stage.demand.threads *= share;
            stage.demand.gb_per_s *= share;
        }
        stage
    }

    /// Returns the time to read the parameters of a partition. It is zero if they stay in
    /// memory, either charged or in what the engine leaves to the system.
    fn reading_s(&self) -> f64 {
        let mapped = (1.0 - self.costs.resident_parameters_share).max(0.0);
        let file_bytes = mapped * self.shape.parameter_bytes as f64;
        let beside = gib(self.machine.memory.total_gib) as f64 - self.need_bytes();
        // The system drops what was read longest ago. So a file that is a little larger
        // than memory is read again as a whole.
        if file_bytes <= beside {
            return 0.0;
        }
        file_bytes * 1e-6 / self.machine.disk.read_mb_per_s
    }

    fn g2(&self) -> Stage {
        let costs = self.costs;
        let thread_s = self.per_constraint(costs.g2_thread_ns_per_constraint) * 1e-9;
        if self.machine.gpus.count == 0 || thread_s == 0.0 {
            return self.transfer(0.0);
        }
        let threads = self.threads(f64::from(self.machine.engine.gpu_threads));
        let overhead_s = costs.g2_overhead_us_per_thread * 1e-6 * threads;
        let mut stage = self.stage(Role::MsmG2, thread_s / threads + overhead_s, threads, 0.0);
        stage.demand.cache_mib = costs.g2_buckets_kib_per_thread / 1024.0 * threads;
        stage
    }

    fn freeing(&self) -> Stage {
        let bytes = match self.machine.engine.dealloc {
            Dealloc::Recycle => 0.0,
            Dealloc::Serial | Dealloc::Unbounded => {
                self.per_constraint(self.costs.freed_bytes_per_constraint)
            }
        };
        let seconds = bytes * 1e-9 / self.machine.contention.freeing_gb_per_s;
        self.stage(Role::Freeing, seconds, 1.0, 0.0)
    }

    fn need_bytes(&self) -> f64 {
        self.per_constraint(self.costs.own_bytes_per_constraint) + self.shared_bytes()
    }

    fn shared_bytes(&self) -> f64 {
        self.per_constraint(self.costs.circuit_bytes_per_constraint)
            + self.costs.resident_parameters_share * self.shape.parameter_bytes as f64
    }

    fn need(&self, kind: Kind) -> Need<Kind> {
        let own = self.per_constraint(self.costs.own_bytes_per_constraint);
        Need {
            own_bytes: bytes(own),
            shared: Some((kind, bytes(self.shared_bytes()))),
        }
    }
}
