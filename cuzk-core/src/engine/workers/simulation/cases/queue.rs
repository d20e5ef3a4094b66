//! The dispatcher: bounds, drains, places in the order, and the pause for critical work.

use std::time::Duration;

use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::{Entrance, Need, Ticket};
use cuzk_scheduler::priority::Priority;

use super::*;
use crate::Error;
use crate::engine::attempt::Attempt;
use crate::engine::dispatch::{is_overtaken, limits, take_waiting};
use crate::engine::entrance::{held_last, is_held, is_idle};
use crate::engine::preload;
use crate::engine::submission::handle;
use crate::job::Owner as _;

const MIB: u64 = 1 << 20;

#[test]
fn a_handle_asks_its_job() {
    let mut case = Case::new(1, false);
    let job = case.submit(request(POREP, 1), waits("a")).unwrap();
    let handle = handle(case.core(), Arc::clone(&job));
    assert_eq!(handle.id(), Some("a"));
    handle.set_priority(Priority::High);
    assert_eq!(job.priority(), Priority::High);
    case.pass(7);
    assert_eq!(handle.times().total, Duration::from_secs(7));
}

#[test]
fn a_drain_holds_what_can_wait_and_nothing_else() {
    let case = Case::new(1, false);
    let (core, options) = (case.core(), JobOptions::default());
    assert!(is_idle(core));
    let held = case.accept(POREP, 1);
    assert!(!is_idle(core) && !core.dispatch.is_draining() && !is_held(core, &held));
    core.dispatch.drain(true);
    assert!(core.dispatch.is_draining() && is_held(core, &held));
    assert!(is_idle(core), "held work is not counted");
    assert!(case.admit(Lane::Common).is_none());
    let refused = case.submit(request(POREP, 1), options).unwrap_err();
    assert!(matches!(refused, Error::ShuttingDown), "{refused}");
    let urgent = case.accept(WINDOW, 1);
    assert!(!is_held(core, &urgent) && !is_idle(core));
    let order = held_last(core)
        .iter()
        .map(|job| job.number())
        .collect::<Vec<_>>();
    assert_eq!(order, [urgent.number(), held.number()]);
    let next = case.admit(Lane::Common).unwrap();
    assert_eq!(next.attempt.job.number(), urgent.number());
    assert!(!is_idle(core), "a partition runs");
    drop(next);
    assert!(is_idle(core));
    core.dispatch.drain(false);
    assert!(!core.dispatch.is_draining() && !is_idle(core));
    let next = case.admit(Lane::Common).unwrap();
    assert_eq!(next.attempt.job.number(), held.number());
}

#[test]
fn a_closed_engine_accepts_nothing_and_does_what_it_has() {
    let case = Case::new(1, false);
    let (core, job) = (case.core(), case.accept(POREP, 1));
    assert!(!core.dispatch.admission.is_closed());
    core.close();
    assert!(core.dispatch.admission.is_closed());
    let check = core.dispatch.check_room(0).unwrap_err();
    assert!(matches!(check, Error::ShuttingDown));
    for kind in [POREP, WINNING] {
        let refused = case.submit(request(kind, 1), JobOptions::default());
        assert!(matches!(refused.unwrap_err(), Error::ShuttingDown));
    }
    case.work();
    assert!(job.outcome().unwrap().is_ok());
}

#[test]
fn a_queue_takes_what_it_has_room_for() {
    let case = Case::with(1, false, |sizes| sizes.config.jobs.queued_partitions = 3);
    let dispatch = &case.core().dispatch;
    assert!(dispatch.check_partitions(0).unwrap_err().is_input());
    assert!(dispatch.check_partitions(3).is_ok());
    let refused = dispatch.check_partitions(4).unwrap_err().to_string();
    assert!(
        refused.contains("has 4 partitions and the queue holds 3"),
        "{refused}"
    );
    let job = case.accept(POREP, 2);
    assert!(dispatch.check_room(1).is_ok());
    assert!(matches!(
        dispatch.check_room(2),
        Err(Error::Busy { capacity: 3 })
    ));
    let refused = case.submit(request(POREP, 2), JobOptions::default());
    assert!(matches!(refused, Err(Error::Busy { capacity: 3 })));
    // More than there is room for can enter in any case.
    case.core()
        .queue(&job, vec![0, 1], Entrance::AtOnce)
        .unwrap();
    assert_eq!(dispatch.admission.usage().waiting, 4);
    assert!(dispatch.check_room(0).is_ok());
    assert!(dispatch.check_room(1).is_err());
}

