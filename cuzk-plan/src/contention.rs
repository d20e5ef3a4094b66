//! How much the stages that run at once slow each other.
//!
//! Not queues or locks: those are the pipeline's. Here are only the resources that
//! stages share without asking: cores, memory bandwidth, the last-level cache and the
//! TLBs. The invariant: a stage is never faster than alone.

use crate::machine::{Machine, Throttle};

/// The share of time that a yielding thread is away if another thread waits. It loses a
/// time slice of 100 us for every 64 chunks, which take 500 us.
const YIELD_SHARE: f64 = 1.0 / 6.0;

/// The share of its speed at which synthesis goes on while it naps: naps are bounded.
const NAP_SPEED: f64 = 0.1;

/// The kind of a stage, as far as others are slowed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Witness and evaluation.
    Synthesis,
    /// Other work of the processor.
    Processor,
    /// The MSM in G2 beside a GPU.
    MsmG2,
    /// A GPU's kernels.
    Device,
    /// A wait for a disk or a network.
    Transfer,
    /// Freeing of memory.
    Freeing,
}

/// The use that a running stage makes of shared resources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// The kind of the stage.
    pub role: Role,
    /// The hardware threads that it would use.
    pub threads: f64,
    /// Its traffic at full speed, in GB/s.
    pub gb_per_s: f64,
    /// The part of the cache that it takes from others, in MiB.
    pub cache_mib: f64,
    /// True if other work on the cores waits for it.
    pub critical: bool,
}

/// The mechanisms of contention that are in effect. A run without all of them shows each
/// stage as it is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// All of them, as a machine has them.
    Real,
    /// None: as if each stage had the machine for itself.
    None,
}

/// The shared resources of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    hardware_threads: f64,
    gb_per_s: f64,
    l3_mib: f64,
    memory_wait_share: f64,
    l3_share: f64,
    shootdown_share: f64,
    throttle: Throttle,
    interference: Interference,
}

/// The load of the shared resources by all running stages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    threads: f64,
    gb_per_s: f64,
    cache_mib: f64,
    freeing: f64,
    msms: u32,
    critical: bool,
}

impl Shared {
    /// Returns the shared resources of `machine`.
    #[must_use]
    pub fn new(machine: &Machine, interference: Interference) -> Self {
        Self {
            hardware_threads: f64::from(machine.cpu.hardware_threads),
            gb_per_s: machine.memory.bandwidth_gb_per_s,
            l3_mib: machine.cpu.l3_mib,
            memory_wait_share: machine.contention.memory_wait_share,
            l3_share: machine.contention.l3_share,
            shootdown_share: machine.contention.shootdown_share_per_freeing_thread,
            throttle: machine.engine.throttle,
            interference,
        }
    }

    /// Returns the load of the running stages together.
    #[must_use]
    pub fn load<'a>(&self, running: impl Iterator<Item = &'a Demand>) -> Load {
        let mut load = Load::default();
        for demand in running {
            load.threads += demand.threads;
            load.gb_per_s += demand.gb_per_s;
            load.cache_mib += demand.cache_mib;
            load.freeing += f64::from(u8::from(demand.role == Role::Freeing));
            load.msms += u32::from(demand.role == Role::MsmG2);
            load.critical |= demand.critical && demand.threads > 0.0;
        }
        load
    }

    /// Returns the speed of a stage under a load that contains it, as a share of its
    /// speed alone: 0 to 1.
    #[must_use]
    pub fn speed(&self, demand: &Demand, load: &Load) -> f64 {
        if self.interference == Interference::None || demand.threads == 0.0 {
            return 1.0;
        }
        if load.critical && !demand.critical {
            return 0.0;
        }
        let oversubscription = (load.threads / self.hardware_threads).max(1.0);
        let mut time = oversubscription * (1.0 + self.memory_wait(load, oversubscription));
        time *= 1.0 + self.shootdown_share * load.freeing;
        if demand.role == Role::Synthesis {
            let filled = (load.cache_mib / self.l3_mib).min(1.0);
            time *= 1.0 + self.l3_share * filled;
            time /= self.throttled(load, oversubscription);
        }
        1.0 / time
    }

    /// Returns the growth of a stage's time by waiting for memory.
    ///
    /// A queue of random arrivals at a server that is busy for a share u of the time waits
    /// u / (1 - u) services. Stages that wait also ask for less. So the time t, as a
    /// multiple of that alone, solves t = 1 + m u / (1 - u) with u = U / t. Here m is the
    /// share of waits alone, and U is the use at the speed that the cores allow. Far above
    /// the bandwidth, t is U: the stages take turns.
    fn memory_wait(&self, load: &Load, oversubscription: f64) -> f64 {
        let full = load.gb_per_s / oversubscription / self.gb_per_s;
        let root = ((1.0 - full).powi(2) + 4.0 * self.memory_wait_share * full).sqrt();
        ((1.0 + full + root) / 2.0 - 1.0).max(0.0)
    }

    /// Returns the speed of synthesis that gives way to the MSM in G2.
    fn throttled(&self, load: &Load, oversubscription: f64) -> f64 {
        match self.throttle {
            _ if load.msms == 0 => 1.0,
            Throttle::Off => 1.0,
            // A thread that yields while no other waits is back at once.
            Throttle::Yield if oversubscription <= 1.0 => 1.0,
            Throttle::Yield => 1.0 - YIELD_SHARE,
            Throttle::Nap => NAP_SPEED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::MACHINE;

    fn shared() -> Shared {
        Shared::new(
            &Machine::parse("seed", MACHINE).unwrap(),
            Interference::Real,
        )
    }

    fn work(threads: f64, gb_per_s: f64) -> Demand {
        Demand {
            role: Role::Processor,
            threads,
            gb_per_s,
            cache_mib: 0.0,
            critical: false,
        }
    }

    #[test]
    fn more_work_never_does_less_in_all() {
        let shared = shared();
        let mut last = 0.0;
        for count in 1..200 {
            let running = vec![work(4.0, 9.0); count];
            let load = shared.load(running.iter());
            let done = count as f64 * shared.speed(&running[0], &load);
            assert!(done >= last - 1e-9, "{count}: {done} after {last}");
            assert!(
                done * 9.0 <= 333.0 && done * 4.0 <= 192.0,
                "{count}: {done}"
            );
            last = done;
        }
    }

    #[test]
    fn work_on_no_core_waits_for_nothing() {
        let shared = shared();
        let busy = work(500.0, 500.0);
        let load = shared.load([&busy].into_iter());
        assert_eq!(shared.speed(&work(0.0, 0.0), &load), 1.0);
        assert!(shared.speed(&busy, &load) < 0.5);
    }
}
