//! Where an accepted job waits: in the queue, or in the journal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cuzk_bounded::BoundedJoin as _;
use cuzk_scheduler::admission::{Entrance, Need};

use super::*;
use crate::Error;
use crate::engine::entrance::{await_running, enter, is_idle, may_go};
use crate::metrics::Refusal;

/// An engine whose queue has room for three partitions.
fn of_three() -> Case {
    Case::with(1, false, |sizes| sizes.config.jobs.queued_partitions = 3)
}

impl Case {
    fn in_journal(&self, job: &JobState) -> bool {
        self.core().jobs.waiting.numbers().contains(&job.number())
    }
}

#[test]
fn a_job_without_room_waits_in_the_journal() {
    let case = of_three();
    let core = case.core();
    case.accept(POREP, 3);
    let job = case.submit(request(POREP, 1), waits("a")).unwrap();
    assert!(case.in_journal(&job) && job.input().is_none());
    assert!(!may_go(core, &job));
    let critical = case.submit(request(WINNING, 1), waits("b")).unwrap();
    assert!(case.in_journal(&critical));
    assert!(may_go(core, &critical), "it does not wait for room");
    drop(case.admit(Lane::Common));
    assert!(may_go(core, &job));
    core.dispatch.drain(true);
    assert!(!may_go(core, &job) && may_go(core, &critical));
    assert!(!is_idle(core), "the critical one waits in the journal");
    let next = core.jobs.waiting.take(|_| true).unwrap();
    assert_eq!(
        next.job.number(),
        critical.number(),
        "the most urgent is next"
    );
    assert!(is_idle(core), "a drain holds the other one");
    assert!(core.jobs.waiting.any(|_| true) && !core.jobs.waiting.any(|_| false));
    assert!(core.jobs.waiting.remove(job.number()));
    assert!(!core.jobs.waiting.remove(job.number()) && !core.jobs.waiting.any(|_| true));
}

#[test]
fn a_job_waits_behind_a_more_urgent_one_in_the_journal() {
    let mut case = of_three();
    case.accept(POREP, 3);
    let first = case.submit(request(POREP, 1), waits("first")).unwrap();
    drop(case.admit(Lane::Common));
    case.pass(1);
    let later = case.submit(request(POREP, 1), waits("later")).unwrap();
    assert!(case.in_journal(&first) && case.in_journal(&later));
    let urgent = case.submit(request(WINDOW, 1), waits("urgent")).unwrap();
    assert!(!case.in_journal(&urgent), "there is room for it");
    assert_eq!(case.core().dispatch.admission.usage().waiting, 3);
}

#[test]
fn a_drained_job_waits_in_the_journal_if_it_can() {
    let case = of_three();
    case.core().dispatch.drain(true);
    let job = case.submit(request(POREP, 1), waits("a")).unwrap();
    assert!(case.in_journal(&job));
    let without_id = JobOptions {
        id: None,
        ..waits("b")
    };
    let not_waiting = JobOptions {
        waits: false,
        ..waits("b")
    };
    for options in [without_id, not_waiting] {
        let lines = logged(|| {
            let refused = case.submit(request(POREP, 1), options);
            assert!(matches!(refused, Err(Error::ShuttingDown)));
        });
        assert!(lines.contains("the job is refused after all"), "{lines}");
    }
    assert!(case.disk.row("b").is_none(), "nothing is kept of it");
    // An urgent one is begun.
    let urgent = case.submit(request(WINDOW, 1), waits("c")).unwrap();
    assert!(!case.in_journal(&urgent));
}

/// The thread that takes jobs out of the journal has ended.
#[test]
fn a_job_that_comes_too_late_to_the_journal_is_refused() {
    let case = of_three();
    let core = case.core();
    let job = case.accept(POREP, 3);
    core.dispatch.admission.close();
    assert!(matches!(enter(core, &job, true), Err(Error::ShuttingDown)));
    assert!(!case.in_journal(&job));
}

#[test]
fn a_job_that_has_ended_does_not_wait_in_the_journal() {
    let case = of_three();
    let core = case.core();
    let (job, other) = (case.accept(POREP, 1), case.accept(POREP, 2));
    assert!(core.end(&job, Error::Cancelled));
    core.queue(&other, vec![0, 1], Entrance::AtOnce).unwrap();
    assert!(enter(core, &job, true).is_ok());
    assert!(!case.in_journal(&job));
}

