//! Connections that end early, and runs that are stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuzk_fetch::{Event, Outcome, fetch};

use crate::server::{Manner, Server};
use crate::{NAME, Seen, listed, made, names_in, options, run_whole};

/// A cut connection goes on at the byte that it reached.
#[test]
fn after_twenty_cuts_no_byte_came_twice() {
    let bytes = made(5_000_001);
    let server = Server::start(&[(NAME, &bytes)], |asked| Manner {
        cut_after: (asked.number < 20).then_some(65_600 + asked.number * 100),
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), &[server.url()]);
    options.range_bytes = 1 << 20;
    let files = listed(&[(NAME, &bytes)]);
    let report = fetch(&files, options, &AtomicBool::new(false), &mut ()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert!(std::fs::read(folder.path().join(NAME)).unwrap() == bytes);
    let sent = server.sent(NAME);
    assert!(sent.iter().all(|times| *times == 1));
    assert_eq!(report.sources[0].fetched_bytes, bytes.len() as u64);
}

/// Two requests bring a known number of bytes and wait. The run is stopped there.
#[test]
fn a_stopped_run_keeps_what_came() {
    let bytes = made(1_000_000);
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let server = Server::start(&[(NAME, &bytes)], move |_| Manner {
        stall_after: slow.load(Ordering::SeqCst).then_some(10_000),
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut seen = Seen {
        stop: Some(&stop),
        stop_at_bytes: Some(20_000),
        ..Seen::default()
    };
    let mut options = options(folder.path(), &[server.url()]);
    options.jobs = 2;
    let files = listed(&[(NAME, &bytes)]);
    let report = fetch(&files, options, &stop, &mut seen).unwrap();
    assert_eq!(report.files[0].outcome, Outcome::Stopped);
    assert_eq!(names_in(folder.path()), [".cuzk-fetch", "fetch.lock"]);

    is_slow.store(false, Ordering::SeqCst);
    let (report, events) = run_whole(folder.path(), &[server.url()], &bytes);
    let is_kept = |event: &Event| {
        matches!(
            event,
            Event::Begun {
                kept_bytes: 20_000,
                ..
            }
        )
    };
    assert!(events.iter().any(is_kept), "{events:?}");
    assert_eq!(report.sources[0].fetched_bytes, 980_000);
    let sent = server.sent(NAME);
    assert!(sent.iter().all(|times| *times == 1));
}

/// A source stops to send. Another one brings its bytes, and no byte twice.
#[test]
fn a_stalled_source_loses_its_ranges() {
    let bytes = made(2_000_000);
    let asked = Arc::new(AtomicBool::new(false));
    let was_asked = Arc::clone(&asked);
    let stalled = Server::start(&[(NAME, &bytes)], move |request| {
        was_asked.fetch_or(!request.is_head, Ordering::SeqCst);
        Manner {
            stall_after: Some(1000),
            ..Manner::default()
        }
    });
    // It has nothing to give until the other one was asked.
    let good = Server::start(&[(NAME, &bytes)], move |request| Manner {
        status: (!request.is_head && !asked.load(Ordering::SeqCst)).then_some(503),
        lines: vec!["Retry-After: 0\r\n".to_owned()],
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), &[stalled.url(), good.url()]);
    options.failures_max = u32::MAX;
    let files = listed(&[(NAME, &bytes)]);
    let report = fetch(&files, options, &AtomicBool::new(false), &mut ()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert!(std::fs::read(folder.path().join(NAME)).unwrap() == bytes);
    assert!(good.sent(NAME).iter().all(|times| *times <= 1));
    assert!(stalled.sent_bytes(NAME) > 0);
    let fetched: u64 = report
        .sources
        .iter()
        .map(|source| source.fetched_bytes)
        .sum();
    assert_eq!(fetched, bytes.len() as u64);
}
