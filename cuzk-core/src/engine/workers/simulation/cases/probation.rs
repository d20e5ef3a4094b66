//! Devices that rest, are on probation, or do not answer.

use std::cell::Cell;

use super::*;
use crate::engine::workers::watchdog;

impl Case {
    /// Has the watchdog look once. Returns the numbers of the finish workers that replace
    /// those that are lost.
    pub(super) fn watch(&mut self) -> Vec<usize> {
        let replaced = Cell::new(Vec::new());
        let replace = |worker| {
            replaced.set([replaced.take(), vec![worker]].concat());
            Ok(())
        };
        watchdog::look(&self.life.core, &mut self.life.lost, &replace);
        replaced.take()
    }

    /// Puts the only device into quarantine, and has it rest.
    fn rest(&mut self) {
        let slot = self.core().fleet.slot(0).unwrap();
        assert!(slot.health.fault("a test says so"));
        self.pass(31);
    }
}

#[test]
fn a_device_on_probation_has_one_partition_and_comes_back() {
    let mut case = Case::new(1, false);
    case.rest();
    let job = case.accept(POREP, 2);
    case.make_ready(2);
    let ready = case.claim(0).unwrap();
    assert!(ready.attempt.trial.is_some());
    // The other one does not wait for the result.
    assert!(case.core().dispatch.ready.is_empty());
    assert_eq!(case.waiting(), [(job.number(), 1, Lane::Retry)]);
    let region = case.begin(0, ready, Deed::Prove);
    let finishing = case.answer(region).unwrap();
    assert_eq!(case.core().fleet.num_trusted(), 0);
    assert!(case.finish(finishing));
    assert_eq!(case.core().fleet.num_trusted(), 1);
    assert_eq!(job.progress().partitions_done, 1);
    case.work();
    assert!(job.outcome().unwrap().is_ok());
}

#[test]
fn a_device_that_fails_on_probation_rests_again() {
    let mut case = Case::new(1, false);
    case.rest();
    case.accept(POREP, 1);
    case.make_ready(1);
    let region = case.claim(0).unwrap();
    let region = case.begin(0, region, Deed::ErrorInStart);
    assert!(case.answer(region).is_none());
    let report = case.core().fleet.slot(0).unwrap().health.report();
    assert_eq!((report.quarantined, report.faults), (true, 2));
    case.pass(31);
    assert!(!case.core().fleet.any_is_rested(), "it rests longer");
    case.pass(30);
    assert!(case.core().fleet.any_is_rested());
}

/// A proof that is rejected decides about the device only after its statement was checked.
#[test]
fn a_trial_lasts_until_the_statement_was_checked() {
    let mut case = Case::new(1, false);
    case.rest();
    let job = case.accept(POREP, 1);
    case.make_ready(1);
    let region = case.claim(0).unwrap();
    let region = case.begin(0, region, Deed::ProveAnother);
    let finishing = case.answer(region).unwrap();
    assert!(case.finish(finishing));
    assert_eq!(case.waiting(), [(job.number(), 0, Lane::Common)]);
    let mut is_on_trial = false;
    case.core().dispatch.admission.visit_waiting(|attempt, _| {
        is_on_trial = attempt.trial.is_some() && attempt.rejected.is_some();
    });
    assert!(is_on_trial);
    assert!(
        case.synthesize().is_none(),
        "the statement is checked, and holds"
    );
    assert_eq!(case.waiting(), [(job.number(), 0, Lane::Retry)]);
    assert_eq!(case.core().fleet.slot(0).unwrap().health.report().faults, 2);
    case.work();
    assert!(job.outcome().unwrap().is_ok());
}

