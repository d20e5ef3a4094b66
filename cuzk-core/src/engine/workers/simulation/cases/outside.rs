//! A place elsewhere, as the engine tells it of partitions.

use std::sync::atomic::{AtomicBool, Ordering};

use cuzk_filecoin::blank;
use cuzk_scheduler::admission::Need;
use cuzk_scheduler::priority::Priority;

use super::*;
use crate::Error;
use crate::engine::dispatch::share;
use crate::engine::status::Status;
use crate::engine::workers::resume::resume_if_readable;
use crate::engine::{Elsewhere, PartitionId, QueuedPartition, Remote};
use crate::job::Place;

/// A place that notes what it is told.
#[derive(Default)]
struct Noted {
    has_all: AtomicBool,
    told: Mutex<Vec<String>>,
}

impl Noted {
    fn note(&self, what: &str, PartitionId { job, partition }: PartitionId) {
        let told = format!("{what} {job}.{partition}");
        self.told.lock().unwrap().push(told);
    }

    /// Returns what it was told since it was last asked.
    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

impl Elsewhere for Noted {
    fn is_left_to_others(&self, priority: Priority) -> bool {
        priority == Priority::Low
    }

    fn has(&self, _: PartitionId) -> bool {
        self.has_all.load(Ordering::Relaxed)
    }

    fn queued(&self, partition: QueuedPartition) {
        self.note("queued", partition.id);
    }

    fn begun(&self, partition: PartitionId) {
        self.note("begun", partition);
    }

