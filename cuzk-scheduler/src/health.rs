//! The record of a device's faults, which decides if it gets work.
//!
//! It counts faults, and finds no causes. The invariants:
//!
//! * A device whose faults outweigh its good work is out: it gets no work.
//! * It comes back after a rest, by one piece of work that goes well. Each rest is
//!   twice as long as the one before. It also comes back if a caller reinstates it.
//! * A device that still owes an answer does not come back.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// The pieces of good work that make up for a fault. A device that fails more often
/// than once in so many is out sooner or later.
const GOOD_PER_FAULT: u32 = 8;

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The record of one device.
pub struct Health {
    /// The number of faults in a row after which the device is out.
    faults_max: u32,
    /// The length of the first rest.
    rest: Duration,
    record: Mutex<Record>,
}

#[derive(Clone, Debug)]
struct Record {
    score: u32,
    faults: u64,
    good: u64,
    last_fault: Option<String>,
    standing: Standing,
    next_rest: Duration,
    /// The pieces of work that were given up and not answered. Negative for a moment,
    /// if an answer is reported before the work is given up.
    unanswered: i32,
    next_trial: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Trusted,
    /// Out. It may be tried after this instant.
    Resting(Instant),
    /// Out, except for one piece of work.
    OnTrial(u64),
}

/// One piece of work for a device that is out. A trial that is dropped without a result
/// counts as not given.
pub struct Trial {
    health: Arc<Health>,
    number: u64,
}

/// The state of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Pieces of work that went well.
    pub good: u64,
    /// Pieces of work that failed.
    pub faults: u64,
    /// The last fault.
    pub last_fault: Option<String>,
    /// True if it gets no work, except for a trial now and then.
    pub quarantined: bool,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&*self.lock()).finish()
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.number).finish()
    }
}

impl Health {
    /// Returns the record of a new device. It is out after `faults_max` faults in a
    /// row, at least one, and is tried again after `rest`.
    #[must_use]
    pub fn new(faults_max: u32, rest: Duration) -> Self {
        let rest = rest.min(REST_MAX);
        Self {
            faults_max: faults_max.max(1),
            rest,
            record: Mutex::new(Record {
                score: 0,
                faults: 0,
                good: 0,
                last_fault: None,
                standing: Standing::Trusted,
                next_rest: rest,
                unanswered: 0,
                next_trial: 0,
            }),
        }
    }

    /// Records a piece of work that went well and was no [`Trial`].
    pub fn good(&self) {
        let mut record = self.lock();
        record.good += 1;
        record.score = record.score.saturating_sub(1);
        if record.score == 0 {
            record.next_rest = self.rest;
        }
    }

    /// Records a piece of work that failed. Returns true if the device is out because
    /// of it.
    pub fn fault(&self, problem: &str) -> bool {
        let mut record = self.lock();
        record.note(problem);
        record.score = record.score.saturating_add(GOOD_PER_FAULT);
        let out = record.score >= self.faults_max.saturating_mul(GOOD_PER_FAULT);
        let newly = match record.standing {
            Standing::Trusted => out,
            Standing::Resting(_) => false,
            Standing::OnTrial(_) => true,
        };
        if newly {
            record.rest();
        }
        newly
    }

    /// Records that a piece of work was given up because the device did not answer. The
    /// device is out, at least until [`Health::answered`].
    pub fn silent(&self, problem: &str) {
        let mut record = self.lock();
        record.note(problem);
        record.unanswered += 1;
        record.rest();
    }

    /// Records that the device answered after it was given up, whatever the answer was.
    pub fn answered(&self) {
        self.lock().unanswered -= 1;
    }

