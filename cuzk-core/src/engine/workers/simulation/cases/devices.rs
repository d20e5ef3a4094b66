//! Devices that fail: where their partitions go, and which devices get work.

use std::sync::OnceLock;

use cuzk_groth16::CircuitForm;
use cuzk_groth16::backend::Evaluation;

use super::*;
use crate::engine::attempt::Attempt;
use crate::engine::fleet::Claim;
use crate::job::Owner as _;
use crate::timeline::Stage;

impl Case {
    fn is_trusted(&self, device: usize) -> bool {
        let slot = self.core().fleet.slot(device).unwrap();
        slot.health.is_trusted()
    }

    fn faults(&self, device: usize) -> u64 {
        let slot = self.core().fleet.slot(device).unwrap();
        slot.health.report().faults
    }
}

#[test]
fn what_waits_for_a_device_that_is_out_goes_to_the_retry_worker() {
    let case = Case::new(1, false);
    let job = case.accept(POREP, 2);
    case.make_ready(2);
    case.core().requeue_stranded();
    assert!(case.waiting().is_empty(), "the device is there");
    let lines = logged(|| assert!(case.start(0, Deed::ErrorInStart).is_none()));
    let again = lines.matches("a partition has to be proved again");
    assert_eq!(again.count(), 1, "{lines}");
    assert!(!case.is_trusted(0) && case.core().dispatch.ready.is_empty());
    let number = job.number();
    let mut waiting = case.waiting();
    waiting.sort_unstable_by_key(|(_, partition, _)| *partition);
    assert_eq!(
        waiting,
        [0, 1].map(|partition| (number, partition, Lane::Retry))
    );
    case.core().dispatch.admission.visit_waiting(|attempt, _| {
        let failed_on: &[usize] = if attempt.partition == 0 { &[0] } else { &[] };
        assert_eq!(attempt.excluded_devices, failed_on);
    });
    case.work();
    assert!(job.outcome().unwrap().is_ok());
}

#[test]
fn what_waits_for_another_device_stays() {
    let case = Case::new(2, false);
    let job = case.accept(POREP, 2);
    case.make_ready(2);
    assert!(case.start(0, Deed::ErrorInStart).is_none());
    assert_eq!(case.waiting(), [(job.number(), 0, Lane::Common)]);
    assert_eq!(case.core().dispatch.ready.len(), 1);
    assert_eq!(case.core().fleet.num_trusted(), 1);
    // The second device proves both, the first one none.
    case.work();
    assert!(job.outcome().unwrap().is_ok());
    let good = |device: usize| case.core().fleet.slot(device).unwrap().health.report().good;
    assert_eq!((good(0), good(1)), (0, 2));
}

#[test]
fn a_critical_attempt_without_a_device_goes_to_its_worker() {
    let case = Case::new(1, false);
    let job = case.accept(WINNING, 1);
    assert_eq!(case.waiting(), [(job.number(), 0, Lane::Critical)]);
    assert!(case.dedicated(Lane::Critical));
    assert_eq!(
        case.core().dispatch.ready.len(),
        1,
        "it was brought to the device"
    );
    let other = case.accept(POREP, 1);
    let synthesized = case.synthesize().unwrap();
    let region = case.begin(0, synthesized, Deed::ErrorInStart);
    assert!(case.answer(region).is_none());
    let expected = [
        (job.number(), 0, Lane::Critical),
        (other.number(), 0, Lane::Retry),
    ];
    assert_eq!(case.waiting(), expected);
    assert!(case.dedicated(Lane::Critical));
    assert!(job.outcome().unwrap().is_ok(), "its worker proves it");
}

#[test]
fn an_attempt_whose_devices_went_out_before_its_synthesis_is_not_synthesized() {
    let case = Case::new(1, false);
    let jobs = [case.accept(POREP, 1), case.accept(POREP, 1)];
    case.make_ready(1);
    let admitted = case.admit(Lane::Common).unwrap();
    assert!(case.start(0, Deed::ErrorInStart).is_none());
    assert!(synthesis::take(case.core(), admitted).is_none());
    let expected = jobs.each_ref().map(|job| (job.number(), 0, Lane::Retry));
    assert_eq!(case.waiting(), expected);
}

