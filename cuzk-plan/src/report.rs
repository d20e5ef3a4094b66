//! The answers of a plan: what machines do with a load, what bounds them, what to buy.
//!
//! Not a simulation by itself. Each answer is a run of the model, or the difference of
//! two. The invariant: the report names what was assumed.

use serde::Serialize;

use crate::PlanError;
use crate::capacity::{Capacity, Utilisation, pace, recommend};
use crate::fleet::{partitions_per_group, simulate_load};
use crate::kind::{Kind, SectorSize};
use crate::load::{DAY_S, Demanded, Load};
use crate::machine::{Engine, Instructions, Machine};
use crate::outcome::Outcome;
use crate::units::in_gib;

/// The growth of a resource with which its effect is measured.
const GROWTH: f64 = 1.25;

/// The answers of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The machine's name.
    pub machine: String,
    /// The instructions of the kernels that its costs are of.
    pub isa: Instructions,
    /// The keys of the machine's file that were assumed.
    pub assumed: Vec<String>,
    /// The most that one machine can do of each kind. Kinds that it cannot do are absent.
    pub capacity: Vec<Capacity>,
    /// The kinds that it cannot do, and why.
    pub impossible: Vec<String>,
    /// The kind that the configuration is recommended for.
    pub recommended_for: Option<Kind>,
    /// The recommended configuration.
    pub recommended: Option<Engine>,
    /// Its capacity.
    pub recommended_capacity: Option<Capacity>,
    /// The resource of which more gains most.
    pub bound_by: Option<&'static str>,
    /// The effects of more of each resource, each with its best configuration.
    pub more: Vec<More>,
    /// The fate of the load, if there is one.
    pub load: Option<LoadReport>,
}

/// The effect of more of something.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct More {
    /// The change.
    pub of: &'static str,
    /// The proofs of a day, all machines together.
    pub proofs_per_day: f64,
    /// The growth of the proofs of a day, as a share.
    pub gain: f64,
}

/// The fate of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// The load's name.
    pub name: String,
    /// The machines.
    pub machines: u32,
    /// The simulated days.
    pub days: f64,
    /// The seed.
    pub seed: u64,
    /// The partitions that were simulated as one. Latencies of several are too long.
    pub partitions_per_group: u32,
    /// Each kind's latencies.
    pub kinds: Vec<Latency>,
    /// How busy the machines were, in the mean.
    pub utilisation: Utilisation,
    /// The most memory that was charged on a machine, in GiB.
    pub peak_gib: f64,
}

/// The latencies of the proofs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The kind.
    pub kind: Kind,
    /// The proofs.
    pub proofs: usize,
    /// The proofs of a day.
    pub proofs_per_day: f64,
    /// The latency that half of them have at most, in seconds.
    pub p50_s: f64,
    /// Of 95 in 100.
    pub p95_s: f64,
    /// Of 99 in 100.
    pub p99_s: f64,
    /// The longest.
    pub max_s: f64,
    /// The time after which a proof is late, in seconds.
    pub deadline_s: f64,
    /// The late proofs.
    pub late: usize,
}

impl Report {
    /// Returns the answers for `machine`, with a load or for its capacity alone.
    ///
    /// # Errors
    /// Those of the load's simulation. A kind that the machine cannot do is no error
    /// unless the load has it.
    pub fn new(machine: &Machine, load: Option<&Load>) -> Result<Self, PlanError> {
        let size = load.map_or(SectorSize::GiB32, |load| load.sector_size);
        let mut report = Self {
            machine: machine.name.clone(),
            isa: machine.cpu.isa,
            assumed: machine.assumed.clone(),
            capacity: Vec::new(),
            impossible: Vec::new(),
            recommended_for: None,
            recommended: None,
            recommended_capacity: None,
            bound_by: None,
            more: Vec::new(),
            load: load
                .map(|load| LoadReport::new(machine, load))
                .transpose()?,
        };
        for kind in Kind::ALL {
            match Capacity::new(machine, kind, size) {
                Ok(capacity) => report.capacity.push(capacity),
                Err(error) => report.impossible.push(error.to_string()),
            }
        }
        let main = load.map_or(report.capacity.first().map(|c| c.kind), |l| {
            main_kind(machine, l)
        });
        if let Some(kind) = main {
            report.advise(machine, kind, size, load.map_or(1, |load| load.machines))?;
        }
        Ok(report)
    }

