//! The stages that run, and the next one to end.
//!
//! Not a queue of events by time: the end of a stage moves whenever another begins or
//! ends. The invariant: each stage's remaining time is counted at its present speed.

use crate::contention::{Demand, Shared};
use crate::recipe::Stage;

/// A stage that runs.
#[derive(Clone, Debug)]
struct Running<T> {
    item: T,
    demand: Demand,
    /// The time that remains at full speed, in seconds.
    remaining_s: f64,
    speed: f64,
}

/// The use of the shared resources over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Hardware threads that had work, in thread seconds.
    pub thread_s: f64,
    /// Memory traffic, in GB.
    pub gb: f64,
}

/// All stages that run. `T` says whose they are.
#[derive(Debug)]
pub struct Activity<T> {
    shared: Shared,
    hardware_threads: f64,
    running: Vec<Running<T>>,
    changed: bool,
    used: Used,
}

impl<T: Copy> Activity<T> {
    /// Returns no stages on these resources.
    #[must_use]
    pub fn new(shared: Shared, hardware_threads: f64) -> Self {
        Self {
            shared,
            hardware_threads,
            running: Vec::new(),
            changed: false,
            used: Used::default(),
        }
    }

    /// Begins a stage of `item`, `times` as long as the recipe says.
    pub fn begin(&mut self, item: T, stage: &Stage, times: f64) {
        self.changed = true;
        self.running.push(Running {
            item,
            demand: stage.demand,
            remaining_s: stage.alone_s * times,
            speed: 1.0,
        });
    }

    /// Returns the seconds until the next stage ends if nothing else begins before; none
    /// if nothing runs.
    pub fn until_next(&mut self) -> Option<f64> {
        self.set_speeds();
        let until = |running: &Running<T>| running.remaining_s / running.speed;
        let ends = self.running.iter().filter(|running| running.speed > 0.0);
        ends.map(until).min_by(f64::total_cmp)
    }

    /// Lets `seconds` pass, and returns the stages that end with them.
    pub fn pass(&mut self, seconds: f64, ended: &mut Vec<T>) {
        self.set_speeds();
        let (mut threads, used) = (0.0, &mut self.used);
        for running in &mut self.running {
            running.remaining_s -= seconds * running.speed;
            threads += running.demand.threads;
            used.gb += running.demand.gb_per_s * running.speed * seconds;
        }
        used.thread_s += threads.min(self.hardware_threads) * seconds;
        // A rounding error of the time is no work that remains.
        let is_over = |running: &Running<T>| running.remaining_s <= 1e-9;
        if self.running.iter().any(is_over) {
            self.changed = true;
            ended.extend(self.running.iter().filter(|r| is_over(r)).map(|r| r.item));
            self.running.retain(|running| !is_over(running));
        }
    }

    /// Returns the use of the shared resources until now.
    #[must_use]
    pub fn used(&self) -> Used {
        self.used
    }

    fn set_speeds(&mut self) {
        if std::mem::replace(&mut self.changed, false) {
            let load = self
                .shared
                .load(self.running.iter().map(|running| &running.demand));
            for running in &mut self.running {
                running.speed = self.shared.speed(&running.demand, &load);
            }
        }
    }
}