#[test]
fn a_circuit_that_does_not_fit_is_not_brought_to_the_device_again() {
    let case = Case::new(2, false);
    let core = case.core();
    let job = case.accept(POREP, 1);
    assert!(core.fleet.too_small_for(id(POREP)).is_empty());
    case.make_ready(1);
    assert!(case.start(1, Deed::TooLarge).is_none());
    assert_eq!(core.fleet.too_small_for(id(POREP)), [1]);
    assert!(core.fleet.too_small_for(id(WINDOW)).is_empty());
    assert_eq!(
        (case.is_trusted(1), case.faults(1)),
        (true, 0),
        "that is no fault"
    );
    case.work();
    assert!(job.outcome().unwrap().is_ok());
    // The next job knows it.
    case.accept(POREP, 1);
    case.make_ready(1);
    assert!(case.claim(1).is_none());
    assert!(case.claim(0).is_some());
    core.fleet.record_too_large(0, id(POREP));
    core.fleet.record_too_large(9, id(POREP));
    assert_eq!(core.fleet.too_small_for(id(POREP)), [0, 1]);
    let job = case.accept(POREP, 1);
    assert_eq!(case.waiting(), [(job.number(), 0, Lane::Retry)]);
    core.reinstate(1).unwrap();
    assert_eq!(core.fleet.too_small_for(id(POREP)), [0]);
}

#[test]
fn a_device_is_reinstated_if_it_owes_no_answer() {
    let mut case = Case::new(2, false);
    case.accept(POREP, 2);
    case.make_ready(2);
    assert!(case.start(0, Deed::ErrorInStart).is_none());
    let silent = case.claim(1).unwrap();
    let silent = case.begin(1, silent, Deed::Prove);
    case.pass(61);
    case.watch();
    let fleet = &case.core().fleet;
    assert_eq!(fleet.num_trusted(), 0);
    assert!(fleet.reinstate(0).unwrap(), "it was out");
    assert!(!fleet.reinstate(0).unwrap(), "it is trusted");
    assert_eq!(fleet.num_trusted(), 1);
    let refused = fleet.reinstate(2).unwrap_err();
    assert!(
        refused.is_input() && refused.to_string().contains("below 2, got 2"),
        "{refused}"
    );
    let refused = case.core().reinstate(1).unwrap_err().to_string();
    assert!(refused.contains("still owes an answer"), "{refused}");
    assert!(case.answer(silent).is_none(), "it comes too late");
    assert!(!case.is_trusted(1));
    case.core().reinstate(1).unwrap();
    assert!(case.is_trusted(1));
}

#[test]
fn the_failure_of_an_attempt_that_nobody_needs_counts_for_nothing() {
    let mut case = Case::new(1, false);
    let job = case.accept(POREP, 2);
    case.make_ready(2);
    let ready = case.claim(0).unwrap();
    let region = case.begin(0, ready, Deed::ErrorInStart);
    assert!(case.core().cancel(&job));
    assert!(case.answer(region).is_none());
    assert_eq!((case.is_trusted(0), case.faults(0)), (true, 0));
    // But a device that does not answer is out.
    let job = case.accept(POREP, 1);
    case.make_ready(1);
    let ready = case.claim(0).unwrap();
    let silent = case.begin(0, ready, Deed::Prove);
    assert!(case.core().cancel(&job));
    case.pass(61);
    case.watch();
    assert_eq!((case.is_trusted(0), case.faults(0)), (false, 1));
    assert!(case.waiting().is_empty());
    assert!(case.answer(silent).is_none());
}