    fn advise(
        &mut self,
        machine: &Machine,
        kind: Kind,
        size: SectorSize,
        machines: u32,
    ) -> Result<(), PlanError> {
        let best = recommend(machine, kind, size)?;
        let capacity = Capacity::new(&best, kind, size)?;
        let machines = f64::from(machines);
        let now_per_day = capacity.proofs_per_day * machines;
        let more = |of, proofs_per_day: f64| More {
            of,
            proofs_per_day,
            gain: proofs_per_day / now_per_day - 1.0,
        };
        self.more.push(more(
            "one more machine",
            now_per_day + capacity.proofs_per_day,
        ));
        let mut most = (0.005, "the number of machines");
        for (of, resource, changed) in changes(&best) {
            let changed = recommend(&changed, kind, size)?;
            let per_day = DAY_S / pace(&changed, kind, size)?.max(1e-9) * machines;
            let change = more(of, per_day);
            if change.gain > most.0 && !resource.is_empty() {
                most = (change.gain, resource);
            }
            self.more.push(change);
        }
        self.recommended_for = Some(kind);
        self.recommended = Some(best.engine);
        self.recommended_capacity = Some(capacity);
        self.bound_by = Some(most.1);
        Ok(())
    }
}

/// Returns `machine` with more of each resource. An entry has the change's name, the
/// resource's name, and the changed machine. A resource without a name bounds nothing.
fn changes(machine: &Machine) -> Vec<(&'static str, &'static str, Machine)> {
    let change = |of, resource, apply: &dyn Fn(&mut Machine)| {
        let mut changed = machine.clone();
        apply(&mut changed);
        (of, resource, changed)
    };
    let mut all = vec![
        change("one more DIMM on each machine", "", &|machine| {
            let memory = &mut machine.memory;
            let grown = 1.0 + memory.dimm_gib / memory.total_gib;
            memory.bandwidth_gb_per_s *= grown;
            memory.total_gib += memory.dimm_gib;
            machine.engine.budget_gib += memory.dimm_gib;
        }),
        change("25 % more memory", "memory", &|machine| {
            machine.memory.total_gib *= GROWTH;
            machine.engine.budget_gib *= GROWTH;
        }),
        change(
            "25 % more memory bandwidth",
            "memory bandwidth",
            &|machine| {
                machine.memory.bandwidth_gb_per_s *= GROWTH;
            },
        ),
        change("25 % more cores", "cores", &|machine| {
            let threads = f64::from(machine.cpu.hardware_threads) * GROWTH;
            machine.cpu.hardware_threads = crate::units::count(threads.ceil());
        }),
        change("25 % more of the disk's rate", "disk", &|machine| {
            machine.disk.read_mb_per_s *= GROWTH;
        }),
    ];
    if machine.gpus.count > 0 {
        all.push(change("one more GPU in each machine", "GPUs", &|machine| {
            machine.gpus.count += 1;
        }));
    }
    all
}

/// Returns the kind of `load` that takes most of the machines' time.
fn main_kind(machine: &Machine, load: &Load) -> Option<Kind> {
    let busy = |(kind, demanded): (Kind, Demanded)| {
        let pace_s = pace(machine, kind, load.sector_size).ok()?;
        Some((demanded.proofs_per_day * pace_s, kind))
    };
    let busiest = load.kinds().filter_map(busy);
    busiest
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, kind)| kind)
}

impl LoadReport {
    fn new(machine: &Machine, load: &Load) -> Result<Self, PlanError> {
        let outcome = simulate_load(machine, load)?;
        let seconds = outcome.end_s.max(load.days * DAY_S);
        let machines = f64::from(load.machines);
        let latency = |(kind, demanded): (Kind, Demanded)| {
            Latency::new(kind, &outcome, demanded.deadline_s, seconds)
        };
        Ok(Self {
            name: load.name.clone(),
            machines: load.machines,
            days: load.days,
            seed: load.seed,
            partitions_per_group: partitions_per_group(load),
            kinds: load.kinds().map(latency).collect(),
            utilisation: Utilisation::new(machine, &outcome, machines, seconds),
            peak_gib: in_gib(outcome.peak_bytes),
        })
    }
}

impl Latency {
    fn new(kind: Kind, outcome: &Outcome, deadline_s: f64, seconds: f64) -> Self {
        let of_kind = outcome.proofs.iter().filter(|proof| proof.kind == kind);
        let mut latencies: Vec<f64> = of_kind.map(|p| p.ended_s - p.asked_s).collect();
        latencies.sort_unstable_by(f64::total_cmp);
        let at = |per_mille: usize| {
            let last = latencies.len().saturating_sub(1);
            latencies
                .get(last * per_mille / 1000)
                .copied()
                .unwrap_or(0.0)
        };
        Self {
            kind,
            proofs: latencies.len(),
            proofs_per_day: latencies.len() as f64 / (seconds / DAY_S),
            p50_s: at(500),
            p95_s: at(950),
            p99_s: at(990),
            max_s: at(1000),
            deadline_s,
            late: latencies.iter().filter(|&&l| l > deadline_s).count(),
        }
    }
}
