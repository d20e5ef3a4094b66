//! The order of admissions, compared with a twin that is easy to compute.

#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cuzk_bounded::BoundedJoin;
use cuzk_scheduler::admission::{
    Admission, Entrance, Lane, LetGo, Limits, Need, Refused, Reservation, Turn, Users,
};
use cuzk_scheduler::priority::{Patience, Priority};
use proptest::prelude::*;

type Key = u8;

fn limits(total_bytes: u64, critical_reserve_bytes: u64) -> Limits {
    Limits {
        capacity: 64,
        total_bytes,
        critical_reserve_bytes,
        patience: Patience {
            normal: Duration::from_secs(60),
            low: Duration::from_secs(600),
        },
    }
}

fn sharing(own_bytes: u64, key: Key, bytes: u64) -> Need<Key> {
    Need {
        own_bytes,
        shared: Some((key, bytes)),
    }
}

fn submit(admission: &Admission<u32, Key>, priority: Priority, item: u32, need: Need<Key>) {
    submit_to(Lane::Common, admission, priority, item, need);
}

fn submit_to(
    lane: Lane,
    admission: &Admission<u32, Key>,
    priority: Priority,
    item: u32,
    need: Need<Key>,
) {
    let items = vec![(item, need)];
    admission
        .submit(Entrance::IfRoom, lane, priority, Instant::now(), items)
        .unwrap();
}

#[test]
fn a_try_takes_what_has_its_memory_and_waits_for_nothing() {
    let admission = Admission::new(limits(100, 0));
    assert!(admission.try_next(Lane::Common).is_none());
    for item in [1, 2] {
        submit(&admission, Priority::Normal, item, Need::own(60));
    }
    let Some(Turn::Admitted {
        item: 1, memory, ..
    }) = admission.try_next(Lane::Common)
    else {
        panic!("the first has its memory");
    };
    assert!(admission.try_next(Lane::Common).is_none());
    drop(memory);
    let second = admission.try_next(Lane::Common);
    assert!(matches!(second, Some(Turn::Admitted { item: 2, .. })));
}

/// Returns the work that is admitted now, without waiting.
fn admitted(admission: &Admission<u32, Key>, lane: Lane) -> (u32, Reservation<Key>, Vec<Key>) {
    match admission.next(lane).unwrap() {
        Turn::Admitted {
            item,
            memory,
            evicted,
            ..
        } => (item, memory, evicted.to_vec()),
        Turn::Impossible { item, over, .. } => panic!("{item}: {over}"),
    }
}

#[test]
fn what_can_never_fit_is_told_at_once() {
    let admission = Admission::new(limits(100, 20));
    let need = || sharing(60, 1, 30);
    submit(&admission, Priority::Normal, 1, need());
    let Some(Turn::Impossible { item: 1, over, .. }) = admission.next(Lane::Common) else {
        panic!("the reserve is not for it");
    };
    assert_eq!((over.needed_bytes, over.available_bytes), (90, 80));
    submit(&admission, Priority::Critical, 2, need());
    let (item, memory, _) = admitted(&admission, Lane::Common);
    assert_eq!((item, memory.own_bytes()), (2, 60));
    assert_eq!(admission.usage().used_bytes, 90);
}

#[test]
fn a_full_or_closed_door_takes_nothing_in() {
    let mut limits = limits(100, 0);
    limits.capacity = 2;
    let admission = Admission::<u32, Key>::new(limits);
    let items = |count| (0..count).map(|item| (item, Need::own(1))).collect();
    let submit = |items| {
        admission.submit(
            Entrance::IfRoom,
            Lane::Common,
            Priority::Normal,
            Instant::now(),
            items,
        )
    };
    assert_eq!(submit(items(3)), Err(Refused::Full));
    submit(items(2)).unwrap();
    assert_eq!(submit(items(1)), Err(Refused::Full));
    let out = admission.retain(|item| *item == 1).into_iter();
    assert_eq!(out.map(|(item, _)| item).collect::<Vec<_>>(), [0]);
    submit(items(1)).unwrap();
    admission.close();
    assert_eq!(submit(items(1)), Err(Refused::Closed));
    assert_eq!(admission.usage().waiting, 2);
}

