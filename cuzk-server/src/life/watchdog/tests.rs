use std::sync::atomic::AtomicBool;

use cuzk_bounded::Bound;

use super::*;

const BOUND_S: u64 = 30;
const INTERVAL_S: u64 = 20;

/// A look: seconds on the clock, whether the engine is idle, both counters, and the part
/// that is hung with the seconds of its stillness.
type Look = (u64, bool, u64, u64, Option<(Part, u64)>);

const IDLE: bool = true;
const BUSY: bool = false;

fn judge(looks: &[Look]) {
    let start = Instant::now();
    let seconds = Duration::from_secs;
    let mut liveness = Liveness::new(seconds(BOUND_S), seconds(INTERVAL_S));
    for &(at_s, is_idle, checkpoints, ticks, expected) in looks {
        let sample = Sample {
            is_idle,
            checkpoints,
            ticks,
        };
        let expected = expected.map_or(Verdict::Alive, |(part, still_s)| Verdict::Hung {
            part,
            still: seconds(still_s),
        });
        let verdict = liveness.look(start + seconds(at_s), sample);
        assert_eq!(verdict, expected, "at {at_s} s");
    }
}

#[test]
fn an_idle_engine_is_alive() {
    judge(&[
        (0, IDLE, 0, 0, None),
        (20, IDLE, 0, 1, None),
        (40, IDLE, 0, 2, None),
        (60, IDLE, 0, 3, None),
    ]);
}

#[test]
fn a_busy_engine_is_alive_while_it_advances() {
    judge(&[
        (0, BUSY, 7, 0, None),
        (20, BUSY, 7, 1, None),
        (40, BUSY, 8, 2, None),
        (60, BUSY, 8, 3, None),
        (80, BUSY, 9, 4, None),
    ]);
}

#[test]
fn a_busy_engine_that_stands_still_is_hung_until_it_advances() {
    judge(&[
        (0, BUSY, 7, 0, None),
        (20, BUSY, 7, 1, None),
        (30, BUSY, 7, 2, None),
        (40, BUSY, 7, 3, Some((Part::Engine, 40))),
        (60, BUSY, 7, 4, Some((Part::Engine, 60))),
        (80, BUSY, 8, 5, None),
        (100, BUSY, 8, 6, None),
    ]);
}

#[test]
fn the_time_before_new_work_does_not_count() {
    judge(&[
        (0, IDLE, 7, 0, None),
        (40, IDLE, 7, 1, None),
        (80, BUSY, 7, 2, None),
        (100, BUSY, 7, 3, None),
        (120, BUSY, 7, 4, Some((Part::Engine, 40))),
        (140, IDLE, 7, 5, None),
    ]);
}

#[test]
fn a_runtime_that_stands_still_is_hung_though_the_engine_is_idle() {
    judge(&[
        (0, IDLE, 0, 3, None),
        (20, IDLE, 0, 3, None),
        (40, IDLE, 0, 3, Some((Part::Runtime, 40))),
        (60, IDLE, 0, 4, None),
    ]);
}

/// A machine that was suspended for an hour has hung in no part.
#[test]
fn one_look_counts_two_intervals_at_most() {
    judge(&[
        (0, BUSY, 7, 0, None),
        (3600, BUSY, 7, 0, Some((Part::Runtime, 40))),
        (3601, BUSY, 8, 1, None),
    ]);
    let seconds = Duration::from_secs;
    let mut liveness = Liveness::new(seconds(60), seconds(20));
    let start = Instant::now();
    let still = Sample {
        is_idle: false,
        checkpoints: 1,
        ticks: 1,
    };
    assert_eq!(liveness.look(start, still), Verdict::Alive);
    let late = liveness.look(start + seconds(3600), still);
    assert_eq!(late, Verdict::Alive, "40 s of 3600 s count");
}

#[test]
fn half_of_the_watchdogs_time_is_allowed_and_at_least_30_s() {
    let seconds = Duration::from_secs;
    let of = |watchdog_s| still_max(seconds(watchdog_s)).as_secs();
    assert_eq!([of(1), of(60), of(61), of(300)], [30, 30, 30, 150]);
}

struct Engine {
    checkpoints: AtomicU64,
    advances: AtomicBool,
}

impl Pulse for Engine {
    fn is_idle(&self) -> bool {
        false
    }

    fn checkpoints(&self) -> u64 {
        let step = u64::from(self.advances.load(Ordering::SeqCst));
        self.checkpoints.fetch_add(step, Ordering::SeqCst)
    }
}

/// The thread itself: it pings, ceases while the engine stands still, pings again, and ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_thread_pings_while_the_engine_advances() {
    let _bound = Bound::default();
    let engine = Arc::new(Engine {
        checkpoints: AtomicU64::new(0),
        advances: AtomicBool::new(true),
    });
    let interval = Duration::from_millis(1);
    // A bound that a runtime on a loaded machine does not reach by chance before the
    // engine does, because the engine stands still for as long as it takes.
    let liveness = Liveness::new(Duration::from_millis(200), interval);
    let (ping, pings) = mpsc::channel();
    let ping = move || {
        let _ = ping.send(());
    };
    let watchdog = Watchdog::start_with(Arc::clone(&engine), liveness, interval, ping).unwrap();
    let patience = Duration::from_secs(60);
    let pings = tokio::task::spawn_blocking(move || {
        for _ in 0..10 {
            pings.recv_timeout(patience).unwrap();
        }
        engine.advances.store(false, Ordering::SeqCst);
        // Until no ping came for longer than an interval by far.
        while pings.recv_timeout(Duration::from_secs(1)).is_ok() {}
        engine.advances.store(true, Ordering::SeqCst);
        pings.recv_timeout(patience).unwrap();
        pings
    });
    let pings = pings.await.unwrap();
    drop(watchdog);
    let ended = tokio::task::spawn_blocking(move || {
        loop {
            match pings.recv_timeout(patience) {
                Ok(()) => {}
                Err(error) => break error,
            }
        }
    });
    assert_eq!(ended.await.unwrap(), RecvTimeoutError::Disconnected);
}