#[test]
fn a_need_that_can_never_be_met_is_an_error_at_once() {
    let case = Case::new(1, false);
    let (core, dispatch) = (case.core(), &case.core().dispatch);
    let total_bytes = dispatch.admission.usage().total_bytes;
    let check = |bytes| {
        dispatch
            .admission
            .check(Priority::Normal, &Need::own(bytes))
    };
    assert!(check(total_bytes).is_ok() && check(total_bytes + 1).is_err());
    let reserve = |bytes| preload::reserve(core, &Need::own(bytes), &Checkpoint::never());
    drop(reserve(total_bytes).unwrap());
    assert!(matches!(
        reserve(total_bytes + 1).map(drop),
        Err(Error::OverBudget(_))
    ));
    core.close();
    assert!(matches!(reserve(1).map(drop), Err(Error::ShuttingDown)));
}

#[test]
fn the_limits_are_those_of_the_configuration() {
    let case = Case::new(1, false);
    let mut config = case.sizes.config.clone();
    config.memory.total_budget_bytes = 100 * MIB;
    config.memory.safety_margin_bytes = 20 * MIB;
    for (asked, given) in [(30, 30), (40, 40), (41, 40), (90, 40)] {
        config.memory.critical_reserve_bytes = asked * MIB;
        let limits = limits(&config).unwrap();
        assert_eq!(limits.total_bytes, 80 * MIB);
        assert_eq!(limits.critical_reserve_bytes, given * MIB, "{asked}");
        assert_eq!(limits.capacity, config.jobs.queued_partitions);
    }
    for margin in [100, 101] {
        config.memory.safety_margin_bytes = margin * MIB;
        assert!(
            matches!(limits(&config), Err(Error::Start { .. })),
            "{margin}"
        );
    }
}

#[test]
fn waiting_attempts_are_taken_in_their_order() {
    let case = Case::new(1, false);
    let dispatch = &case.core().dispatch;
    let (normal, urgent) = (case.accept(POREP, 3), case.accept(WINDOW, 1));
    let of = |taken: Vec<(Attempt, Ticket)>| {
        let taken = taken.into_iter().map(|(attempt, _)| attempt.partition);
        taken.collect::<Vec<_>>()
    };
    let number = normal.number();
    let is_normal = |attempt: &Attempt| attempt.job.number() == number;
    dispatch.drain(true);
    assert!(
        of(take_waiting(dispatch, 9, is_normal)).is_empty(),
        "they are held"
    );
    dispatch.drain(false);
    assert!(of(take_waiting(dispatch, 0, is_normal)).is_empty());
    assert_eq!(of(take_waiting(dispatch, 2, is_normal)), [0, 1]);
    let left = [
        (urgent.number(), 0, Lane::Common),
        (number, 2, Lane::Common),
    ];
    assert_eq!(case.waiting(), left);
    dispatch.drain(true);
    assert_eq!(
        of(take_waiting(dispatch, 9, |_| true)),
        [0],
        "the urgent one is not held"
    );
    dispatch.drain(false);
    assert_eq!(of(take_waiting(dispatch, 9, |_| true)), [2]);
}

#[test]
fn an_attempt_is_overtaken_by_what_has_its_turn_before() {
    let mut case = Case::new(1, false);
    let first = case.accept(POREP, 1);
    assert!(!is_overtaken(&case.core().dispatch, &first), "by itself");
    case.pass(1);
    let second = case.accept(POREP, 1);
    let dispatch = &case.core().dispatch;
    assert!(!is_overtaken(dispatch, &first));
    assert!(is_overtaken(dispatch, &second));
    dispatch.drain(true);
    assert!(!is_overtaken(dispatch, &second), "the first one is held");
    // By two, which are no less than one.
    let urgent = case.accept(WINDOW, 2);
    assert!(is_overtaken(dispatch, &first) && is_overtaken(dispatch, &second));
    assert!(!is_overtaken(dispatch, &urgent));
}

