//! Values are freed in the background, one at a time on each side, whatever their
//! `Drop` does.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, some of which panic on purpose"
)]

use cuzk_bounded::{BoundedJoin, BoundedReceiver};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::Duration;
use supraseal_sys::dealloc::{dealloc_async, flush, stats};
use supraseal_sys::test_hooks;

/// The queue belongs to the process, so tests that fill or count it take turns.
static TURN: Mutex<()> = Mutex::new(());

#[derive(Default)]
struct Seen {
    now: AtomicU32,
    max: AtomicU32,
    dropped: AtomicU32,
    threads: Mutex<Vec<ThreadId>>,
}

struct Slow(Arc<Seen>);

impl Drop for Slow {
    fn drop(&mut self) {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.max.fetch_max(now, Ordering::SeqCst);
        thread::sleep(Duration::from_micros(200));
        self.0.threads.lock().unwrap().push(thread::current().id());
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Blocks the dealloc thread until `open` is dropped or sent to.
struct Gate(Receiver<()>);

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.0.recv_bounded();
    }
}

fn close_gate() -> Sender<()> {
    let (open, gate) = channel();
    flush();
    dealloc_async(Gate(gate));
    while stats().rust.freeing == 0 {
        thread::yield_now();
    }
    open
}

#[test]
fn one_at_a_time_from_many_threads() {
    let _turn = TURN.lock();
    let seen = Arc::new(Seen::default());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..40 {
                    dealloc_async(Slow(Arc::clone(&seen)));
                }
            });
        }
    });
    flush();
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 320);
    assert_eq!(seen.max.load(Ordering::SeqCst), 1);
}

#[test]
fn the_caller_does_not_wait_and_the_queue_is_bounded() {
    let _turn = TURN.lock();
    let open = close_gate();
    let seen = Arc::new(Seen::default());
    for _ in 0..64 {
        dealloc_async(Slow(Arc::clone(&seen)));
    }
    assert_eq!(stats().rust.queued, 64);
    assert_eq!(
        seen.dropped.load(Ordering::SeqCst),
        0,
        "all wait behind the gate"
    );

    // One value too many: its giver frees it, after the gate.
    let giver = thread::scope(|scope| {
        let giver = scope.spawn(|| {
            dealloc_async(Slow(Arc::clone(&seen)));
            thread::current().id()
        });
        thread::sleep(Duration::from_millis(20));
        assert!(!giver.is_finished(), "it waits for its turn");
        assert_eq!(stats().rust.queued, 64);
        drop(open);
        giver.join_bounded().unwrap()
    });
    flush();
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 65);
    assert_eq!(seen.max.load(Ordering::SeqCst), 1);
    let threads = seen.threads.lock().unwrap();
    assert_eq!(threads.iter().filter(|id| **id == giver).count(), 1);
    assert!(!threads.contains(&thread::current().id()));
    let mut background: Vec<_> = threads.iter().filter(|id| **id != giver).collect();
    background.dedup();
    assert_eq!(background.len(), 1, "one dealloc thread");
}

struct Panics(#[expect(dead_code, reason = "freed after the panic")] Slow);

impl Drop for Panics {
    fn drop(&mut self) {
        struct PanicsToo;
        impl Drop for PanicsToo {
            fn drop(&mut self) {
                panic!("the payload");
            }
        }
        std::panic::panic_any(PanicsToo);
    }
}

#[test]
fn a_panicking_drop_loses_nothing() {
    let _turn = TURN.lock();
    flush();
    let before = stats();
    let seen = Arc::new(Seen::default());
    for _ in 0..10 {
        dealloc_async(Panics(Slow(Arc::clone(&seen))));
        dealloc_async(Slow(Arc::clone(&seen)));
    }
    flush();
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 20);
    assert_eq!(stats().rust_panicked, before.rust_panicked + 10);
    assert_eq!(stats().rust.freed, before.rust.freed + 20);
    assert_eq!((stats().rust.queued, stats().rust.freeing), (0, 0));
}

