//! Attempts whose bits are added up together, and which of those that wait join.

use std::sync::atomic::{AtomicU64, Ordering};

use cuzk_memory::{Checkpoint, Dealloc};
use cuzk_scheduler::admission::Need;
use cuzk_scheduler::priority::Priority;

use super::*;
use crate::Error;
use crate::engine::preload::reserve;
use crate::engine::workers::batch::sum_bits_together;
use crate::job::Owner as _;
use crate::timeline::Stage;

impl Case {
    /// An engine on this CPU, which adds up bits. Two partitions have the memory of one.
    fn adding_bits(max_batch: usize) -> Self {
        let case = Self::with(1, true, |sizes| sizes.config.pipeline.max_batch = max_batch);
        case.life.devices[0].add_bits();
        case
    }

    /// Adds up the bits of the next attempt, with those of others. Returns the attempt.
    fn add_bits(&self) -> AdmittedAttempt {
        let mut admitted = self.admit(Lane::Common).unwrap();
        sum_bits_together(self.core(), &mut admitted, &self.bench.pool);
        admitted
    }

    /// Returns the job and the partition of each attempt that waits, and whether it has sums.
    fn with_sums(&self) -> Vec<(u64, usize, bool)> {
        let mut waiting = Vec::new();
        let admission = &self.core().dispatch.admission;
        admission.visit_waiting(|attempt, _| {
            let has_sums = attempt.bit_sums.is_some();
            waiting.push((attempt.job.number(), attempt.partition, has_sums));
        });
        waiting
    }

    /// Returns the numbers of attempts that each pass served.
    fn served(&self) -> Vec<usize> {
        let spans = self.core().timeline.spans().into_iter();
        let passes = spans.filter(|span| span.stage == Stage::Columns);
        passes.filter_map(|span| span.served).collect()
    }
}

#[test]
fn an_attempt_has_sums_with_as_many_as_its_memory_allows() {
    let case = Case::adding_bits(10);
    let job = case.accept(POREP, 4);
    let first = case.add_bits();
    assert!(first.attempt.bit_sums.is_some());
    let number = job.number();
    let expected = [(number, 1, true), (number, 2, false), (number, 3, false)];
    assert_eq!(case.with_sums(), expected);
    assert_eq!(case.served(), [2]);
    // The second has its sums, and makes no others.
    let second = case.add_bits();
    assert!(second.attempt.bit_sums.is_some());
    assert_eq!(case.served(), [2]);
    drop((first, second));
    let third = case.add_bits();
    assert!(third.attempt.bit_sums.is_some());
    assert_eq!(case.served(), [2, 2]);
}

/// The footprint of the attempts of a pass says how much is kept for it.
#[test]
fn room_is_made_for_as_many_as_are_together() {
    let case = Case::adding_bits(10);
    case.accept(POREP, 4);
    assert!(case.add_bits().attempt.bit_sums.is_some());
    assert_eq!(case.served(), [2]);
    assert_eq!(case.life.devices[0].last_batch(), 2);
}

/// Memory that is kept for others gives way to a pass where there is no room for both. Memory that
/// is kept of a pass gives way to the attempt.
#[test]
fn kept_memory_makes_room_for_a_pass() {
    let case = Case::with(1, true, |sizes| {
        sizes.config.pipeline.max_batch = 2;
        sizes.config.memory.dealloc = Dealloc::Recycle;
    });
    case.life.devices[0].add_bits();
    let kept_meanwhile = Arc::new(AtomicU64::new(u64::MAX));
    let (pool, noted) = (&case.core().compute.buffers, &kept_meanwhile);
    let (pool, noted) = (Arc::clone(pool), Arc::clone(noted));
    case.life.devices[0].meanwhile(move || noted.store(pool.kept_bytes(), Ordering::Relaxed));
    case.accept(POREP, 2);
    let mut admitted = case.admit(Lane::Common).unwrap();
    let (core, buffers) = (case.core(), &case.core().compute.buffers);
    let usage = core.dispatch.admission.usage();
    let rest = Need::own(usage.total_bytes - usage.used_bytes);
    let _rest = reserve(core, &rest, &Checkpoint::never()).unwrap();
    drop(buffers.take(1 << 16).unwrap());
    assert!(buffers.kept_bytes() > 0);
    sum_bits_together(core, &mut admitted, &case.bench.pool);
    assert!(admitted.attempt.bit_sums.is_some());
    assert_eq!(kept_meanwhile.load(Ordering::Relaxed), 0);
    assert_eq!(buffers.kept_bytes(), 0);
}