#[test]
fn a_new_priority_moves_what_waits_for_its_turn() {
    let mut case = Case::new(1, false);
    let mut jobs = Vec::new();
    for _ in 0..3 {
        case.pass(1);
        jobs.push(case.accept(POREP, 1));
    }
    case.core().set_priority(&jobs[2], Priority::High);
    let priorities = jobs.iter().map(|job| job.priority()).collect::<Vec<_>>();
    assert_eq!(
        priorities,
        [Priority::Normal, Priority::Normal, Priority::High]
    );
    let order = || {
        case.waiting()
            .iter()
            .map(|(job, ..)| *job)
            .collect::<Vec<_>>()
    };
    let expected = [2, 0, 1].map(|at: usize| jobs[at].number());
    assert_eq!(order(), expected);
    case.core().set_priority(&jobs[0], Priority::Low);
    assert_eq!(order(), [2, 1, 0].map(|at: usize| jobs[at].number()));
}

#[test]
fn a_new_priority_moves_what_waits_for_a_device() {
    let mut case = Case::with(1, false, |sizes| {
        sizes.config.pipeline.synthesis_lookahead = 3;
    });
    let mut jobs = Vec::new();
    for _ in 0..3 {
        case.pass(1);
        jobs.push(case.accept(POREP, 1));
    }
    case.make_ready(3);
    case.core().set_priority(&jobs[2], Priority::High);
    let order = [(); 3].map(|()| case.claim(0).unwrap().attempt.job.number());
    assert_eq!(order, [2, 0, 1].map(|at: usize| jobs[at].number()));
}

#[test]
fn critical_work_alone_pauses_the_rest() {
    let case = Case::new(1, false);
    let dispatch = &case.core().dispatch;
    for lane in [Lane::Common, Lane::Retry] {
        assert!(dispatch.pause_for(lane).is_none());
    }
    let before = dispatch.pause.quiet();
    assert!(before.is_some());
    let urgent = dispatch.pause_for(Lane::Critical);
    assert!(urgent.is_some() && dispatch.pause.quiet().is_none());
    drop(urgent);
    assert!(dispatch.pause.quiet().is_some());
    assert_ne!(dispatch.pause.quiet(), before);
}

#[test]
fn nothing_enters_a_closed_queue_behind_the_devices() {
    let case = Case::new(1, false);
    let job = case.accept(POREP, 2);
    case.make_ready(1);
    let finishing = case.start(0, Deed::Prove).unwrap();
    case.core().dispatch.finishing.close();
    device::hand_over(case.core(), finishing);
    assert!(case.core().dispatch.finishing.pop().is_none());
    let outcome = job.outcome().unwrap();
    assert!(matches!(*outcome.unwrap_err(), Error::ShuttingDown));

    let job = case.accept(POREP, 1);
    let ready = case.synthesize().unwrap();
    case.core().dispatch.ready.close();
    synthesis::hand_over(case.core(), ready);
    assert!(case.core().dispatch.ready.pop_if(|_| true).is_none());
    let outcome = job.outcome().unwrap();
    assert!(matches!(*outcome.unwrap_err(), Error::ShuttingDown));
}

/// The time of a stage is that between its begin and its end.
#[test]
fn an_attempt_has_spent_the_time_of_its_stages() {
    let mut case = Case::new(1, false);
    let job = case.accept(POREP, 1);
    let mut attempt = case.admit(Lane::Common).unwrap().attempt;
    attempt.spent = Duration::from_secs(2);
    let start = case.now;
    attempt.spend(|_| case.pass(3));
    assert_eq!(attempt.spent, Duration::from_secs(5));
    assert_eq!(case.now.monotonic, start.monotonic + Duration::from_secs(3));
    assert!(!attempt.is_over());
    assert!(case.core().cancel(&job));
    assert!(attempt.is_over());
    assert!(!case.core().cancel(&job), "it has ended");
}