    fn ended(&self, partition: PartitionId) {
        self.note("ended", partition);
    }
}

/// An engine with a place elsewhere, which leaves work of low priority to others.
fn shared(change: impl FnOnce(&mut Sizes)) -> (Case, Arc<Noted>) {
    let case = Case::with(1, false, change);
    let place = Arc::new(Noted::default());
    assert!(!case.core().outside.is_there());
    case.core().outside.set(Arc::<Noted>::clone(&place));
    share(&case.core().dispatch);
    assert!(case.core().outside.is_there());
    (case, place)
}

fn low(case: &Case, partitions: usize) -> Arc<JobState> {
    let options = JobOptions {
        priority: Some(Priority::Low),
        ..JobOptions::default()
    };
    case.submit(request(POREP, partitions), options).unwrap()
}

/// Returns these lines about a job.
fn lines(job: &JobState, of: &[(&str, usize)]) -> Vec<String> {
    let number = job.number();
    let line = |(what, partition): &(&str, usize)| format!("{what} {number}.{partition}");
    of.iter().map(line).collect()
}

#[test]
fn a_place_hears_of_each_partition() {
    let (case, place) = shared(|_| ());
    let job = case.accept(POREP, 2);
    assert_eq!(place.told(), lines(&job, &[("queued", 0), ("queued", 1)]));
    case.make_ready(1);
    assert_eq!(place.told(), lines(&job, &[("begun", 0)]));
    let finishing = case.start(0, Deed::Prove).unwrap();
    assert!(case.finish(finishing));
    assert_eq!(place.told(), lines(&job, &[("ended", 0)]));
    case.work();
    let ended = [("begun", 1), ("ended", 0), ("ended", 1)];
    assert_eq!(place.told(), lines(&job, &ended));
}

#[test]
fn a_place_does_not_hear_of_the_end_of_a_job_that_goes_on_later() {
    let (case, place) = shared(|_| ());
    let jobs = [(); 2].map(|()| case.accept(POREP, 1));
    place.told();
    case.core().end(&jobs[0], Error::ShuttingDown);
    assert!(place.told().is_empty());
    case.core().end(&jobs[1], Error::Cancelled);
    assert_eq!(place.told(), lines(&jobs[1], &[("ended", 0)]));
}

#[test]
fn a_place_hears_that_a_job_was_not_queued() {
    let (case, place) = shared(|sizes| sizes.config.jobs.queued_partitions = 1);
    let job = case.accept(POREP, 1);
    place.told();
    let core = case.core();
    let again = core.queue(&job, vec![0], cuzk_scheduler::admission::Entrance::IfRoom);
    assert!(matches!(again, Err(Error::Busy { .. })));
    assert_eq!(place.told(), lines(&job, &[("queued", 0), ("ended", 0)]));
}

#[test]
fn what_is_left_to_others_has_no_turn_here() {
    let (case, place) = shared(|_| ());
    let job = low(&case, 2);
    let attempts = |place: Place| (0..2).all(|partition| job.places().get(partition) == place);
    assert!(attempts(Place::Elsewhere));
    assert!(case.admit(Lane::Common).is_none());
    let waits_for = || Status::of(case.core()).jobs[0].waits_for.clone();
    let expected = "other machines prove it, or are to begin it";
    assert_eq!(waits_for().as_deref(), Some(expected));
    case.core().dispatch.drain(true);
    assert_eq!(waits_for().as_deref(), Some("the engine is draining"));
    case.core().dispatch.drain(false);
    assert!(case.admit(Lane::Common).is_none(), "that gives it no turn");
    assert!(job.places().change(1, &[Place::Elsewhere], Place::Here));
    place.told();
    let admitted = case.admit(Lane::Common).unwrap();
    assert_eq!(admitted.attempt.partition, 1);
    assert_eq!(place.told(), lines(&job, &[("begun", 1)]));
}

/// Others began it while its circuit was loaded.
#[test]
fn an_attempt_that_others_have_begun_does_not_begin_here() {
    let (case, place) = shared(|_| ());
    let job = case.accept(POREP, 1);
    let attempt = case.admit(Lane::Common).unwrap().attempt;
    place.told();
    assert!(case.core().outside.may_begin(&attempt));
    assert_eq!(place.told(), lines(&job, &[("begun", 0)]));
    job.places().set(0, Place::Elsewhere);
    assert!(attempt.is_elsewhere() && !case.core().outside.may_begin(&attempt));
    assert!(place.told().is_empty());
    let without = Case::new(1, false);
    assert!(
        without.core().outside.may_begin(&attempt),
        "nobody else is there"
    );
}

#[test]
fn an_attempt_without_memory_here_is_left_to_others() {
    for has_all in [false, true] {
        let (case, place) = shared(|_| ());
        place.has_all.store(has_all, Ordering::Relaxed);
        let job = case.accept(POREP, 1);
        // Its circuit is known to need more than there is.
        let attempt = case
            .core()
            .dispatch
            .admission
            .retain(|_| false)
            .pop()
            .unwrap();
        let (attempt, ticket) = attempt;
        let need = Need::own(u64::MAX);
        case.core()
            .dispatch
            .put_back(Lane::Common, ticket, attempt, need);
        assert!(case.admit(Lane::Common).is_none());
        assert_eq!(job.has_ended(), !has_all);
        let stage = || job.live().partitions()[0].stage.unwrap();
        if has_all {
            assert_eq!(job.places().get(0), Place::Elsewhere);
            assert_eq!(stage(), crate::timeline::Stage::Elsewhere);
            assert_eq!(case.waiting().len(), 1);
        } else {
            let outcome = job.outcome().unwrap();
            assert!(matches!(*outcome.unwrap_err(), Error::OverBudget(_)));
        }
    }
}

/// A job of low priority whose partition 0 others have proved.
#[test]
fn what_others_have_proved_is_over_here() {
    let (case, _) = shared(|_| ());
    let job = low(&case, 2);
    job.places().set(0, Place::Over);
    case.core().dispatch.drop_over();
    assert_eq!(case.waiting(), [(job.number(), 1, Lane::Common)]);
}

/// A job that was left in the journal, before and after it was taken out, read and queued.
#[test]
fn a_place_has_heard_of_each_job_that_there_is_room_for() {
    let (mut case, _) = shared(|_| ());
    let old = Remote::of(case.core());
    case.core().dispatch.drain(true);
    let left = |case: &Case| case.submit(request(POREP, 1), waits("a")).unwrap();
    let job = left(&case);
    let core = case.core();
    assert!(job.input().is_none() && old.has_resumed(), "it is held");
    core.dispatch.drain(false);
    assert!(!old.has_resumed(), "there is room for it");
    let taken = core.jobs.waiting.take(|_| true).unwrap();
    assert!(!old.has_resumed(), "it is read");
    core.dispatch.drain(true);
    assert!(!old.has_resumed(), "it is read all the same");
    core.dispatch.drain(false);
    let resumed = resume_if_readable(core, &*case.life.recorder.journal, &taken, &mut false);
    assert!(matches!(resumed, Some(Ok(()))));
    assert!(job.input().is_some() && old.has_resumed(), "it is queued");
    case.kill();
    assert!(old.has_resumed(), "the engine has ended");
}

/// Others failed to prove it, so its statement is checked before it is proved here.
#[test]
fn the_statement_of_a_suspect_partition_is_checked() {
    for (lies, is_suspect) in [(true, true), (true, false), (false, true)] {
        let (case, _) = shared(|_| ());
        let flaw = if lies { Flaw::Lies } else { Flaw::None };
        let request = Request {
            flaw,
            ..request(POREP, 1)
        };
        let job = case.submit(request, JobOptions::default()).unwrap();
        if is_suspect {
            job.places().set(0, Place::CheckedHere);
        }
        let is_refused = lies && is_suspect;
        assert_eq!(
            case.synthesize().is_none(),
            is_refused,
            "{lies} {is_suspect}"
        );
        assert_eq!(job.has_ended(), is_refused);
        if let Some(outcome) = job.outcome() {
            let error = outcome.unwrap_err();
            let Error::Unsatisfied { row, part, .. } = &*error else {
                panic!("{error}")
            };
            // The name is that of the circuit whose place the simulated one has.
            assert!(part.is_some());
            assert_eq!(*part, blank::row_name(id(POREP), *row).unwrap());
        }
    }
}