/// A pass that stood still for critical work says nothing about the time that it takes.
#[test]
fn attempts_share_the_time_of_a_pass_that_was_not_paused() {
    for is_paused in [false, true] {
        let case = Case::adding_bits(10);
        let pause = Arc::clone(&case.core().dispatch.pause);
        case.life.devices[0].meanwhile(move || {
            std::thread::sleep(Duration::from_millis(50));
            if is_paused {
                drop(pause.raise());
            }
        });
        case.accept(POREP, 2);
        // The clock of a case stands still. That of a pass does not.
        let began = Instant::now();
        let spent = case.add_bits().attempt.spent;
        assert_eq!(spent == Duration::ZERO, is_paused, "{spent:?}");
        // Two of them were served.
        assert!(2 * spent <= began.elapsed(), "{spent:?}");
    }
}

#[test]
fn no_more_are_together_than_the_configuration_allows() {
    for (max_batch, expected) in [(1, &[][..]), (2, &[2])] {
        let case = Case::adding_bits(max_batch);
        case.accept(POREP, 3);
        let first = case.add_bits();
        assert_eq!(first.attempt.bit_sums.is_some(), max_batch > 1);
        assert_eq!(
            (case.served(), case.with_sums().len()),
            (expected.to_vec(), 2)
        );
    }
}

#[test]
fn no_sums_are_made_of_one_attempt_or_where_that_does_not_pay() {
    let case = Case::adding_bits(10);
    case.accept(POREP, 1);
    assert!(case.add_bits().attempt.bit_sums.is_none());
    let case = Case::new(1, false);
    case.life.devices[0].add_bits();
    case.accept(POREP, 2);
    assert!(case.add_bits().attempt.bit_sums.is_none());
}

/// The first job of each row is first, and the second one may join.
#[test]
fn attempts_of_one_circuit_and_priority_are_together() {
    let rows = [
        ((POREP, Priority::Normal), (POREP, Priority::Normal), true),
        ((POREP, Priority::Low), (POREP, Priority::Low), true),
        ((POREP, Priority::Normal), (POREP, Priority::Low), false),
        ((POREP, Priority::Normal), (WINDOW, Priority::Normal), false),
        // Urgent work is only with its own job.
        ((WINDOW, Priority::High), (WINDOW, Priority::High), false),
    ];
    for (row, (first, second, are_together)) in rows.into_iter().enumerate() {
        let case = Case::adding_bits(10);
        let submit = |(kind, priority)| {
            let priority = Some(priority);
            let options = JobOptions {
                priority,
                ..JobOptions::default()
            };
            case.submit(request(kind, 1), options).unwrap()
        };
        submit(first);
        let second = submit(second);
        let admitted = case.add_bits();
        assert_eq!(
            admitted.attempt.bit_sums.is_some(),
            are_together,
            "row {row}"
        );
        let expected = [(second.number(), 0, are_together)];
        assert_eq!(case.with_sums(), expected, "row {row}");
    }
    let case = Case::adding_bits(10);
    case.accept(WINDOW, 2);
    assert!(case.add_bits().attempt.bit_sums.is_some(), "its own job's");
}

#[test]
fn critical_attempts_and_those_that_failed_are_alone() {
    let case = Case::adding_bits(10);
    case.accept(WINNING, 2);
    let mut critical = case.admit(Lane::Critical).unwrap();
    sum_bits_together(case.core(), &mut critical, &case.bench.pool);
    assert!(critical.attempt.bit_sums.is_none());

    case.accept(POREP, 3);
    let [mut failed, mut other] = [(); 2].map(|()| case.admit(Lane::Common).unwrap());
    failed.attempt.excluded_devices.push(7);
    sum_bits_together(case.core(), &mut failed, &case.bench.pool);
    assert!(failed.attempt.bit_sums.is_none());
    // Nor does one that failed join.
    drop(case.admit(Lane::Common));
    let again = failed.attempt.again();
    case.core().requeue(Lane::Common, failed.ticket, again);
    sum_bits_together(case.core(), &mut other, &case.bench.pool);
    assert!(other.attempt.bit_sums.is_none() && case.served().is_empty());
}

