//! The estimates of durations, and the deadlines that cannot be met.

use std::sync::LazyLock;

use cuzk_scheduler::priority::{Patience, Priority};

use super::*;
use crate::Error;
use crate::engine::attempt::Attempt;
use crate::engine::deadlines::Deadlines;
use crate::job::NewJob;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The moment at which all jobs come. Their ranks follow from their numbers.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn job(number: u64, priority: Priority, partitions: usize) -> Arc<JobState> {
    Arc::new(JobState::new(NewJob {
        number,
        id: None,
        caller: tracing::Span::none(),
        circuit: id(POREP),
        partitions,
        priority,
        patience: Patience {
            normal: s(0),
            low: s(1000),
        },
        accepted: *START,
        deadline: None,
        record: None,
    }))
}

/// Notes an attempt of 10 s, of which 6 s were synthesis, and which held the device for 4 s.
fn record(deadlines: &Deadlines, priority: Priority, pauses: [Option<u64>; 2], whole_way: bool) {
    let [quiet_at, quiet] = pauses;
    let attempt = Attempt {
        spent: s(10),
        synthesized_in: s(6),
        quiet_at,
        ..Attempt::new(job(0, priority, 1), 0)
    };
    deadlines.record(&attempt, quiet, s(4), whole_way);
}

/// Returns the estimate, for a job behind `live` on so many devices; none if there is none.
fn estimate(
    deadlines: &Deadlines,
    of: &JobState,
    live: &[Arc<JobState>],
    devices: usize,
) -> Option<u64> {
    let partitions = of.progress().partitions;
    let check = |deadline| {
        let fleet = (live, devices);
        deadlines.check(of.circuit(), partitions, of.rank(), deadline, fleet)
    };
    let Err(Error::TooLate {
        deadline_ms,
        estimate_ms,
    }) = check(Duration::ZERO)
    else {
        return None;
    };
    assert_eq!(deadline_ms, 0);
    let estimated = Duration::from_millis(estimate_ms);
    assert!(check(estimated).is_ok(), "as long as it takes");
    assert!(check(estimated - Duration::from_millis(1)).is_err());
    Some(estimated.as_secs())
}

const QUIET: [Option<u64>; 2] = [Some(3), Some(3)];

#[test]
fn a_job_takes_its_own_time_and_that_of_what_is_ahead() {
    let deadlines = Deadlines::new(2);
    let new = job(5, Priority::Normal, 1);
    assert_eq!(estimate(&deadlines, &new, &[], 1), None, "nothing is known");
    record(&deadlines, Priority::Normal, QUIET, false);
    assert_eq!(estimate(&deadlines, &new, &[], 1), Some(10));
    // Two workers synthesize 3 partitions in 9 s, and a device has them for 12 s.
    let ahead = job(1, Priority::Normal, 3);
    let live = [Arc::clone(&ahead)];
    assert_eq!(estimate(&deadlines, &new, &live, 1), Some(22));
    assert_eq!(estimate(&deadlines, &new, &live, 2), Some(19));
    let proof = VerifiedProof::unchecked([0; 192]);
    ahead.restore(1, proof);
    assert_eq!(
        estimate(&deadlines, &new, &live, 1),
        Some(18),
        "one is proved"
    );
    // Of its own partitions, one comes to its end last.
    let larger = job(5, Priority::Normal, 2);
    assert_eq!(estimate(&deadlines, &larger, &[], 1), Some(14));
}

#[test]
fn only_what_is_as_urgent_is_ahead() {
    let deadlines = Deadlines::new(2);
    record(&deadlines, Priority::Normal, QUIET, false);
    let new = job(5, Priority::Normal, 1);
    for (number, priority, expected) in [
        (4, Priority::Normal, 14),
        (5, Priority::Normal, 14),
        (6, Priority::Normal, 10),
        (4, Priority::Low, 10),
        (6, Priority::High, 10),
        (4, Priority::High, 14),
    ] {
        let live = [job(number, priority, 1)];
        let estimated = estimate(&deadlines, &new, &live, 1);
        assert_eq!(estimated, Some(expected), "{number} {priority}");
    }
}

#[test]
fn critical_work_is_estimated_apart() {
    let deadlines = Deadlines::new(2);
    let [normal, critical] = [Priority::Normal, Priority::Critical].map(|of| job(5, of, 2));
    record(&deadlines, Priority::Normal, QUIET, false);
    assert_eq!(estimate(&deadlines, &critical, &[], 1), None);
    // It is not paused, whatever else is.
    record(&deadlines, Priority::Critical, [None, None], true);
    assert_eq!(
        estimate(&deadlines, &critical, &[], 1),
        Some(20),
        "its worker has all of it"
    );
    assert_eq!(
        estimate(&deadlines, &critical, &[], 9),
        Some(20),
        "there is one worker"
    );
    assert_eq!(estimate(&deadlines, &normal, &[], 1), Some(14));
}

#[test]
fn an_attempt_that_was_paused_says_nothing() {
    let deadlines = Deadlines::new(2);
    let new = job(5, Priority::Normal, 1);
    for pauses in [
        [Some(3), Some(4)],
        [Some(3), None],
        [None, Some(3)],
        [None, None],
    ] {
        record(&deadlines, Priority::Normal, pauses, false);
        assert_eq!(estimate(&deadlines, &new, &[], 1), None, "{pauses:?}");
    }
}

/// The retry worker proves on this CPU, and takes no time here.
#[test]
fn what_the_retry_worker_proved_says_nothing_about_the_devices() {
    let mut case = Case::with(1, false, |sizes| sizes.config.gpus.faults_max = 9);
    case.accept(POREP, 2);
    case.make_ready(2);
    let ready = case.claim(0).unwrap();
    let region = case.begin(0, ready, Deed::Prove);
    case.pass(5);
    let finishing = case.answer(region).unwrap();
    assert!(case.finish(finishing));
    assert!(case.start(0, Deed::ErrorInStart).is_none());
    assert!(case.dedicated(Lane::Retry));
    for (seconds, is_met) in [(4, false), (5, true)] {
        let options = JobOptions {
            deadline: Some(s(seconds)),
            ..JobOptions::default()
        };
        let submitted = case.submit(request(POREP, 1), options);
        let is_late = matches!(submitted, Err(Error::TooLate { .. }));
        assert_eq!((submitted.is_ok(), is_late), (is_met, !is_met), "{seconds}");
    }
}

/// The critical worker is free again once it has brought a partition to its device.
#[test]
fn critical_work_on_a_device_keeps_its_worker_for_its_synthesis_only() {
    let mut case = Case::new(1, false);
    case.accept(WINNING, 1);
    assert!(case.dedicated(Lane::Critical));
    let ready = case.claim(0).unwrap();
    let region = case.begin(0, ready, Deed::Prove);
    case.pass(5);
    let finishing = case.answer(region).unwrap();
    assert!(case.finish(finishing));
    let options = JobOptions {
        deadline: Some(s(5)),
        ..JobOptions::default()
    };
    assert!(case.submit(request(WINNING, 2), options).is_ok());
}
