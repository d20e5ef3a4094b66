//! Folders, gateways and daemons as sources, and files that are there already.

use std::sync::atomic::AtomicBool;

use cuzk_bounded::BoundedJoin;
use cuzk_fetch::{Event, FetchError, Outcome, fetch};

use crate::server::{Manner, Server};
use crate::{NAME, Seen, listed, made, names_in, options, run, run_whole};

#[test]
fn each_kind_of_source_gives_a_file() {
    let bytes = made(300_000);
    let paths = ["ipfs/Qm0", &format!("params/{NAME}"), NAME];
    let server = Server::start(&paths.map(|path| (path, &bytes[..])), |_| Manner::default());
    let from = tempfile::tempdir().unwrap();
    std::fs::write(from.path().join(NAME), &bytes).unwrap();
    for source in [
        format!("ipfs://{}", server.address()),
        format!("cuzk://{}", server.address()),
        server.url(),
        from.path().display().to_string(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        run_whole(folder.path(), &[source], &bytes);
    }
    for path in paths {
        assert!(server.sent(path).iter().all(|times| *times == 1), "{path}");
    }
}

#[test]
fn several_files_come_and_small_ones_too() {
    let contents: Vec<_> = [0, 1, 65_536, 65_537, 500_000, 3].map(made).into();
    let names: Vec<_> = (0..contents.len())
        .map(|at| format!("f{at}.params"))
        .collect();
    let pairs = names.iter().zip(&contents);
    let files: Vec<_> = pairs
        .map(|(name, bytes)| (name.as_str(), &bytes[..]))
        .collect();
    let server = Server::start(&files, |_| Manner::default());
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[server.url()]);
    let (report, events) = run(&listed(&files), options).unwrap();
    assert!(report.is_complete(), "{report:?}\n{events:?}");
    for (name, bytes) in &files {
        assert!(std::fs::read(folder.path().join(name)).unwrap() == *bytes);
        assert!(server.sent(name).iter().all(|times| *times == 1));
    }
}

/// Parameters and their key have one lock file, which no other process has here.
#[test]
fn a_run_does_not_wait_for_itself() {
    let pairs = (0..16).flat_map(|at| [format!("f{at}.params"), format!("f{at}.vk")]);
    let names: Vec<_> = pairs.collect();
    let bytes = made(1000);
    let files: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), &bytes[..]))
        .collect();
    let server = Server::start(&files, |_| Manner::default());
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[server.url()]);
    let (report, events) = run(&listed(&files), options).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let waits = |event: &Event| matches!(event, Event::Waiting { .. });
    assert!(!events.iter().any(waits), "{events:?}");
}

#[test]
fn a_file_that_is_there_is_not_fetched_and_a_wrong_one_is_replaced() {
    let bytes = made(200_000);
    let server = Server::start(&[(NAME, &bytes)], |_| Manner::default());
    let folder = tempfile::tempdir().unwrap();
    let sources = [server.url()];
    std::fs::write(folder.path().join(NAME), made(100)).unwrap();
    let (_, events) = run_whole(folder.path(), &sources, &bytes);
    let is_told = |event: &Event| matches!(event, Event::WrongBefore { .. });
    assert!(events.iter().any(is_told), "{events:?}");

    let sent = server.sent_bytes(NAME);
    let (report, events) = run_whole(folder.path(), &sources, &bytes);
    assert_eq!(report.files[0].outcome, Outcome::AlreadyThere);
    assert_eq!(server.sent_bytes(NAME), sent);
    // Large files are hashed for minutes, so the work is told before.
    let comparing = Event::Comparing {
        file: NAME.to_owned(),
        length_bytes: 200_000,
    };
    assert_eq!(events.first(), Some(&comparing));
}

#[test]
fn a_folder_has_one_run_at_a_time() {
    let bytes = made(100_000);
    let server = Server::start(&[(NAME, &bytes)], |_| Manner {
        stall_after: Some(1000),
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let files = listed(&[(NAME, &bytes)]);
    let options = options(folder.path(), &[server.url()]);
    let first_stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| fetch(&files, options.clone(), &first_stop, &mut ()));
        while server.sent_bytes(NAME) == 0 {
            std::thread::yield_now();
        }
        let stop = AtomicBool::new(false);
        let mut seen = Seen {
            stop: Some(&stop),
            stop_at: Some(|event| matches!(event, Event::Waiting { .. })),
            ..Seen::default()
        };
        let second = fetch(&files, options.clone(), &stop, &mut seen).unwrap();
        assert_eq!(second.files[0].outcome, Outcome::Stopped);
        first_stop.store(true, std::sync::atomic::Ordering::SeqCst);
        first.join_bounded().unwrap().unwrap();
    });
    server.release();
    run_whole(folder.path(), &[server.url()], &bytes);
}

#[test]
fn files_that_do_not_fit_are_refused_before_they_come() {
    let names: Vec<_> = (0..64).map(|at| format!("f{at}.params")).collect();
    let files: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), &b"x"[..]))
        .collect();
    let server = Server::start(&files, |_| Manner {
        length: Some(1 << 40),
        ..Manner::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), &[server.url()]);
    let error = run(&listed(&files), options).unwrap_err();
    assert!(matches!(error, FetchError::NoSpace { needed_bytes, .. } if needed_bytes == 64 << 40));
    assert!(names.iter().all(|name| server.sent_bytes(name) == 0));
    assert_eq!(names_in(folder.path()), ["fetch.lock"]);
}

#[test]
fn a_run_without_a_source_or_a_folder_is_an_error() {
    let files = listed(&[(NAME, b"x")]);
    let folder = tempfile::tempdir().unwrap();
    let error = run(&files, options(folder.path(), &[])).unwrap_err();
    assert!(matches!(error, FetchError::NoSource));
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = run(&files, options(&file, &["/none".to_owned()])).unwrap_err();
    assert!(matches!(error, FetchError::File { .. }), "{error}");
}