#[test]
fn the_fleet_says_what_its_devices_are() {
    for are_this_cpu in [false, true] {
        let case = Case::new(2, are_this_cpu);
        let fleet = &case.core().fleet;
        assert_eq!(fleet.any_is_this_cpu(), are_this_cpu);
        let first = fleet.sums_bits().map(|(device, _)| device);
        assert_eq!(first, are_this_cpu.then_some(0));
        let slots = fleet.slots().map(|(slot, role, _)| (slot, role));
        let expected = [(0, "device"), (1, "device"), (2, "critical"), (3, "retry")];
        assert_eq!(slots.collect::<Vec<_>>(), expected);
        assert_eq!((fleet.devices().len(), fleet.num_trusted()), (2, 2));
        let name = case.core().timeline.names().device(0);
        let kind = if are_this_cpu { "CPU" } else { "GPU" };
        assert_eq!(name, format!("device 0 ({kind})"));
        let name = case.core().timeline.names().device(2);
        assert_eq!(name, "device 2 (CPU, critical worker)");
        assert!(fleet.slot(3).is_some() && fleet.slot(4).is_none());
        assert!(fleet.dedicated(1).is_none() && fleet.dedicated(2).is_some());
        assert!(fleet.throttle().is_some());
        assert!(fleet.slot(0).unwrap().health.fault("a test says so"));
        let first = fleet.sums_bits().map(|(device, _)| device);
        assert_eq!(first, are_this_cpu.then_some(1), "the first one is out");
    }
}

#[test]
fn a_device_takes_what_it_may_prove() {
    let mut case = Case::new(1, false);
    let [normal, critical] = [POREP, WINNING].map(|kind| case.accept(kind, 1));
    let [normal, critical] = [normal, critical].map(|job| Attempt::new(job, 0));
    assert!(
        case.core()
            .fleet
            .slot(0)
            .unwrap()
            .health
            .fault("a test says so")
    );
    let claims = |case: &Case| {
        [&normal, &critical].map(|attempt| match case.core().fleet.claim(0, attempt) {
            Claim::No => "no",
            Claim::Yes => "yes",
            Claim::Trial(_) => "on trial",
        })
    };
    assert_eq!(claims(&case), ["no", "no"]);
    assert!(!case.core().fleet.any_is_rested());
    case.pass(31);
    assert!(case.core().fleet.any_is_rested());
    assert_eq!(claims(&case), ["on trial", "no"]);
    case.core().reinstate(0).unwrap();
    assert_eq!(claims(&case), ["yes", "yes"]);
    assert!(
        matches!(case.core().fleet.claim(1, &normal), Claim::No),
        "there is none"
    );
}

/// The devices keep something for a circuit and for its parameters.
#[test]
fn devices_let_go_of_what_is_evicted() {
    let case = Case::new(2, false);
    case.accept(POREP, 1);
    let admitted = case.admit(Lane::Common).unwrap();
    let evictions = || case.life.devices.iter().map(|device| device.evictions());
    let fleet = &case.core().fleet;
    assert_eq!(fleet.kept_bytes(&admitted.circuit), 2 * (50 << 20));
    assert!(evictions().all(|gone| gone == (0, 0)));
    fleet.evict(&admitted.circuit);
    assert!(evictions().all(|gone| gone == (1, 0)));
    fleet.evict_params(admitted.params.mapped());
    assert!(evictions().all(|gone| gone == (1, 1)));
    let own = case.life.own_devices.each_ref();
    assert_eq!(own.map(|device| device.evictions()), [(1, 0); 2]);
}

#[test]
fn critical_work_is_evaluated_where_its_device_does_not_do_so() {
    for form in [CircuitForm::Compiled, CircuitForm::Plain] {
        let case = Case::with(1, false, |sizes| sizes.config.synthesis.circuit = form);
        case.accept(WINNING, 1);
        assert!(case.dedicated(Lane::Critical));
        let evaluation = case.claim(0).unwrap().synthesized.evaluation;
        let is_evaluated = matches!(evaluation, Evaluation::Done(_));
        assert_eq!(is_evaluated, form == CircuitForm::Plain);
    }
}

/// This CPU tells of its region while it computes. A GPU tells the times afterwards.
#[test]
fn a_gpu_is_shown_at_work_while_it_is_called() {
    for is_this_cpu in [false, true] {
        let case = Case::new(1, is_this_cpu);
        let job = case.accept(POREP, 1);
        case.make_ready(1);
        let is_shown = Arc::new(OnceLock::new());
        let seen = Arc::clone(&is_shown);
        case.life.devices[0].meanwhile(move || {
            let shown = job.live().partitions()[0].stage == Some(Stage::Device);
            seen.set(shown).unwrap();
        });
        let (ready, slot) = (case.claim(0).unwrap(), case.core().fleet.slot(0).unwrap());
        assert!(device::start(case.core(), (0, slot), ready).is_some());
        assert_eq!(is_shown.get(), Some(&!is_this_cpu));
    }
}
