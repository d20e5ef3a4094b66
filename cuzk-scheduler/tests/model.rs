//! Interleavings of a few threads, all that have at most three preemptions: no wake-up is
//! lost, no thread waits for ever, and the budget holds. Run it with `RUSTFLAGS="--cfg loom" cargo test --release -p
//! cuzk-scheduler --test model`.

#![cfg(loom)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::time::{Duration, Instant};

use cuzk_memory::{Cancellation, Checkpoint, Pause, Stopped};
use cuzk_scheduler::admission::{Admission, Entrance, Lane, Limits, Need, Turn};
use cuzk_scheduler::priority::{Patience, Priority, Rank};
use cuzk_scheduler::queue::Queue;
use cuzk_scheduler::turnstile::Turnstile;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

const PATIENCE: Patience = Patience {
    normal: Duration::from_secs(60),
    low: Duration::from_secs(600),
};

/// Tries every interleaving with at most three preemptions. Most defects of monitors show
/// with two (Musuvathi, Qadeer: "Iterative context bounding", 2007). Deeper ones are not
/// looked for here: all interleavings would take days.
fn model(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

fn admission(total_bytes: u64) -> Admission<u32, u8> {
    Admission::new(Limits {
        capacity: 8,
        total_bytes,
        critical_reserve_bytes: 0,
        patience: PATIENCE,
    })
}

fn need(own_bytes: u64, key: u8) -> Need<u8> {
    Need {
        own_bytes,
        shared: Some((key, 2)),
    }
}

/// Does all the work there is, and returns its number of pieces.
fn work(admission: &Admission<u32, u8>, lane: Lane) -> usize {
    let mut done = 0;
    while let Some(turn) = admission.next(lane) {
        let Turn::Admitted { mut memory, .. } = turn else {
            panic!("everything fits");
        };
        assert!(admission.usage().used_bytes <= 10);
        memory.shrink_to(1);
        drop(memory);
        done += 1;
    }
    done
}

#[test]
fn all_work_is_admitted_and_the_workers_end() {
    model(|| {
        let admission = Arc::new(admission(10));
        let start = Instant::now();
        let items = vec![(1, need(6, 1)), (2, need(7, 2))];
        admission
            .submit(
                Entrance::IfRoom,
                Lane::Common,
                Priority::Normal,
                start,
                items,
            )
            .unwrap();
        let worker = thread::spawn({
            let admission = Arc::clone(&admission);
            move || work(&admission, Lane::Common)
        });
        let items = vec![(3, need(5, 1))];
        admission
            .submit(
                Entrance::IfRoom,
                Lane::Common,
                Priority::Critical,
                start,
                items,
            )
            .unwrap();
        admission.close();
        let done = work(&admission, Lane::Common) + worker.join().unwrap();
        assert_eq!(done, 3);
        assert_eq!(admission.usage().running, 0);
    });
}

#[test]
fn what_is_reserved_out_of_order_keeps_nobody_waiting_for_ever() {
    model(|| {
        let admission = Arc::new(admission(10));
        let items = vec![(1, need(6, 1))];
        admission
            .submit(
                Entrance::IfRoom,
                Lane::Common,
                Priority::Normal,
                Instant::now(),
                items,
            )
            .unwrap();
        let beside = thread::spawn({
            let admission = Arc::clone(&admission);
            move || {
                let memory = admission.reserve(&need(5, 2));
                assert!(admission.usage().used_bytes <= 10);
                drop(memory);
            }
        });
        admission.close();
        assert_eq!(work(&admission, Lane::Common), 1);
        beside.join().unwrap();
        assert_eq!(admission.usage().running, 0);
    });
}

#[test]
fn the_critical_lane_and_the_other_share_the_work_and_both_end() {
    model(|| {
        let admission = Arc::new(admission(10));
        let critical = thread::spawn({
            let admission = Arc::clone(&admission);
            move || work(&admission, Lane::Critical)
        });
        let start = Instant::now();
        for (lane, priority, item) in [
            (Lane::Common, Priority::Low, 1),
            (Lane::Critical, Priority::Critical, 2),
        ] {
            let items = vec![(item, need(6, 1))];
            admission
                .submit(Entrance::IfRoom, lane, priority, start, items)
                .unwrap();
        }
        admission.close();
        let done = work(&admission, Lane::Common);
        assert_eq!(done + critical.join().unwrap(), 2);
    });
}

/// The two do not fit beside each other, and the order of wake-ups is not fixed.
#[test]
fn what_waits_for_memory_in_one_lane_is_not_overtaken_in_another() {
    model(|| {
        let admission = Arc::new(admission(10));
        let start = Instant::now();
        let submit = |lane, priority, own_bytes| {
            let items = vec![(0, Need::own(own_bytes))];
            admission
                .submit(Entrance::IfRoom, lane, priority, start, items)
                .unwrap();
        };
        submit(Lane::Common, Priority::Normal, 8);
        let Some(Turn::Admitted { memory, .. }) = admission.next(Lane::Common) else {
            panic!("nothing is in its way");
        };
        submit(Lane::Critical, Priority::Critical, 8);
        submit(Lane::Common, Priority::Normal, 4);
        admission.close();
        let was_first = Arc::new(AtomicBool::new(false));
        let critical = thread::spawn({
            let (admission, was_first) = (Arc::clone(&admission), Arc::clone(&was_first));
            move || {
                let turn = admission.next(Lane::Critical);
                was_first.store(true, Ordering::SeqCst);
                drop(turn);
            }
        });
        let other = thread::spawn({
            let (admission, was_first) = (Arc::clone(&admission), Arc::clone(&was_first));
            move || {
                let turn = admission.next(Lane::Common);
                assert!(was_first.load(Ordering::SeqCst));
                drop(turn);
            }
        });
        drop(memory);
        critical.join().unwrap();
        other.join().unwrap();
        assert_eq!(admission.usage().used_bytes, 0);
    });
}

#[test]
fn work_that_is_put_back_while_the_door_closes_is_done() {
    model(|| {
        let admission = Arc::new(admission(10));
        let items = vec![(1, need(8, 1))];
        admission
            .submit(
                Entrance::IfRoom,
                Lane::Common,
                Priority::Normal,
                Instant::now(),
                items,
            )
            .unwrap();
        let Some(Turn::Admitted { ticket, memory, .. }) = admission.next(Lane::Common) else {
            panic!("nothing is in its way");
        };
        let worker = thread::spawn({
            let admission = Arc::clone(&admission);
            move || work(&admission, Lane::Common)
        });
        let closer = thread::spawn({
            let admission = Arc::clone(&admission);
            move || admission.close()
        });
        admission.put_back(Lane::Common, ticket, 1, need(3, 2));
        drop(memory);
        assert_eq!(worker.join().unwrap(), 1);
        closer.join().unwrap();
    });
}

#[test]
fn work_that_is_let_in_again_while_the_door_closes_is_done() {
    model(|| {
        let admission = Arc::new(admission(10));
        let items = |own_bytes| vec![(1, need(own_bytes, 1))];
        let now = Instant::now();
        admission
            .submit(
                Entrance::IfRoom,
                Lane::Common,
                Priority::Normal,
                now,
                items(8),
            )
            .unwrap();
        let Some(Turn::Admitted { memory, .. }) = admission.next(Lane::Common) else {
            panic!("nothing is in its way");
        };
        let worker = thread::spawn({
            let admission = Arc::clone(&admission);
            move || work(&admission, Lane::Common)
        });
        let closer = thread::spawn({
            let admission = Arc::clone(&admission);
            move || admission.close()
        });
        let stay = admission.keep_open();
        drop(memory);
        admission
            .submit(
                Entrance::Again,
                Lane::Common,
                Priority::Normal,
                now,
                items(3),
            )
            .unwrap();
        drop(stay);
        assert_eq!(worker.join().unwrap(), 1);
        closer.join().unwrap();
    });
}

#[test]
fn work_that_is_given_up_and_put_back_is_done_and_the_workers_end() {
    model(|| {
        let admission = Arc::new(admission(10));
        let items = vec![(1, need(4, 1))];
        admission
            .submit(
                Entrance::IfRoom,
                Lane::Common,
                Priority::Normal,
                Instant::now(),
                items,
            )
            .unwrap();
        let Some(Turn::Admitted {
            ticket, mut memory, ..
        }) = admission.next(Lane::Common)
        else {
            panic!("nothing is in its way");
        };
        let worker = thread::spawn({
            let admission = Arc::clone(&admission);
            move || work(&admission, Lane::Common)
        });
        let watch = thread::spawn({
            let admission = Arc::clone(&admission);
            move || {
                admission.put_back(Lane::Common, ticket, 1, need(4, 1));
                memory.abandon();
                memory
            }
        });
        admission.close();
        // This holds although the memory is never given back.
        assert_eq!(worker.join().unwrap(), 1);
        assert_eq!(admission.usage().used_bytes, 6);
        drop(watch.join().unwrap());
    });
}

#[test]
fn a_pause_lets_everybody_pass_once_it_is_over() {
    model(|| {
        let pause = Arc::new(Pause::default());
        let urgent = pause.raise();
        let waiting = thread::spawn({
            let pause = Arc::clone(&pause);
            move || Checkpoint::never().paused_by(&pause).check()
        });
        drop(pause.raise());
        drop(urgent);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

#[test]
fn between_two_equal_answers_of_a_pause_nobody_stood_still() {
    model(|| {
        let pause = Arc::new(Pause::default());
        let urgent = thread::spawn({
            let pause = Arc::clone(&pause);
            move || drop(pause.raise())
        });
        let before = pause.quiet();
        // It is asked once more, after the pause.
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let cancelled = Checkpoint::asking(|| {
            asked.fetch_add(1, Ordering::Relaxed);
            true
        });
        let stopped = cancelled.paused_by(&pause).check();
        let after = pause.quiet();
        assert_eq!(stopped, Err(Stopped));
        let stood_still = asked.into_inner() > 1;
        assert!(!stood_still || before.is_none() || before != after);
        urgent.join().unwrap();
    });
}

#[test]
fn a_pause_lets_pass_who_is_told_to_stop() {
    model(|| {
        let pause = Arc::new(Pause::default());
        let cancellation = Cancellation::default();
        let _urgent = pause.raise();
        let waiting = thread::spawn({
            let checkpoint = Checkpoint::new(&cancellation).paused_by(&pause);
            move || checkpoint.check()
        });
        cancellation.cancel();
        pause.wake();
        assert_eq!(waiting.join().unwrap(), Err(Stopped));
    });
}

#[test]
fn a_bounded_queue_hands_everything_over() {
    model(|| {
        let queue = Arc::new(Queue::new(1));
        let rank = |sequence| Rank::new(Priority::Normal, Instant::now(), sequence, PATIENCE);
        let producer = thread::spawn({
            let queue = Arc::clone(&queue);
            let ranks = [rank(0), rank(1)];
            move || {
                for rank in ranks {
                    queue.push(rank, ()).unwrap();
                }
                queue.close();
            }
        });
        let consumer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || std::iter::from_fn(|| queue.pop()).count()
        });
        let here = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(here + consumer.join().unwrap(), 2);
        producer.join().unwrap();
    });
}

#[test]
fn a_turnstile_lets_everybody_in_one_at_a_time() {
    model(|| {
        let turnstile = Arc::new(Turnstile::new(1));
        let inside = Arc::new(AtomicUsize::new(0));
        let enter = |priority| {
            let (turnstile, inside) = (Arc::clone(&turnstile), Arc::clone(&inside));
            let rank = Rank::new(priority, Instant::now(), 0, PATIENCE);
            move || {
                let _inside = turnstile.enter(rank);
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let first = thread::spawn(enter(Priority::Low));
        let second = thread::spawn(enter(Priority::High));
        first.join().unwrap();
        second.join().unwrap();
    });
}
