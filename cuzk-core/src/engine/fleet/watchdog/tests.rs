//! Late answers, without devices.

use cuzk_bounded::{BoundedJoin, bounded};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize};
use cuzk_scheduler::admission::{Admission, Entrance, Lane, Limits, Need, Turn};
use cuzk_scheduler::priority::Priority;

use std::sync::Arc;

use super::*;
use crate::config::Config;
use crate::job::{JobState, NewJob};

const BYTES: u64 = 7;

fn call(device: usize) -> DeviceCall {
    DeviceCall {
        device,
        part: CallPart::Finish,
        is_watched: true,
    }
}

/// Begins a call of a device, and returns what the memory of its partition is charged to.
fn begun(watch: &Watchdog, call: DeviceCall) -> Admission<Attempt, AssetKey> {
    let now = Instant::now();
    let (priority, patience) = (Priority::Normal, Config::default().jobs.patience);
    let circuit = CircuitId {
        kind: ProofKind::Porep,
        sector_size: SectorSize::KiB2,
    };
    let job = Arc::new(JobState::new(NewJob {
        number: 0,
        id: None,
        caller: tracing::Span::none(),
        circuit,
        partitions: 1,
        priority,
        patience,
        accepted: now,
        deadline: None,
        record: None,
    }));
    let admission = Admission::new(Limits {
        capacity: 1,
        total_bytes: BYTES,
        critical_reserve_bytes: 0,
        patience,
    });
    let item = (Attempt::new(job, 0), Need::own(BYTES));
    let lane = Lane::Common;
    let items = vec![item];
    let submitted = admission.submit(Entrance::IfRoom, lane, priority, now, items);
    submitted.unwrap();
    let Some(Turn::Admitted {
        item,
        ticket,
        memory,
        ..
    }) = admission.next(lane)
    else {
        panic!("there is room");
    };
    watch.begin(call, &item, ticket, memory);
    admission
}

/// A partition that a device does not answer for, and what its memory is charged to.
fn given_up(watch: &Watchdog) -> (StalledCall, Admission<Attempt, AssetKey>) {
    let admission = begun(watch, call(0));
    let stalled = bounded(|| {
        loop {
            if let Some(stalled) = watch.stalled().pop() {
                break stalled;
            }
        }
    });
    (stalled, admission)
}

fn impatient() -> Watchdog {
    let stall = Duration::ZERO;
    Watchdog::new(&Gpus {
        stall,
        ..Config::default().gpus
    })
}

#[test]
fn the_oldest_call_is_given_up_first() {
    let watch = impatient();
    let _admissions = [0, 1, 2].map(|device| begun(&watch, call(device)));
    let mut devices = Vec::new();
    bounded(|| {
        while devices.len() < 3 {
            let stalled = watch.stalled();
            devices.extend(stalled.iter().map(|stalled| stalled.call.device));
        }
    });
    assert_eq!(devices, [0, 1, 2]);
}

#[test]
fn a_device_computes_while_its_call_is_watched_and_has_time_left() {
    let patient = Watchdog::new(&Gpus {
        stall: Duration::from_secs(3600),
        ..Config::default().gpus
    });
    assert!(!patient.any_computes());
    let unwatched = DeviceCall {
        is_watched: false,
        ..call(0)
    };
    let _unwatched = begun(&patient, unwatched);
    assert!(!patient.any_computes());
    let _watched = begun(&patient, call(1));
    assert!(patient.any_computes());
    let impatient = impatient();
    let _late = begun(&impatient, call(0));
    bounded(|| while impatient.any_computes() {});
    assert_eq!(impatient.stalled().len(), 1);
}

/// A worker that saw that nothing runs or waits would end before the partition is
/// put back.
#[test]
fn a_late_answer_leaves_the_partition_running_until_it_is_put_elsewhere() {
    let watch = impatient();
    let (stalled, admission) = given_up(&watch);
    assert!(watch.answered(stalled.key, ()).is_none());
    watch.lose(stalled.key);
    assert!(watch.lock().lost.is_empty(), "its worker works on");
    assert_eq!(admission.usage().running, 1);
    watch.abandon(stalled.key);
    let usage = admission.usage();
    assert_eq!((usage.running, usage.used_bytes), (0, 0));
}

#[test]
fn memory_of_a_silent_device_stays_charged_until_it_answers() {
    let watch = impatient();
    let (stalled, admission) = given_up(&watch);
    watch.lose(stalled.key);
    assert_eq!(watch.lock().lost.len(), 1);
    watch.abandon(stalled.key);
    let usage = admission.usage();
    assert_eq!((usage.running, usage.used_bytes), (0, BYTES));
    assert!(watch.answered(stalled.key, ()).is_none());
    assert_eq!(admission.usage().used_bytes, 0);
    assert!(watch.lock().lost.is_empty() && watch.lock().running.is_empty());
}

/// Looks at its end at what there is, as vectors have their memory until then.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The partition may be put elsewhere before the device answers, and while what it
/// answered with is let go of.
#[test]
fn memory_stays_charged_until_what_came_too_late_is_gone() {
    for settled_before in [true, false] {
        let watch = impatient();
        let (stalled, admission) = given_up(&watch);
        let settle = || {
            watch.lose(stalled.key);
            watch.abandon(stalled.key);
        };
        let mut seen = None;
        if settled_before {
            settle();
        }
        let done = AtEnd(|| {
            if !settled_before {
                settle();
            }
            seen = Some((admission.usage().used_bytes, watch.lock().lost.len()));
        });
        assert!(watch.answered(stalled.key, done).is_none());
        assert_eq!(seen, Some((BYTES, 1)), "{settled_before}");
        assert_eq!(admission.usage().used_bytes, 0);
        assert!(watch.lock().lost.is_empty() && watch.lock().running.is_empty());
    }
}

#[test]
fn a_worker_ends_or_is_lost() {
    let watch = Arc::new(impatient());
    let own = Arc::clone(&watch);
    let worker = thread::spawn(move || drop(own.enter()));
    let ended = worker.thread().id();
    assert!(watch.has_ended(ended));
    worker.join_bounded().unwrap();
    let (stalled, _admission) = given_up(&watch);
    watch.lose(stalled.key);
    assert!(!watch.has_ended(thread::current().id()));
}

/// Without a change there is one look in the time between two looks, and no more.
#[test]
fn the_next_look_is_not_at_once() {
    let stall = Duration::from_secs(1);
    let watch = Watchdog::new(&Gpus {
        stall,
        rest: stall,
        ..Config::default().gpus
    });
    let began = Instant::now();
    assert!(watch.next_look());
    assert!(began.elapsed() >= stall / LOOKS);
    watch.close();
    assert!(!watch.next_look());
}