#[test]
fn what_is_shared_is_charged_once_and_goes_oldest_first() {
    let admission = Admission::new(limits(100, 0));
    for (item, key) in [(1, 1), (2, 1), (3, 2)] {
        submit(&admission, Priority::Normal, item, sharing(10, key, 20));
    }
    let first = admitted(&admission, Lane::Common);
    let second = admitted(&admission, Lane::Common);
    assert_eq!(admission.usage().used_bytes, 40);
    let third = admitted(&admission, Lane::Common);
    assert_eq!(admission.usage().used_bytes, 70);
    drop((third, second));
    assert_eq!(admission.usage().idle_bytes, 20);
    drop(first);
    // Both things are idle now, the second one longer.
    assert_eq!(admission.usage().idle_bytes, 40);
    submit(&admission, Priority::Normal, 4, sharing(60, 3, 20));
    let (_, memory, evicted) = admitted(&admission, Lane::Common);
    assert_eq!(evicted, [2]);
    assert_eq!(admission.usage().used_bytes, 100);
    drop(memory);
    // The thing that the work itself uses is not evicted for it.
    submit(&admission, Priority::Normal, 5, sharing(80, 3, 20));
    assert_eq!(admitted(&admission, Lane::Common).2, [1]);
}

#[test]
fn what_is_shared_may_grow() {
    let admission = Admission::new(limits(100, 0));
    let mut held = Vec::new();
    for (item, bytes) in [(1, 20), (2, 50), (3, 30)] {
        submit(&admission, Priority::Normal, item, sharing(10, 1, bytes));
        held.push(admitted(&admission, Lane::Common));
    }
    assert_eq!(admission.usage().used_bytes, 80);
    held.clear();
    assert_eq!(admission.usage().used_bytes, 50);
    // With the bytes that are charged already it would be too much.
    submit(&admission, Priority::Normal, 4, sharing(1, 1, 100));
    let Some(Turn::Impossible { item: 4, .. }) = admission.next(Lane::Common) else {
        panic!("there is no room to grow into");
    };
}

#[test]
fn memory_given_back_in_part_admits_the_next() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, Need::own(80));
    submit(&admission, Priority::Normal, 2, Need::own(60));
    let (_, mut memory, _) = admitted(&admission, Lane::Common);
    let waiting = thread::spawn({
        let admission = Arc::clone(&admission);
        move || admitted(&admission, Lane::Common).0
    });
    memory.shrink_to(40);
    assert_eq!(waiting.join_bounded().unwrap(), 2);
    memory.shrink_to(50);
    assert_eq!(memory.own_bytes(), 40);
}

#[test]
fn urgent_work_that_arrives_is_seen_by_who_waits_for_memory() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, Need::own(80));
    let held = admitted(&admission, Lane::Common);
    submit(&admission, Priority::Normal, 2, Need::own(80));
    let waiting = thread::spawn({
        let admission = Arc::clone(&admission);
        move || admitted(&admission, Lane::Common).0
    });
    thread::sleep(Duration::from_millis(10));
    submit(&admission, Priority::Critical, 3, Need::own(20));
    assert_eq!(waiting.join_bounded().unwrap(), 3);
    drop(held);
    assert_eq!(admitted(&admission, Lane::Common).0, 2);
}

#[test]
fn nothing_small_overtakes_what_waits_for_memory() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, Need::own(60));
    let held = admitted(&admission, Lane::Common);
    submit(&admission, Priority::Normal, 2, Need::own(60));
    submit(&admission, Priority::Normal, 3, Need::own(10));
    let waiting = thread::spawn({
        let admission = Arc::clone(&admission);
        move || admitted(&admission, Lane::Common).0
    });
    thread::sleep(Duration::from_millis(10));
    assert_eq!(admission.usage().waiting, 2);
    drop(held);
    assert_eq!(waiting.join_bounded().unwrap(), 2);
}

