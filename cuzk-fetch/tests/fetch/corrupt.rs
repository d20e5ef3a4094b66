//! Sources that give wrong bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuzk_fetch::{Event, Report};

use crate::server::{Manner, Server};
use crate::{NAME, failure, listed, made, options, run, run_whole};

/// Starts a server that answers only after a wrong one has answered `count` requests.
fn late(bytes: &[u8], answered: &Arc<AtomicUsize>, count: usize) -> Server {
    let answered = Arc::clone(answered);
    Server::start(&[(NAME, bytes)], move |asked| Manner {
        status: (!asked.is_head && answered.load(Ordering::SeqCst) < count).then_some(503),
        lines: vec!["Retry-After: 0\r\n".to_owned()],
        ..Manner::default()
    })
}

/// Starts a server of wrong bytes that counts its answers.
fn wrong(bytes: &[u8], answered: &Arc<AtomicUsize>, is_wrong: fn(usize) -> bool) -> Server {
    let answered = Arc::clone(answered);
    Server::start(&[(NAME, bytes)], move |asked| {
        answered.fetch_add(usize::from(!asked.is_head), Ordering::SeqCst);
        Manner {
            is_wrong: Some(is_wrong),
            ..Manner::default()
        }
    })
}

fn corrupt(report: &Report) -> Vec<bool> {
    let sources = report.sources.iter();
    sources.map(|source| source.is_corrupt).collect()
}

/// The search compares a piece of each source with another. Only the bytes of the wrong
/// source are fetched again.
#[test]
fn a_source_that_is_wrong_throughout_costs_its_own_bytes() {
    let bytes = made(3_000_000);
    let answered = Arc::new(AtomicUsize::new(0));
    let wrong = wrong(&bytes, &answered, |at| at % 1000 == 7);
    let good = [late(&bytes, &answered, 3), late(&bytes, &answered, 3)];
    let folder = tempfile::tempdir().unwrap();
    let sources = [good[0].url(), wrong.url(), good[1].url()];
    let mut options = options(folder.path(), &sources);
    options.failures_max = u32::MAX;
    let (report, events) = run(&listed(&[(NAME, &bytes)]), options).unwrap();
    assert!(report.is_complete(), "{report:?}\n{events:?}");
    assert!(std::fs::read(folder.path().join(NAME)).unwrap() == bytes);
    assert_eq!(corrupt(&report), [false, true, false]);
    let is_told =
        |event: &Event| matches!(event, Event::Corrupt { source, .. } if *source == sources[1]);
    assert_eq!(events.iter().filter(|event| is_told(event)).count(), 1);
    // At most three sources are compared, with two others, in pieces of 16 KiB.
    let sent: usize = good.iter().map(|server| server.sent_bytes(NAME)).sum();
    assert!(sent <= bytes.len() + 6 * (16 << 10), "{sent}");
}

/// One byte in 64 KiB is wrong, which pieces of 16 KiB may miss.
#[test]
fn a_source_that_is_seldom_wrong_is_found() {
    let bytes = made(3_000_000);
    for others in [1, 2] {
        let answered = Arc::new(AtomicUsize::new(0));
        let wrong = wrong(&bytes, &answered, |at| at % 65_536 == 40_000);
        let good: Vec<_> = (0..others).map(|_| late(&bytes, &answered, 3)).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut sources: Vec<_> = good.iter().map(Server::url).collect();
        sources.push(wrong.url());
        let mut options = options(folder.path(), &sources);
        options.failures_max = u32::MAX;
        let (report, events) = run(&listed(&[(NAME, &bytes)]), options).unwrap();
        assert!(report.is_complete(), "{report:?}\n{events:?}");
        assert!(std::fs::read(folder.path().join(NAME)).unwrap() == bytes);
        let last = report.sources.len() - 1;
        let expected: Vec<_> = (0..=last).map(|source| source == last).collect();
        assert_eq!(corrupt(&report), expected, "{events:?}");
        // A source may be asked for its own bytes again after another was found wrong.
        for server in &good {
            let pieces = 2 * 8 * 3 * (16 << 10);
            assert!(server.sent_bytes(NAME) <= 2 * bytes.len() + pieces);
        }
    }
}

/// Both sources have the same byte wrong, so that no mixture of them is right.
#[test]
fn a_file_that_no_source_has_right_fails_with_all_named() {
    let bytes = made(300_000);
    let answered = Arc::new(AtomicUsize::new(0));
    let first = wrong(&bytes, &answered, |at| at == 5);
    let second = wrong(&bytes, &answered, |at| at == 5 || at == 299_999);
    let folder = tempfile::tempdir().unwrap();
    let sources = [first.url(), second.url()];
    let options = options(folder.path(), &sources);
    let (report, _) = run(&listed(&[(NAME, &bytes)]), options).unwrap();
    let problem = failure(&report);
    assert!(
        sources.iter().all(|source| problem.contains(source)),
        "{problem}"
    );
    assert!(problem.contains("wrong bytes"), "{problem}");
    assert!(!folder.path().join(NAME).exists());
}

/// A wrong source is not asked for the next file either, and its bytes of that file do not
/// count.
#[test]
fn a_wrong_source_is_out_for_all_files() {
    let bytes = made(400_000);
    let other = made(800_000);
    let names = [NAME, "v28-test.vk"];
    let files: [(&str, &[u8]); 2] = [(names[0], &bytes), (names[1], &other)];
    let wrong = Server::start(&files, |_| Manner {
        is_wrong: Some(|at| at % 100 == 0),
        ..Manner::default()
    });
    let good = Server::start(&files, |_| Manner::default());
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[wrong.url(), good.url()]);
    let (report, events) = run(&listed(&files), options).unwrap();
    assert!(report.is_complete(), "{report:?}\n{events:?}");
    for (name, bytes) in files {
        assert!(std::fs::read(folder.path().join(name)).unwrap() == bytes);
    }
    assert!(!report.sources[1].is_corrupt, "{events:?}");
}

/// The bytes of an unfinished file were changed on the disk.
#[test]
fn damage_of_an_unfinished_file_is_mended() {
    use std::sync::atomic::AtomicBool;

    let bytes = made(1_000_000);
    let stalling = Server::start(&[(NAME, &bytes)], |asked| Manner {
        stall_after: (asked.number > 3).then_some(0),
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut seen = crate::Seen {
        stop: Some(&stop),
        stop_at_bytes: Some(4 * (64 << 10)),
        ..crate::Seen::default()
    };
    let options = options(folder.path(), &[stalling.url()]);
    let files = listed(&[(NAME, &bytes)]);
    cuzk_fetch::fetch(&files, options, &stop, &mut seen).unwrap();
    let unfinished = folder.path().join(".cuzk-fetch").join(NAME);
    let mut damaged = std::fs::read(&unfinished).unwrap();
    damaged[1000] ^= 1;
    std::fs::write(&unfinished, damaged).unwrap();

    let good = Server::start(&[(NAME, &bytes)], |_| Manner::default());
    run_whole(folder.path(), &[good.url()], &bytes);
}