    /// Returns true if the device is not out.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.lock().standing == Standing::Trusted
    }

    /// Returns true if the device is out and has rested enough to be tried.
    #[must_use]
    pub fn is_rested(&self) -> bool {
        self.lock().is_rested()
    }

    /// Returns the right to give a rested device one piece of work.
    #[must_use]
    pub fn try_it(self: &Arc<Self>) -> Option<Trial> {
        let mut record = self.lock();
        if !record.is_rested() {
            return None;
        }
        let number = record.next_trial;
        record.next_trial += 1;
        record.standing = Standing::OnTrial(number);
        drop(record);
        let health = Arc::clone(self);
        Some(Trial { health, number })
    }

    /// Trusts the device again as if it had no faults, unless it still owes an answer.
    /// Returns true if it is trusted now.
    #[must_use]
    pub fn reinstate(&self) -> bool {
        let mut record = self.lock();
        if record.unanswered <= 0 {
            record.score = 0;
            record.next_rest = self.rest;
            record.standing = Standing::Trusted;
        }
        record.standing == Standing::Trusted
    }

    /// Returns the state of the device.
    #[must_use]
    pub fn report(&self) -> Report {
        let record = self.lock();
        Report {
            good: record.good,
            faults: record.faults,
            last_fault: record.last_fault.clone(),
            quarantined: record.standing != Standing::Trusted,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn note(&mut self, problem: &str) {
        self.faults += 1;
        self.last_fault = Some(problem.to_owned());
    }

    fn rest(&mut self) {
        self.standing = Standing::Resting(clock::now() + self.next_rest);
        self.next_rest = self.next_rest.saturating_mul(2).min(REST_MAX);
    }

    fn is_rested(&self) -> bool {
        match self.standing {
            Standing::Resting(until) => self.unanswered <= 0 && until <= clock::now(),
            Standing::Trusted | Standing::OnTrial(_) => false,
        }
    }
}

impl Trial {
    /// Records that the trial went well. The device is trusted. The next fault puts it
    /// out again, unless good work has made up for the last one. Returns true if it is
    /// trusted because of this trial.
    pub fn passed(self) -> bool {
        let mut record = self.health.lock();
        record.good += 1;
        let counts = record.standing == Standing::OnTrial(self.number);
        if counts {
            record.standing = Standing::Trusted;
            record.score = (self.health.faults_max - 1).saturating_mul(GOOD_PER_FAULT);
        }
        counts
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let mut record = self.health.lock();
        if record.standing == Standing::OnTrial(self.number) {
            record.standing = Standing::Resting(clock::now());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NO_REST: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(3600);

    fn out(rest: Duration) -> Arc<Health> {
        let health = Arc::new(Health::new(1, rest));
        assert!(health.fault("wrong point"));
        health
    }

    #[test]
    fn faults_in_a_row_put_a_device_out() {
        let health = Health::new(3, LONG);
        assert!(!health.fault("first"));
        assert!(!health.fault("second"));
        assert!(health.is_trusted());
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
            let health = Health::new(3, LONG);
            (0..100).find(|_| {
                (0..good_between).for_each(|_| health.good());
                health.fault("wrong point")
            })
        };
        assert_eq!(out_after(GOOD_PER_FAULT), None);
        assert!(out_after(GOOD_PER_FAULT / 2).is_some());
    }

    #[test]
    fn a_rested_device_is_tried_once_at_a_time() {
        let health = out(NO_REST);
        let trial = health.try_it().unwrap();
        assert!(!health.is_rested() && health.try_it().is_none());
        assert!(health.report().quarantined);
        drop(trial);
        assert!(health.is_rested(), "nothing was learned");
        assert!(health.try_it().unwrap().passed());
        assert!(health.is_trusted());
        assert_eq!(health.report().good, 1);
        assert!(health.fault("again"), "it has not made up for the first");
    }

    #[test]
    fn each_rest_is_twice_as_long_until_a_device_has_done_well() {
        let health = Arc::new(Health::new(1, LONG));
        let rest_of = |health: &Health| match health.lock().standing {
            Standing::Resting(until) => until - Instant::now(),
            _ => NO_REST,
        };
        for factor in [1, 2, 4, 8] {
            assert!(health.fault("wrong point"));
            assert!(health.try_it().is_none(), "it rests");
            let rest = rest_of(&health);
            assert!(rest <= LONG * factor && rest > LONG * factor - LONG / 2);
            health.lock().standing = Standing::OnTrial(factor.into());
        }
        for _ in 0..100 {
            health.fault("wrong point");
            health.lock().standing = Standing::OnTrial(0);
        }
        assert!(health.lock().next_rest <= REST_MAX);
        health.lock().standing = Standing::Trusted;
        health.good();
        assert_eq!(health.lock().next_rest, REST_MAX, "one good piece of many");
        while health.lock().score > 0 {
            health.good();
        }
        assert_eq!(health.lock().next_rest, LONG);
    }

    #[test]
    fn a_device_that_owes_an_answer_is_not_tried() {
        let health = Arc::new(Health::new(3, NO_REST));
        health.silent("no answer");
        assert!(health.try_it().is_none() && !health.reinstate());
        health.answered();
        assert!(health.is_rested() && health.reinstate());
        // An answer may be reported before the work is given up.
        health.answered();
        health.silent("no answer");
        assert!(health.is_rested());
    }

    #[test]
    fn a_trial_that_was_overtaken_says_nothing() {
        let health = out(NO_REST);
        let old = health.try_it().unwrap();
        health.silent("no answer");
        health.answered();
        let new = health.try_it().unwrap();
        assert!(!old.passed());
        assert!(!health.is_trusted());
        assert!(new.passed());
        assert!(health.is_trusted());
    }

    #[test]
    fn good_work_after_a_trial_makes_up_for_one_fault() {
        let health = Arc::new(Health::new(2, NO_REST));
        health.fault("first");
        assert!(health.fault("second"));
        assert!(health.try_it().unwrap().passed());
        (0..GOOD_PER_FAULT).for_each(|_| health.good());
        assert!(!health.fault("third"));
        assert!(health.fault("fourth"));
    }

    #[test]
    fn whoever_is_reinstated_starts_anew() {
        let health = Health::new(2, LONG);
        health.fault("first");
        assert!(health.fault("second"));
        assert!(health.reinstate());
        assert!(health.is_trusted());
        assert!(!health.fault("third"));
        assert!(health.reinstate(), "a device that is not out stays in");
    }
}
