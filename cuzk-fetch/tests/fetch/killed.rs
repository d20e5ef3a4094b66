//! A process that is killed while it fetches.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cuzk_bounded::BoundedChild;
use cuzk_fetch::fetch;

use crate::server::{Manner, Server};
use crate::{NAME, listed, made, options, run_whole};

/// Tells a child its folder and its source.
const CHILD: &str = "CUZK_FETCH_TEST_CHILD";

const FILE_BYTES: usize = 3_000_000;

/// The time after which a child that was to fetch has ended before.
const PATIENCE: Duration = Duration::from_secs(300);

/// The ranges that are under way at once.
const JOBS: usize = 4;

const RANGE_BYTES: usize = 64 << 10;

/// Is the process that is killed. Not a test by itself.
#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Ok(told) = std::env::var(CHILD) else {
        return;
    };
    let (folder, source) = told.split_once('\n').unwrap();
    let options = options(&PathBuf::from(folder), &[source.to_owned()]);
    let files = listed(&[(NAME, &made(FILE_BYTES))]);
    fetch(&files, options, &AtomicBool::new(false), &mut ()).unwrap();
}

/// Each of three processes is killed after ten more requests.
#[test]
fn after_a_kill_only_ranges_under_way_come_again() {
    let bytes = made(FILE_BYTES);
    let allowed = Arc::new(AtomicUsize::new(0));
    let (stalls, stalled) = mpsc::channel();
    let limit = Arc::clone(&allowed);
    let server = Server::start(&[(NAME, &bytes)], move |asked| {
        let is_over = !asked.is_head && asked.number >= limit.load(Ordering::SeqCst);
        if is_over {
            let _ = stalls.send(());
        }
        Manner {
            stall_after: is_over.then_some(RANGE_BYTES / 2),
            ..Manner::default()
        }
    });
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        allowed.fetch_add(10 + JOBS, Ordering::SeqCst);
        let told = format!("{}\n{}", folder.path().display(), server.url());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "killed::child"])
            .env(CHILD, told)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..JOBS {
            stalled.recv_timeout(PATIENCE).unwrap();
        }
        child.kill().unwrap();
        child.wait_bounded().unwrap();
    }
    allowed.store(usize::MAX, Ordering::SeqCst);
    run_whole(folder.path(), &[server.url()], &bytes);
    let sent = server.sent(NAME);
    assert!(sent.iter().all(|times| *times >= 1));
    let again: usize = sent.iter().map(|times| *times as usize - 1).sum();
    assert!(again > 0 && again <= 3 * JOBS * RANGE_BYTES, "{again}");
}