struct GivesAnother(Option<Slow>);

impl Drop for GivesAnother {
    fn drop(&mut self) {
        dealloc_async(self.0.take());
        flush();
    }
}

#[test]
fn a_drop_may_give_and_flush() {
    let _turn = TURN.lock();
    let seen = Arc::new(Seen::default());
    // More values than the queue holds, so that givers run such a drop, too.
    let open = close_gate();
    thread::scope(|scope| {
        let giver = scope.spawn(|| {
            for _ in 0..80 {
                dealloc_async(GivesAnother(Some(Slow(Arc::clone(&seen)))));
            }
        });
        while stats().rust.queued < 64 {
            thread::yield_now();
        }
        drop(open);
        giver.join_bounded().unwrap();
    });
    flush();
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 80);
    assert_eq!(seen.max.load(Ordering::SeqCst), 1);
}

#[test]
fn cpp_frees_one_at_a_time() {
    let _turn = TURN.lock();
    flush();
    let before = stats().cpp.freed;
    // More values than the queue holds and the thread frees in the meantime, so the
    // givers free some.
    let seen = test_hooks::dealloc(300, 1000).unwrap();
    assert_eq!(seen.concurrent_max, 1);
    assert!(seen.freed_by_givers > 0);
    assert!(
        seen.freed_by_givers <= 300 - 64,
        "as many as it holds are queued"
    );
    flush();
    let after = stats().cpp;
    assert_eq!(after.freed, before + 300);
    assert_eq!((after.queued, after.freeing), (0, 0));
}

/// C++'s thread may free a value of Rust's. So a measurement can use the C++ mutex.
#[test]
fn cpp_frees_what_it_is_given() {
    let _turn = TURN.lock();
    flush();
    let before = stats();
    let seen = Arc::new(Seen::default());
    for _ in 0..3 {
        test_hooks::dealloc_in_cpp(Slow(Arc::clone(&seen))).unwrap();
    }
    flush();
    assert_eq!(seen.dropped.load(Ordering::SeqCst), 3);
    assert_eq!(seen.max.load(Ordering::SeqCst), 1);
    let threads = seen.threads.lock().unwrap();
    assert!(!threads.contains(&thread::current().id()));
    assert_eq!(stats().cpp.freed, before.cpp.freed + 3);
    assert_eq!(stats().rust, before.rust);
}

/// Sends the nice value of the thread that drops it.
#[cfg(target_os = "linux")]
struct TellsNice(Sender<i32>);

#[cfg(target_os = "linux")]
impl Drop for TellsNice {
    fn drop(&mut self) {
        let _ = self.0.send(nice());
    }
}

/// Returns the nice value of the calling thread.
#[cfg(target_os = "linux")]
fn nice() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The second field, the thread's name, is in brackets and may contain any
    // characters.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(19 - 3).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn who_frees_gives_way_and_who_gives_does_not() {
    let _turn = TURN.lock();
    let own = nice();
    let (tell, told) = channel();
    dealloc_async(TellsNice(tell.clone()));
    assert_eq!(told.recv_bounded(), Ok(19)); // The most there is.
    test_hooks::dealloc_in_cpp(TellsNice(tell)).unwrap();
    assert_eq!(told.recv_bounded(), Ok((own + 10).min(19)));
    assert_eq!(nice(), own);
}

/// A thread frees much memory below a value that it keeps.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn what_the_allocator_keeps_goes_back_to_the_system() {
    const BOXES: usize = 64 << 10;
    let anonymous_bytes = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
        kib.unwrap().trim().parse::<usize>().unwrap() << 10
    };
    let mut boxes: Vec<_> = (0..BOXES).map(|n| Box::new([n; 128])).collect();
    let last = boxes.pop();
    drop(boxes);
    let kept = anonymous_bytes();
    supraseal_sys::dealloc::trim_heap();
    let left = anonymous_bytes();
    assert!(left + BOXES * 512 < kept, "{kept} {left}");
    assert_eq!(last.unwrap()[127], BOXES - 1);
}