#[test]
fn an_attempt_whose_proof_was_rejected_does_not_join() {
    let case = Case::new(1, true);
    let job = case.accept(POREP, 3);
    case.make_ready(1);
    let finishing = case.start(0, Deed::ProveAnother).unwrap();
    assert!(case.finish(finishing));
    case.life.devices[0].add_bits();
    let AdmittedAttempt {
        attempt, ticket, ..
    } = case.admit(Lane::Common).unwrap();
    assert!(attempt.partition == 0 && attempt.rejected.is_some());
    let mut other = case.admit(Lane::Common).unwrap();
    case.core().requeue(Lane::Common, ticket, attempt);
    sum_bits_together(case.core(), &mut other, &case.bench.pool);
    assert!(other.attempt.bit_sums.is_some());
    let number = job.number();
    assert_eq!(case.with_sums(), [(number, 0, false), (number, 2, true)]);
}

/// A device that made a wrong proof may have had wrong sums.
#[test]
fn an_attempt_that_is_made_again_makes_its_own_sums() {
    let case = Case::adding_bits(10);
    let job = case.accept(POREP, 2);
    case.make_ready(1);
    let finishing = case.start(0, Deed::ProveAnother).unwrap();
    assert!(finishing.attempt.bit_sums.is_some());
    assert!(case.finish(finishing));
    let number = job.number();
    assert_eq!(case.with_sums(), [(number, 0, false), (number, 1, true)]);
}

#[test]
fn a_pass_is_given_up_for_what_has_its_turn_before() {
    let case = Case::adding_bits(10);
    let job = case.accept(POREP, 2);
    let mut first = case.admit(Lane::Common).unwrap();
    let urgent = case.accept(WINDOW, 1);
    sum_bits_together(case.core(), &mut first, &case.bench.pool);
    assert!(first.attempt.bit_sums.is_none() && case.served().is_empty());
    let expected = [(urgent.number(), 0, false), (job.number(), 1, false)];
    assert_eq!(case.with_sums(), expected, "both wait as before");
}

#[test]
fn a_pass_that_nobody_needs_any_more_stops() {
    let case = Case::adding_bits(10);
    let jobs = [(); 2].map(|()| case.accept(POREP, 1));
    let ended = jobs.clone();
    case.life.devices[0].meanwhile(move || {
        for job in &ended {
            job.end(Err(Arc::new(Error::Cancelled)));
        }
    });
    assert!(case.add_bits().attempt.bit_sums.is_none());
    assert!(case.with_sums().iter().all(|(.., has_sums)| !has_sums));
}

#[test]
fn a_witness_that_cannot_be_written_is_left_out() {
    let case = Case::adding_bits(10);
    let bad = Request {
        flaw: Flaw::WitnessPanics,
        ..request(POREP, 1)
    };
    case.accept(POREP, 1);
    let bad = case.submit(bad, JobOptions::default()).unwrap();
    assert!(case.add_bits().attempt.bit_sums.is_none(), "one is left");
    assert_eq!(case.with_sums(), [(bad.number(), 0, false)]);
    assert!(!bad.has_ended(), "it fails when it has its turn");
    case.work();
    assert!(bad.outcome().unwrap().is_err());
}

/// The attempts of a batch come back to the places that they have now.
#[test]
fn attempts_come_back_in_their_order() {
    let mut case = Case::adding_bits(10);
    case.accept(POREP, 1);
    let mut jobs = Vec::new();
    for _ in 0..2 {
        case.pass(1);
        jobs.push(case.accept(POREP, 1));
    }
    let first = case.add_bits();
    let numbers = [jobs[0].number(), jobs[1].number()];
    assert_eq!(
        case.with_sums(),
        [(numbers[0], 0, true), (numbers[1], 0, false)]
    );
    case.core().set_priority(&jobs[1], Priority::High);
    assert_eq!(
        case.with_sums(),
        [(numbers[1], 0, false), (numbers[0], 0, true)]
    );
    assert!(first.attempt.bit_sums.is_some());
}