/// Returns true if a piece of work is admitted in a moment.
fn is_admitted(
    admission: &Arc<Admission<u32, Key>>,
    lane: Lane,
) -> (bool, thread::JoinHandle<u32>) {
    let worker = thread::spawn({
        let admission = Arc::clone(admission);
        move || admitted(&admission, lane).0
    });
    thread::sleep(Duration::from_millis(20));
    (worker.is_finished(), worker)
}

#[test]
fn nothing_overtakes_what_waits_for_memory_in_another_lane() {
    for (lane, priority) in [
        (Lane::Critical, Priority::Critical),
        (Lane::Retry, Priority::High),
    ] {
        let admission = Arc::new(Admission::new(limits(100, 0)));
        submit(&admission, Priority::Normal, 1, Need::own(60));
        submit(&admission, Priority::Normal, 2, Need::own(30));
        let large = admitted(&admission, Lane::Common);
        let small = admitted(&admission, Lane::Common);
        submit_to(lane, &admission, priority, 3, Need::own(50));
        submit(&admission, Priority::Normal, 4, Need::own(30));
        drop(small);
        let (too_early, other) = is_admitted(&admission, Lane::Common);
        assert!(!too_early, "{lane:?}");
        // It is not admitted even when it would fit, because it would take that memory.
        submit(&admission, Priority::High, 5, Need::own(60));
        drop(large);
        let (too_early, larger) = is_admitted(&admission, Lane::Common);
        assert!(!too_early && !larger.is_finished());
        let (third, held, _) = admitted(&admission, lane);
        assert_eq!(third, 3);
        drop(held);
        let mut rest = [other, larger].map(|worker| worker.join_bounded().unwrap());
        rest.sort_unstable();
        assert_eq!(rest, [4, 5]);
    }
}

#[test]
fn what_can_never_fit_keeps_nobody_waiting_in_another_lane() {
    let admission = Admission::new(limits(100, 0));
    submit_to(
        Lane::Critical,
        &admission,
        Priority::Critical,
        1,
        Need::own(101),
    );
    submit(&admission, Priority::Normal, 2, Need::own(60));
    assert_eq!(admitted(&admission, Lane::Common).0, 2);
}

#[test]
fn what_critical_work_shares_goes_last() {
    let admission = Admission::new(limits(100, 0));
    for (priority, item, key) in [
        (Priority::Critical, 1, 1),
        (Priority::Normal, 2, 2),
        (Priority::Normal, 3, 3),
    ] {
        submit(&admission, priority, item, sharing(10, key, 20));
        drop(admitted(&admission, Lane::Common));
    }
    submit(&admission, Priority::Normal, 4, Need::own(70));
    assert_eq!(admitted(&admission, Lane::Common).2, [2, 3]);
    submit(&admission, Priority::Normal, 5, Need::own(90));
    assert_eq!(admitted(&admission, Lane::Common).2, [1]);
}

#[test]
fn what_is_evicted_is_not_charged_anew_before_it_is_gone() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, sharing(10, 1, 60));
    drop(admitted(&admission, Lane::Common));
    submit(&admission, Priority::Normal, 2, Need::own(50));
    let Some(Turn::Admitted {
        memory, evicted, ..
    }) = admission.next(Lane::Common)
    else {
        panic!("the other goes for it");
    };
    assert_eq!(*evicted, [1]);
    drop(memory);
    submit(&admission, Priority::Normal, 3, sharing(10, 1, 60));
    let (too_early, worker) = is_admitted(&admission, Lane::Common);
    assert!(!too_early);
    drop(evicted);
    assert_eq!(worker.join_bounded().unwrap(), 3);
}

/// With the bytes charged before it would not fit.
#[test]
fn what_is_shared_may_shrink_while_nobody_uses_it() {
    let admission = Admission::new(limits(100, 0));
    submit(&admission, Priority::Normal, 1, sharing(10, 1, 60));
    let first = admitted(&admission, Lane::Common);
    submit(&admission, Priority::Normal, 2, sharing(10, 1, 20));
    drop((first, admitted(&admission, Lane::Common)));
    assert_eq!(admission.usage().idle_bytes, 60);
    submit(&admission, Priority::Normal, 3, sharing(70, 1, 20));
    let third = admitted(&admission, Lane::Common);
    assert_eq!((third.0, admission.usage().used_bytes), (3, 90));
}

