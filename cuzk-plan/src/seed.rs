//! The published measurements that the model is held against.
//!
//! They are of the machine and engine in `configs/machines/seed-7995wx.toml`: PoReps of
//! 32 GiB, c of them with at most j in flight. Not a table of results: each point is a
//! run of the model with its own configuration. Parameters of the machine's contention
//! were chosen so that the points with `calibrated_on` fit.

use serde::Serialize;

use crate::PlanError;
use crate::contention::Interference;
use crate::kind::{Kind, SectorSize};
use crate::machine::{Dealloc, Machine, Throttle};
use crate::pipeline::simulate;
use crate::run::{Request, Run};

/// The description of the machine that the measurements are of.
pub const MACHINE: &str = include_str!("../machines/seed-7995wx.toml");

/// The proofs of the run that stands for isolation. Its pace is that of a full pipeline,
/// so more proofs change nothing.
const ISOLATION_PROOFS: usize = 40;

/// A configuration that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The name.
    pub point: &'static str,
    /// The measured time, in seconds a proof.
    pub published_s: f64,
    /// True if parameters were chosen with it.
    pub calibrated_on: bool,
    /// The proofs, and those in flight at most; none for isolation.
    proofs: Option<(usize, usize)>,
    /// The interventions that were in effect: 1, 2 and 3.
    interventions: u32,
}

/// A point, and what the model says of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The name.
    pub point: &'static str,
    /// The measured time, in seconds a proof.
    pub published_s: f64,
    /// The model's time, in seconds a proof.
    pub model_s: f64,
    /// The model's difference from the measured time, as a share of it.
    pub difference: f64,
    /// True if parameters were chosen with it.
    pub calibrated_on: bool,
    /// The model's time of a partition in a device's worker, in seconds.
    pub device_s_per_partition: f64,
    /// The model's time of a partition's synthesis, in seconds.
    pub synthesis_s_per_partition: f64,
    /// The share of time in which the device had a partition.
    pub utilisation: f64,
}

const fn point(
    point: &'static str,
    published_s: f64,
    calibrated_on: bool,
    proofs: Option<(usize, usize)>,
    interventions: u32,
) -> Published {
    Published {
        point,
        published_s,
        calibrated_on,
        proofs,
        interventions,
    }
}

/// All published points. Interventions were measured with c = 20 and j = 15.
pub const POINTS: [Published; 8] = [
    point("c=5", 41.4, false, Some((5, 5)), 0),
    point("c=10", 38.7, false, Some((10, 10)), 0),
    point("c=15", 38.2, false, Some((15, 15)), 0),
    point("c=20", 38.0, true, Some((20, 15)), 0),
    point("isolation", 32.1, true, None, 0),
    point("intervention 1", 37.9, false, Some((20, 15)), 1),
    point("interventions 1+2", 36.7, false, Some((20, 15)), 2),
    point("interventions 1+2+3", 36.8, false, Some((20, 15)), 3),
];

/// Returns the model's time for each published point.
///
/// # Errors
/// As [`simulate`], for another machine than the measured one.
pub fn check(machine: &Machine) -> Result<Vec<Point>, PlanError> {
    POINTS
        .iter()
        .map(|published| published.check(machine))
        .collect()
}

impl Published {
    fn check(&self, machine: &Machine) -> Result<Point, PlanError> {
        let machine = self.configured(machine);
        let (count, in_flight, interference) = match self.proofs {
            Some((count, in_flight)) => (count, in_flight, Interference::Real),
            None => (ISOLATION_PROOFS, ISOLATION_PROOFS, Interference::None),
        };
        let run = Run {
            size: SectorSize::GiB32,
            in_flight,
            interference,
            group: 1,
        };
        let request = Request {
            kind: Kind::Porep,
            asked_s: 0.0,
        };
        let requests = std::iter::repeat_n(request, count);
        let outcome = simulate(&machine, &[Kind::Porep], run, requests)?;
        let model_s = match self.proofs {
            Some(_) => outcome.s_per_proof(),
            None => outcome.steady_s_per_proof(),
        };
        let partitions = outcome.partitions.max(1) as f64;
        Ok(Point {
            point: self.point,
            published_s: self.published_s,
            model_s,
            difference: model_s / self.published_s - 1.0,
            calibrated_on: self.calibrated_on,
            device_s_per_partition: outcome.busy.device_workers_s / partitions,
            synthesis_s_per_partition: outcome.busy.synthesis_s / partitions,
            utilisation: outcome.busy.devices_s / outcome.end_s,
        })
    }

    /// Returns the machine with the point's interventions, each beside those before it.
    fn configured(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        let engine = &mut machine.engine;
        engine.dealloc = Dealloc::Unbounded;
        engine.gpu_threads = 0;
        engine.throttle = Throttle::Off;
        if self.interventions >= 1 {
            engine.dealloc = Dealloc::Serial;
        }
        if self.interventions >= 2 {
            engine.gpu_threads = 32;
        }
        if self.interventions >= 3 {
            engine.throttle = Throttle::Yield;
        }
        machine
    }
}
