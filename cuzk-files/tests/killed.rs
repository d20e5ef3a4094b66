//! Processes that are killed without warning while they write.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cuzk_bounded::{BoundedChild, bounded};
use cuzk_files::{Draft, Scratch};

/// Tells a child its folder, and if it ends by itself.
const CHILD: &str = "CUZK_FILES_TEST_CHILD";

const FILE_BYTES: usize = 1 << 20;

fn write_half(folder: &Path) -> Draft {
    let mut draft = Draft::begin(&folder.join("file")).unwrap();
    draft.file_mut().write_all(&[1; FILE_BYTES / 2]).unwrap();
    draft
}

/// Is the process that is killed. Not a test by itself.
#[test]
#[ignore = "it is the other test's child"]
fn child() {
    let Ok(folder) = std::env::var(CHILD) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let mut told = String::new();
    loop {
        let mut draft = write_half(&folder);
        println!("\nhalf");
        told.clear();
        std::io::stdin().read_line(&mut told).unwrap();
        draft.file_mut().write_all(&[1; FILE_BYTES / 2]).unwrap();
        draft.publish().unwrap();
        println!("\nwhole");
    }
}

/// Is the killed process that has a folder. Not a test by itself.
#[test]
#[ignore = "it is the other test's child"]
fn child_with_a_folder() {
    let Ok(parent) = std::env::var(CHILD) else {
        return;
    };
    let scratch = Scratch::new_in(Path::new(&parent)).unwrap();
    std::fs::create_dir(scratch.path().join("cache")).unwrap();
    let file = scratch.path().join("cache/layer");
    std::fs::write(&file, "half").unwrap();
    println!("\nhalf");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"half");
    println!("\nwhole");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

struct Writer {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Writer {
    fn new(folder: &Path) -> Self {
        Self::running("child", folder)
    }

    fn running(test: &str, folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", test])
            .args(["--nocapture", "--test-threads=1"])
            .env(CHILD, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        Self { child, says }
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            let read = bounded(|| self.says.read_line(&mut line));
            assert_ne!(read.unwrap(), 0, "it has ended");
        }
    }

    fn go_on(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// Kills the child, which was alive until now: nobody had removed its file.
    fn kill(mut self) {
        self.child.kill().unwrap();
        let mut rest = String::new();
        self.says.read_to_string(&mut rest).unwrap();
        let status = self.child.wait_bounded().unwrap();
        assert_eq!(status.signal(), Some(9), "{status}: {rest}");
    }
}

fn drafts_in(folder: &Path) -> usize {
    ending_in(folder, ".partial")
}

fn ending_in(folder: &Path, suffix: &str) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(suffix)).count()
}

#[test]
fn what_a_killed_process_left_is_removed_by_the_next_that_writes() {
    let folder = tempfile::tempdir().unwrap();
    let write = || {
        let draft = Draft::begin(&folder.path().join("other")).unwrap();
        draft.publish().unwrap();
    };
    let [mut killed, mut living] = [(); 2].map(|()| Writer::new(folder.path()));
    killed.wait_for("half");
    living.wait_for("half");
    write();
    assert_eq!(drafts_in(folder.path()), 2, "both are being written");
    killed.kill();
    assert_eq!(drafts_in(folder.path()), 2, "nobody has looked");
    write();
    assert_eq!(drafts_in(folder.path()), 1, "one is being written");
    living.go_on();
    living.wait_for("whole");
    assert_eq!(
        fs::read(folder.path().join("file")).unwrap().len(),
        FILE_BYTES
    );
    living.wait_for("half");
    living.kill();
    write();
    assert_eq!(drafts_in(folder.path()), 0);
}

#[test]
fn several_that_write_and_die_take_nothing_from_one_another() {
    let folder = tempfile::tempdir().unwrap();
    let mut writers: Vec<_> = (0..3).map(|_| Writer::new(folder.path())).collect();
    for round in 0..30_u32 {
        for writer in &mut writers {
            writer.go_on();
        }
        // Each time at another point.
        std::thread::sleep(Duration::from_micros(200) * round);
        let next = Writer::new(folder.path());
        writers.rotate_left(1);
        std::mem::replace(&mut writers[0], next).kill();
    }
    writers.into_iter().for_each(Writer::kill);
    drop(Draft::begin(&folder.path().join("file")).unwrap());
    assert_eq!(drafts_in(folder.path()), 0);
    let whole = fs::read(folder.path().join("file")).unwrap();
    assert!(whole == [1; FILE_BYTES]);
}

#[test]
fn the_folder_of_a_killed_process_is_removed_by_the_next_that_makes_one() {
    let parent = tempfile::tempdir().unwrap();
    let folders = || ending_in(parent.path(), ".scratch");
    let make = || drop(Scratch::new_in(parent.path()).unwrap());
    let running = |()| Writer::running("child_with_a_folder", parent.path());
    let [mut killed, mut living] = [(); 2].map(running);
    killed.wait_for("half");
    living.wait_for("half");
    make();
    assert_eq!(folders(), 2, "both are in use");
    killed.kill();
    assert_eq!(folders(), 2, "nobody has looked");
    make();
    assert_eq!(folders(), 1, "one is in use");
    living.go_on();
    living.wait_for("whole");
    living.kill();
    make();
    assert_eq!(folders(), 0);
}