#[test]
fn what_is_bounded_elsewhere_enters_whatever_waits() {
    let admission = Admission::new(limits(100, 0));
    let items = || (0..65).map(|item| (item, Need::<Key>::own(1))).collect();
    let now = Instant::now();
    let submit = |admission: &Admission<u32, Key>| {
        admission.submit(
            Entrance::AtOnce,
            Lane::Common,
            Priority::Normal,
            now,
            items(),
        )
    };
    submit(&admission).unwrap();
    assert_eq!(admission.usage().waiting, 65);
    admission.close();
    assert_eq!(submit(&admission), Err(Refused::Closed));
}

#[test]
fn a_closed_door_waits_for_what_may_be_put_back() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, Need::own(60));
    let Some(Turn::Admitted { ticket, memory, .. }) = admission.next(Lane::Common) else {
        panic!("nothing is in its way");
    };
    admission.close();
    let waiting = thread::spawn({
        let admission = Arc::clone(&admission);
        move || {
            let (item, _memory, _) = admitted(&admission, Lane::Common);
            item
        }
    });
    admission.put_back(Lane::Common, ticket, 7, Need::own(90));
    drop(memory);
    assert_eq!(waiting.join_bounded().unwrap(), 7);
    assert!(admission.next(Lane::Common).is_none());
    assert!(admission.next(Lane::Critical).is_none());
}

/// Work that could not get its memory may still be put back, to be done with less. It
/// may then fail and go to another lane, whose workers must still be there.
#[test]
fn a_closed_door_waits_for_what_had_no_room() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, Need::own(101));
    admission.close();
    let Some(Turn::Impossible {
        item, ticket, held, ..
    }) = admission.next(Lane::Common)
    else {
        panic!("there is no such room");
    };
    let (ended, end) = mpsc::channel();
    let other = thread::spawn({
        let admission = Arc::clone(&admission);
        move || {
            while let Some(turn) = admission.next(Lane::Retry) {
                drop(turn);
            }
            ended.send(()).unwrap();
        }
    });
    assert_eq!(admission.usage().running, 1);
    let early = end.recv_timeout(Duration::from_millis(20));
    assert!(early.is_err(), "it may get what is put back");
    admission.put_back(Lane::Retry, ticket, item, Need::own(1));
    drop(held);
    other.join_bounded().unwrap();
    assert_eq!(admission.usage().waiting, 0, "it was done");
    assert!(admission.next(Lane::Common).is_none());
}

#[test]
fn a_closed_door_waits_for_who_may_let_work_in_again() {
    let admission = Arc::new(Admission::new(limits(100, 0)));
    submit(&admission, Priority::Normal, 1, Need::own(60));
    let (_, memory, _) = admitted(&admission, Lane::Common);
    let stay = admission.keep_open();
    drop(memory);
    assert_eq!(admission.usage().running, 0);
    admission.close();
    let again = |item| {
        let items = vec![(item, Need::own(90))];
        admission.submit(
            Entrance::Again,
            Lane::Common,
            Priority::Normal,
            Instant::now(),
            items,
        )
    };
    let waiting = thread::spawn({
        let admission = Arc::clone(&admission);
        move || {
            let (item, _memory, _) = admitted(&admission, Lane::Common);
            item
        }
    });
    assert_eq!(again(7), Ok(()));
    drop(stay);
    assert_eq!(waiting.join_bounded().unwrap(), 7);
    assert!(admission.next(Lane::Common).is_none());
    assert_eq!(again(8), Err(Refused::Closed));
}