#[test]
fn a_device_is_given_up_after_its_time() {
    let mut case = Case::new(1, false);
    let job = case.accept(POREP, 1);
    case.make_ready(1);
    let ready = case.claim(0).unwrap();
    let region = case.begin(0, ready, Deed::Prove);
    let beats = |case: &Case| case.core().dispatch.heartbeat.count();
    case.pass(60);
    let before = beats(&case);
    assert!(case.watch().is_empty());
    assert!(beats(&case) > before, "it computes");
    assert!(case.waiting().is_empty() && case.core().fleet.num_trusted() == 1);
    case.pass(1);
    let before = beats(&case);
    assert!(case.watch().is_empty(), "its worker is its own");
    assert_eq!(beats(&case), before, "it has no time left");
    let report = case.core().fleet.slot(0).unwrap().health.report();
    let fault = report.last_fault.unwrap();
    assert!(fault.contains("did not answer within 60 s"), "{fault}");
    assert!(report.quarantined);
    assert_eq!(case.waiting(), [(job.number(), 0, Lane::Retry)]);
    let used_bytes = case.core().dispatch.admission.usage().used_bytes;
    assert!(case.answer(region).is_none());
    assert!(
        case.core().dispatch.admission.usage().used_bytes < used_bytes,
        "its memory is free"
    );
    case.work();
    assert!(job.outcome().unwrap().is_ok());
}

#[test]
fn a_finish_worker_that_is_lost_to_a_device_is_replaced_once() {
    let mut case = Case::new(1, false);
    let job = case.accept(POREP, 1);
    case.make_ready(1);
    let finishing = case.start(0, Deed::Prove).unwrap();
    let lost = {
        let core = Arc::clone(case.core());
        let (_, call, pending) = finish::begin(&core, finishing).unwrap();
        (call, pending)
    };
    case.pass(61);
    assert_eq!(case.watch(), [2]);
    assert!(case.watch().is_empty());
    let (call, pending) = lost;
    let slot = case.core().fleet.slot(0).unwrap();
    let proof = finish::prove(case.core(), slot, &call, pending);
    assert!(proof.is_ok());
    assert!(
        !finish::end(case.core(), slot, call, proof),
        "it was given up"
    );
    assert_eq!(job.progress().partitions_done, 0);
    case.work();
    assert!(job.outcome().unwrap().is_ok());
}

/// A shutdown that does not wait for jobs gives each device ten seconds.
#[test]
fn a_device_is_given_up_soon_by_an_engine_that_hurries() {
    let mut case = Case::new(1, false);
    case.accept(POREP, 1);
    case.make_ready(1);
    let ready = case.claim(0).unwrap();
    let _region = case.begin(0, ready, Deed::Prove);
    case.core().fleet.watchdog.hurry();
    case.pass(10);
    // A second call gives no more time.
    case.core().fleet.watchdog.hurry();
    case.watch();
    assert_eq!(case.core().fleet.num_trusted(), 1);
    case.pass(1);
    case.watch();
    assert_eq!(case.core().fleet.num_trusted(), 0);
    assert!(case.core().fleet.watchdog.next_look());
    case.core().fleet.watchdog.close();
    assert!(!case.core().fleet.watchdog.next_look());
}

/// It does not stop answering alone, and may be paused.
#[test]
fn this_cpu_has_all_the_time() {
    let mut case = Case::new(1, true);
    let job = case.accept(POREP, 1);
    case.make_ready(1);
    let ready = case.claim(0).unwrap();
    let region = case.begin(0, ready, Deed::Prove);
    case.pass(1 << 20);
    assert!(case.watch().is_empty());
    let finishing = case.answer(region).unwrap();
    assert!(case.finish(finishing));
    assert!(job.outcome().unwrap().is_ok());
}

/// A worker that cannot be replaced now is replaced at a later look.
#[test]
fn a_replacement_is_tried_again() {
    let mut case = Case::new(1, false);
    case.accept(POREP, 2);
    case.make_ready(2);
    let core = Arc::clone(case.core());
    let lose = |case: &Case| {
        let finishing = case.start(0, Deed::Prove).unwrap();
        let (_, call, pending) = finish::begin(&core, finishing).unwrap();
        (call, pending)
    };
    let _lost = [lose(&case), lose(&case)];
    case.pass(61);
    let asked = Cell::new(Vec::new());
    let fails = |worker| {
        asked.set([asked.take(), vec![worker]].concat());
        Err(crate::Error::Stopped)
    };
    for _ in 0..2 {
        watchdog::look(&core, &mut case.life.lost, &fails);
    }
    // The first two finish workers have the numbers below.
    assert_eq!(asked.take(), [2, 2]);
    assert_eq!(case.watch(), [2, 3], "both are replaced now");
    assert!(case.watch().is_empty());
}
