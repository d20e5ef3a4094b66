//! Many machines that share a load.
//!
//! Each request goes to the machine that would be free first, by the time that a proof
//! takes there in a full pipeline. That is all that the machines have in common. The
//! invariant: a fleet's outcome does not depend on the threads that compute it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rayon::prelude::*;

use crate::PlanError;
use crate::capacity::pace;
use crate::contention::Interference;
use crate::kind::Kind;
use crate::load::{Demanded, Load};
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::pipeline::simulate;
use crate::run::{Request, Run};
use crate::units::count;

/// The partitions that are simulated one by one. A load with more of them has them in
/// groups, so that a week of a thousand machines takes less than a minute.
const SINGLE_MAX: f64 = 4e6;

/// Returns the partitions that a run of `load` simulates as one.
#[must_use]
pub fn partitions_per_group(load: &Load) -> u32 {
    let partitions = |(kind, demanded): (Kind, Demanded)| {
        demanded.proofs_per_day * load.days * f64::from(kind.shape(load.sector_size).partitions)
    };
    let total: f64 = load.kinds().map(partitions).sum();
    count(total / SINGLE_MAX) + 1
}

/// Returns the outcome of `load` on its machines, all like `machine`.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_load(machine: &Machine, load: &Load) -> Result<Outcome, PlanError> {
    let kinds: Vec<Kind> = load.kinds().map(|(kind, _)| kind).collect();
    let requests = load.requests();
    let run = Run {
        size: load.sector_size,
        in_flight: usize::MAX,
        interference: Interference::Real,
        group: partitions_per_group(load),
    };
    let shares = divide(machine, load, &kinds, requests)?;
    let outcomes = shares.into_par_iter().map(|share| {
        let requests = share.into_iter();
        simulate(machine, &kinds, run, requests)
    });
    let outcomes: Result<Vec<_>, _> = outcomes.collect();
    let mut all = Outcome::default();
    outcomes?.into_iter().for_each(|one| all.add(one));
    Ok(all)
}

/// Returns the requests of each machine.
fn divide(
    machine: &Machine,
    load: &Load,
    kinds: &[Kind],
    requests: Vec<Request>,
) -> Result<Vec<Vec<Request>>, PlanError> {
    let mut pace_of = [Duration::ZERO; 4];
    for &kind in kinds {
        let pace_s = pace(machine, kind, load.sector_size)?;
        pace_of[kind as usize] = Duration::try_from_secs_f64(pace_s).unwrap_or(Duration::MAX);
    }
    let machines = load.machines as usize;
    let mut free: BinaryHeap<_> = (0..machines)
        .map(|at| Reverse((Duration::ZERO, at)))
        .collect();
    let mut shares = vec![Vec::new(); machines];
    for request in requests {
        let Some(Reverse((since, at))) = free.pop() else {
            break;
        };
        let asked = Duration::try_from_secs_f64(request.asked_s).unwrap_or(Duration::MAX);
        let until = since
            .max(asked)
            .saturating_add(pace_of[request.kind as usize]);
        free.push(Reverse((until, at)));
        shares[at].push(request);
    }
    Ok(shares)
}