#[test]
fn work_that_was_given_up_keeps_nobody_waiting() {
    let admission = Admission::new(limits(100, 0));
    submit(&admission, Priority::Normal, 1, sharing(40, 1, 10));
    let (_, mut memory, _) = admitted(&admission, Lane::Common);
    let next = [sharing(40, 1, 10), sharing(50, 2, 10), sharing(60, 1, 10)];
    for (item, need) in (2..).zip(next) {
        submit(&admission, Priority::Normal, item, need);
    }
    memory.abandon();
    memory.abandon();
    assert_eq!(admission.usage().running, 0);
    assert_eq!(admission.usage().used_bytes, 50, "it is still in use");
    let (second, _, _) = admitted(&admission, Lane::Common);
    assert_eq!(second, 2);
    // Beside the memory that will never be free, shared or its own.
    for (item, available) in [(3, 50), (4, 60)] {
        let Some(Turn::Impossible {
            item: got, over, ..
        }) = admission.next(Lane::Common)
        else {
            panic!("{item} would wait for ever");
        };
        assert_eq!((got, over.available_bytes), (item, available));
    }
    admission.close();
    assert!(admission.next(Lane::Common).is_none(), "nothing more comes");
    drop(memory);
    let usage = admission.usage();
    assert_eq!((usage.used_bytes, usage.idle_bytes), (10, 10));
}

fn lane_of(item: u32) -> Lane {
    if item.is_multiple_of(4) {
        Lane::Critical
    } else {
        Lane::Common
    }
}

