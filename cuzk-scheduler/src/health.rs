//! Whether a device can still be trusted with work.
//!
//! Not a diagnosis: it counts faults. The invariant: a device whose faults
//! outweigh its good work is out, and stays out until it is told otherwise.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pieces of good work that make up for a fault. A device that fails more often
/// than once in these is out sooner or later.
const GOOD_PER_FAULT: u32 = 8;

/// The faults of one device.
pub struct Health {
    /// Faults in a row after which the device is out.
    faults_max: u32,
    record: Mutex<Record>,
}

#[derive(Clone, Debug, Default)]
struct Record {
    score: u32,
    faults: u64,
    good: u64,
    last_fault: Option<String>,
    quarantined: bool,
}

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Pieces of work that went well.
    pub good: u64,
    /// Pieces of work that did not.
    pub faults: u64,
    /// What went wrong last.
    pub last_fault: Option<String>,
    /// Whether it gets no more work.
    pub quarantined: bool,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&*self.lock()).finish()
    }
}

impl Health {
    /// A device that is out after `faults_max` faults in a row, and at least one.
    #[must_use]
    pub fn new(faults_max: u32) -> Self {
        Self {
            faults_max: faults_max.max(1),
            record: Mutex::default(),
        }
    }

    /// A piece of work went well.
    pub fn good(&self) {
        let mut record = self.lock();
        record.good += 1;
        record.score = record.score.saturating_sub(1);
    }

    /// A piece of work did not. Whether the device is out because of that.
    pub fn fault(&self, problem: &str) -> bool {
        let mut record = self.lock();
        record.faults += 1;
        record.score = record.score.saturating_add(GOOD_PER_FAULT);
        record.last_fault = Some(problem.to_owned());
        let out = record.score >= self.faults_max.saturating_mul(GOOD_PER_FAULT);
        let newly = out && !record.quarantined;
        record.quarantined |= out;
        newly
    }

    /// Puts the device out at once, as one that does not answer.
    pub fn quarantine(&self, problem: &str) {
        let mut record = self.lock();
        record.faults += 1;
        record.last_fault = Some(problem.to_owned());
        record.quarantined = true;
    }

    /// Whether the device gets no more work.
    #[must_use]
    pub fn is_quarantined(&self) -> bool {
        self.lock().quarantined
    }

    /// What is known of the device.
    #[must_use]
    pub fn report(&self) -> Report {
        let record = self.lock();
        Report {
            good: record.good,
            faults: record.faults,
            last_fault: record.last_fault.clone(),
            quarantined: record.quarantined,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn faults_in_a_row_put_a_device_out() {
        let health = Health::new(3);
        assert!(!health.fault("first"));
        assert!(!health.fault("second"));
        assert!(!health.is_quarantined());
        assert!(health.fault("third"));
        assert!(!health.fault("told once"));
        health.good();
        let report = health.report();
        assert!(report.quarantined);
        assert_eq!((report.good, report.faults), (1, 4));
        assert_eq!(report.last_fault.as_deref(), Some("told once"));
    }

    #[test]
    fn a_rare_fault_is_forgiven_and_a_frequent_one_is_not() {
        let out_after = |good_between: u32| {
            let health = Health::new(3);
            (0..100).find(|_| {
                (0..good_between).for_each(|_| health.good());
                health.fault("wrong point")
            })
        };
        assert_eq!(out_after(GOOD_PER_FAULT), None);
        assert!(out_after(GOOD_PER_FAULT / 2).is_some());
    }
}