/// The end of an engine waits for what runs, until its time has come.
#[test]
fn nothing_is_waited_for_where_nothing_runs_or_the_time_has_come() {
    let case = of_three();
    await_running(case.core(), None);
    case.accept(POREP, 1);
    let _running = case.admit(Lane::Common).unwrap();
    await_running(case.core(), Some(Instant::now()));
}

#[test]
fn what_runs_is_waited_for() {
    let case = of_three();
    case.accept(POREP, 1);
    let running = case.admit(Lane::Common).unwrap();
    let core = Arc::clone(case.core());
    let waiter = thread::spawn(move || await_running(&core, None));
    thread::sleep(Duration::from_millis(50));
    assert!(!waiter.is_finished());
    drop(running);
    waiter.join_bounded().unwrap();
}

#[test]
fn a_change_of_jobs_is_waited_for() {
    let case = Case::new(1, false);
    let core = Arc::clone(case.core());
    let is_changed = Arc::new(AtomicBool::new(false));
    let changed = Arc::clone(&is_changed);
    let waiter = thread::spawn(move || {
        let is_done = || changed.load(Ordering::SeqCst);
        core.jobs.wait(Duration::from_secs(3600), is_done);
        assert!(is_done());
    });
    thread::sleep(Duration::from_millis(50));
    assert!(!waiter.is_finished());
    is_changed.store(true, Ordering::SeqCst);
    case.core().jobs.notify();
    waiter.join_bounded().unwrap();
}

#[test]
fn work_stops_with_its_job() {
    let case = Case::new(1, false);
    let core = case.core();
    let job = case.accept(POREP, 1);
    let admitted = case.admit(Lane::Common).unwrap();
    let checkpoint = core.dispatch.checkpoint(&admitted.attempt);
    assert!(checkpoint.check().is_ok());
    assert!(core.end(&job, Error::Cancelled));
    assert!(checkpoint.check().is_err());
}

#[test]
fn a_job_that_is_not_accepted_has_a_line() {
    let case = Case::new(1, false);
    let jobs = &case.core().jobs;
    let line = |reason| {
        let log = || jobs.log_not_accepted(("porep", None), reason, &Error::ShuttingDown);
        logged(log)
    };
    assert!(line(Refusal::Invalid).contains("a job is not accepted"));
    assert_eq!(line(Refusal::Busy), "", "its caller calls again");
    jobs.log_less();
    assert_eq!(line(Refusal::Invalid), "");
}

#[test]
fn a_job_that_ends_has_a_line() {
    let case = Case::new(1, false);
    let job = case.accept(POREP, 1);
    let lines = logged(|| assert!(case.core().end(&job, Error::Cancelled)));
    assert!(lines.contains("the job has ended"), "{lines}");
}

#[test]
fn an_engine_is_idle_if_nothing_waits_or_runs() {
    let case = Case::new(1, false);
    let core = case.core();
    assert!(is_idle(core));
    case.accept(POREP, 2);
    assert!(!is_idle(core), "two partitions wait");
    let running = [(); 2].map(|()| case.admit(Lane::Common).unwrap());
    assert!(!is_idle(core), "two partitions run");
    let in_background = [(); 2].map(|()| {
        let need = Need::own(1);
        core.dispatch.admission.reserve(&need).unwrap()
    });
    assert!(!is_idle(core), "other work runs as well");
    drop(running);
    assert!(!is_idle(core), "the other work runs on");
    drop(in_background);
    assert!(is_idle(core));
}

#[test]
fn jobs_are_taken_out_of_the_journal_while_few_partitions_wait() {
    let case = Case::new(1, false);
    let core = case.core();
    let large = case.accept(POREP, 90);
    core.end(&large, Error::Cancelled);
    assert!(may_go(core, &large), "nothing waits");
    case.accept(POREP, 31);
    let small = case.accept(POREP, 1);
    core.end(&small, Error::Cancelled);
    assert_eq!(core.dispatch.admission.usage().waiting, 31);
    assert!(may_go(core, &small));
    assert!(!may_go(core, &large), "31 and 90 are more than 100");
    case.accept(POREP, 1);
    assert!(!may_go(core, &small), "32 wait");
}