#[test]
fn many_threads_never_exceed_the_budget_and_all_work_is_done() {
    const TOTAL: u64 = 20;
    const RESERVE: u64 = 5;
    let mut limits = limits(TOTAL, RESERVE);
    limits.capacity = 1000;
    let admission = Admission::new(limits);
    for item in 0..1000_u32 {
        let priority = Priority::ALL[item as usize % 4];
        let key = u8::try_from(item % 3).unwrap();
        let need = sharing(1 + u64::from(item % 9), key, 2);
        let lane = lane_of(item);
        let items = vec![(item, need)];
        admission
            .submit(Entrance::IfRoom, lane, priority, Instant::now(), items)
            .unwrap();
    }
    admission.close();
    let (others, done) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for worker in 0..6 {
            let (admission, others, done) = (&admission, &others, &done);
            let lane = if worker == 0 {
                Lane::Critical
            } else {
                Lane::Common
            };
            scope.spawn(move || {
                while let Some(turn) = admission.next(lane) {
                    let Turn::Admitted { item, memory, .. } = turn else {
                        panic!("everything fits");
                    };
                    let critical = item % 4 == 0;
                    assert_eq!(lane, lane_of(item));
                    let bytes = if critical { 0 } else { memory.own_bytes() };
                    let now = others.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    assert!(now <= TOTAL - RESERVE);
                    assert!(admission.usage().used_bytes <= TOTAL);
                    others.fetch_sub(bytes, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 1000);
    let usage = admission.usage();
    assert_eq!(usage.used_bytes, usage.idle_bytes);
}

/// A step of an admission.
#[derive(Clone, Debug)]
enum Step {
    Submit(Priority, u64, Key),
    /// Takes the next work, if it need not wait.
    Next,
    /// Ends the oldest running work.
    End,
}

fn step() -> impl Strategy<Value = Step> {
    let priority = prop::sample::select(&Priority::ALL[..]);
    prop_oneof![
        (priority, 1..60_u64, 0..4_u8).prop_map(|(p, b, k)| Step::Submit(p, b, k)),
        Just(Step::Next),
        Just(Step::End),
    ]
}

/// The twin, which adds up the charged bytes anew each time.
#[derive(Default)]
struct Twin {
    waiting: Vec<(bool, Priority, u32, u64, Key)>,
    running: Vec<(bool, u64, Key)>,
    present: Vec<Key>,
    /// The keys among them that critical work used.
    critical: Vec<Key>,
}

const TOTAL: u64 = 120;
const RESERVE: u64 = 30;
const SHARED: u64 = 15;

impl Twin {
    /// Returns the most urgent work, with the keys that are evicted for it, if it fits.
    fn admits(&self) -> Option<(u32, Vec<Key>)> {
        let order = |w: &&(bool, Priority, u32, u64, Key)| (!w.0, w.1, w.2);
        let &(critical, _, item, bytes, key) = self.waiting.iter().min_by_key(order)?;
        let used = |key: &Key| self.running.iter().any(|(_, _, used)| used == key);
        let mut present = self.present.clone();
        let mut gone = Vec::new();
        loop {
            let others: u64 = self.running.iter().filter(|r| !r.0).map(|r| r.1).sum();
            let criticals: u64 = self.running.iter().filter(|r| r.0).map(|r| r.1).sum();
            let shared = present.len() as u64 + u64::from(!present.contains(&key));
            let shared = shared * SHARED;
            let total = others + criticals + shared + bytes <= TOTAL;
            let spared = others + shared + bytes + RESERVE.max(criticals) <= TOTAL;
            if total && (critical || spared) {
                return Some((item, gone));
            }
            let idle = |critical: bool| {
                let goes = |k: &Key| self.critical.contains(k) == critical && *k != key && !used(k);
                present.iter().position(goes)
            };
            let idle = idle(false).or_else(|| idle(true))?;
            gone.push(present.remove(idle));
        }
    }
}

proptest! {
    #[test]
    fn as_the_twin_says(steps in prop::collection::vec(step(), 1..120)) {
        let admission = Admission::new(limits(TOTAL, RESERVE));
        let mut twin = Twin::default();
        let mut running = std::collections::VecDeque::new();
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Submit(priority, bytes, key) if twin.waiting.len() < 64 => {
                    submit(&admission, priority, number, sharing(bytes, key, SHARED));
                    let critical = priority == Priority::Critical;
                    twin.waiting.push((critical, priority, number, bytes, key));
                }
                Step::Next => if let Some((item, gone)) = twin.admits() {
                    let (got, memory, evicted) = admitted(&admission, Lane::Common);
                    prop_assert_eq!((got, &evicted), (item, &gone));
                    let at = twin.waiting.iter().position(|w| w.2 == item).unwrap();
                    let (critical, _, _, bytes, key) = twin.waiting.remove(at);
                    twin.present.retain(|key| !gone.contains(key));
                    twin.critical.retain(|key| !gone.contains(key));
                    if critical {
                        twin.critical.push(key);
                    }
                    if !twin.present.contains(&key) {
                        twin.present.push(key);
                    }
                    twin.running.push((critical, bytes, key));
                    running.push_back(memory);
                },
                Step::End if !running.is_empty() => {
                    running.pop_front();
                    let (_, _, key) = twin.running.remove(0);
                    // The least recently used key is first.
                    if twin.running.iter().all(|(_, _, used)| *used != key) {
                        twin.present.retain(|present| *present != key);
                        twin.present.push(key);
                    }
                }
                Step::Submit(..) | Step::End => {}
            }
            let usage = admission.usage();
            let own: u64 = twin.running.iter().map(|(_, bytes, _)| bytes).sum();
            prop_assert_eq!(usage.used_bytes, own + SHARED * twin.present.len() as u64);
            prop_assert_eq!(usage.waiting, twin.waiting.len());
        }
    }
}

#[test]
fn what_is_reserved_out_of_order_takes_only_what_is_free() {
    let admission = Admission::new(limits(100, 20));
    submit(&admission, Priority::Normal, 1, sharing(10, 7, 30));
    let (_, first, _) = admitted(&admission, Lane::Common);
    assert!(
        admission.reserve(&sharing(41, 7, 30)).is_none(),
        "the reserve"
    );
    let beside = admission.reserve(&sharing(40, 7, 30)).unwrap();
    assert_eq!(admission.usage().used_bytes, 80);
    drop(first);
    assert!(admission.reserve(&Need::own(11)).is_none());
    // An idle thing is evicted for work that has its turn, and not for a reservation.
    drop(beside);
    assert_eq!(admission.usage().idle_bytes, 30);
    assert!(admission.reserve(&Need::own(51)).is_none());
    assert_eq!(admission.usage().idle_bytes, 30);
    let held = admission.reserve(&Need::own(50)).unwrap();
    let usage = admission.usage();
    assert_eq!((usage.running, usage.in_background), (0, 1));
    admission.close();
    assert!(admission.reserve(&Need::own(1)).is_none(), "closed");
    thread::scope(|scope| {
        let worker = scope.spawn(|| admission.next(Lane::Common).is_none());
        thread::sleep(Duration::from_millis(20));
        assert!(!worker.is_finished(), "its memory is in use");
        drop(held);
        assert!(worker.join_bounded().unwrap());
    });
}

/// A reservation may be held for long, and critical work cannot wait for that. This
/// holds whether it waits for its worker, or for memory that is about to be freed.
#[test]
fn what_is_reserved_out_of_order_leaves_critical_work_its_room() {
    let admission = Admission::new(limits(100, 20));
    submit(&admission, Priority::Normal, 1, Need::own(50));
    let (_, running, _) = admitted(&admission, Lane::Common);
    submit_to(
        Lane::Critical,
        &admission,
        Priority::Critical,
        2,
        Need::own(90),
    );
    assert!(admission.reserve(&Need::own(1)).is_none(), "it waits");
    drop(running);
    assert!(admission.reserve(&Need::own(11)).is_none(), "it can begin");
    let beside = admission.reserve(&Need::own(10)).unwrap();
    let (item, critical, _) = admitted(&admission, Lane::Critical);
    assert_eq!(item, 2);
    drop((beside, critical));
    // Other work waits until it is given back.
    submit(&admission, Priority::High, 3, Need::own(80));
    let first = admission.reserve(&Need::own(1)).unwrap();
    drop(first);
    assert_eq!(admitted(&admission, Lane::Common).0, 3);
}

/// Critical work uses the reserve, even if it was abandoned.
#[test]
fn given_up_critical_memory_is_lost_once() {
    const RESERVE: u64 = 20;
    for critical_bytes in [RESERVE / 2, RESERVE, RESERVE + 10] {
        let admission = Admission::new(limits(100, RESERVE));
        let need = Need::own(critical_bytes);
        submit_to(Lane::Critical, &admission, Priority::Critical, 1, need);
        let (_, mut memory, _) = admitted(&admission, Lane::Critical);
        let most = 100 - critical_bytes.max(RESERVE);
        for given_up in [false, true] {
            if given_up {
                memory.abandon();
            }
            submit(&admission, Priority::Normal, 2, Need::own(most));
            let (item, beside, _) = admitted(&admission, Lane::Common);
            assert_eq!(item, 2, "beside {critical_bytes}, given up: {given_up}");
            drop(beside);
        }
        let check = |priority, bytes| admission.check(priority, &Need::own(bytes)).is_ok();
        assert!(!check(Priority::Normal, most + 1));
        assert!(check(Priority::Critical, 100 - critical_bytes));
        assert!(!check(Priority::Critical, 100 - critical_bytes + 1));
        drop(memory);
        assert!(check(Priority::Critical, 100));
    }
}

#[test]
fn held_work_has_no_turn_and_delays_nobody() {
    let admission = Admission::new(limits(100, 0));
    submit(&admission, Priority::High, 2, Need::own(100));
    submit(&admission, Priority::Low, 1, Need::own(60));
    admission.hold(Some(|item| item.is_multiple_of(2)));
    submit(&admission, Priority::High, 4, Need::own(10));
    let (item, memory, _) = admitted(&admission, Lane::Common);
    assert_eq!(item, 1);
    let mut seen = Vec::new();
    admission.visit_waiting(|item, work| seen.push((*item, work.ahead, work.is_held)));
    assert_eq!(seen, [(2, 0, true), (4, 0, true)]);
    admission.hold(None);
    drop(memory);
    assert_eq!(admitted(&admission, Lane::Common).0, 2);
}

/// The question that holds work has another answer now, and no work came or ended.
#[test]
fn whoever_waits_looks_again_when_it_is_told_to() {
    static HOLDS: AtomicBool = AtomicBool::new(true);
    let admission = Arc::new(Admission::new(limits(100, 0)));
    admission.hold(Some(|_| HOLDS.load(Ordering::SeqCst)));
    submit(&admission, Priority::Normal, 1, Need::own(10));
    let (tell, told) = mpsc::channel();
    thread::spawn({
        let admission = Arc::clone(&admission);
        move || tell.send(admitted(&admission, Lane::Common).0)
    });
    assert!(told.recv_timeout(Duration::from_millis(20)).is_err());
    HOLDS.store(false, Ordering::SeqCst);
    admission.wake();
    assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(1));
}

#[test]
fn a_survey_counts_what_is_ahead_and_the_bytes_to_be_charged() {
    let admission = Admission::new(limits(100, 0));
    submit(&admission, Priority::Normal, 1, sharing(10, 1, 30));
    let _running = admitted(&admission, Lane::Common);
    let needs = [sharing(10, 1, 30), Need::own(25), sharing(5, 2, 40)];
    for (item, need) in (2..).zip(needs) {
        submit(&admission, Priority::Normal, item, need);
    }
    let mut seen = Vec::new();
    admission.visit_waiting(|item, work| seen.push((*item, work.ahead, work.needed_bytes)));
    assert_eq!(seen, [(2, 0, 10), (3, 1, 25), (4, 2, 45)]);
    assert!(!admission.is_closed());
    admission.close();
    assert!(admission.is_closed());
}

#[test]
fn what_was_given_up_counts_no_more_when_its_memory_is_free() {
    let admission = Admission::new(limits(100, 0));
    submit(&admission, Priority::Normal, 1, sharing(40, 1, 10));
    let (_, mut memory, _) = admitted(&admission, Lane::Common);
    memory.abandon();
    let all = || admission.check(Priority::Normal, &Need::own(100));
    assert!(all().is_err());
    drop(memory);
    assert_eq!(all(), Ok(()));
}

#[test]
fn waiting_work_is_ranked_anew() {
    let admission = Admission::new(limits(100, 0));
    let since = Instant::now();
    for (item, priority) in [
        (1, Priority::Normal),
        (2, Priority::Low),
        (3, Priority::Low),
    ] {
        submit(&admission, priority, item, Need::own(10));
    }
    admission.rerank(Priority::High, since, |item| *item > 1);
    let order = [(); 3].map(|()| admitted(&admission, Lane::Common).0);
    assert_eq!(order, [2, 3, 1]);
}

#[test]
fn a_thing_that_nobody_uses_is_let_go_of() {
    let admission: Admission<u32, Key> = Admission::new(limits(100, 0));
    assert!(matches!(admission.let_go(&1), LetGo::Absent));
    let need = sharing(10, 1, 40);
    let memory = admission.reserve(&need).unwrap();
    let in_background = Users {
        work: 0,
        in_background: 1,
    };
    let refused = admission.let_go(&1);
    assert!(matches!(refused, LetGo::InUse(users) if users == in_background));
    assert_eq!(admission.shared_things()[0].idle, None);
    submit(&admission, Priority::Normal, 1, need.clone());
    let (_, work, _) = admitted(&admission, Lane::Common);
    let both = Users {
        work: 1,
        in_background: 1,
    };
    assert!(matches!(admission.let_go(&1), LetGo::InUse(users) if users == both));
    assert_eq!((both.all(), admission.shared_things()[0].users), (2, 2));
    let usage = admission.usage();
    assert_eq!((usage.running, usage.in_background), (1, 1));
    drop((memory, work));
    let thing = &admission.shared_things()[0];
    assert_eq!((thing.key, thing.bytes, thing.users), (1, 40, 0));
    assert!(thing.idle.is_some());
    let LetGo::Evicted { evicted, bytes } = admission.let_go(&1) else {
        panic!("nobody uses it");
    };
    assert_eq!((bytes, admission.usage().used_bytes), (40, 0));
    assert!(admission.reserve(&need).is_none(), "it is not freed yet");
    drop(evicted);
    assert!(admission.reserve(&need).is_some());
}

#[test]
fn a_reservation_can_evict_what_is_idle() {
    let admission: Admission<u32, Key> = Admission::new(limits(100, 0));
    drop(admission.reserve(&sharing(10, 1, 60)));
    let need = sharing(10, 2, 60);
    assert!(admission.reserve(&need).is_none());
    let (memory, evicted) = admission.reserve_evicting(&need).unwrap();
    assert_eq!((evicted.to_vec(), memory.own_bytes()), (vec![1], 10));
    let usage = admission.usage();
    assert_eq!((usage.running, usage.in_background), (1, 0));
}
