//! One file under several names is one journal.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod common;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use common::{limits, options};
use cuzk_journal::{Journal, JournalError, State};
use tempfile::TempDir;

type Link = fn(&Path, &Path) -> io::Result<()>;

fn symlink(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)
}

/// Returns a journal's path, another path of the same file, and their directory.
fn names(link: Link) -> (TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (first, other) = (directory.path().join("first"), directory.path().join("k"));
    drop(Journal::open(&first, limits()).unwrap());
    link(&first, &other).unwrap();
    (directory, first, other)
}

#[test]
fn a_journal_that_is_open_cannot_be_opened_under_another_name() {
    for link in [symlink as Link, hard_link] {
        let (_directory, first, other) = names(link);
        for (one, two) in [(&first, &other), (&other, &first)] {
            let journal = Journal::open(one, limits()).unwrap();
            let before = fs::read(one).unwrap();
            let error = Journal::open(two, limits()).unwrap_err();
            assert!(matches!(error, JournalError::InUse { .. }), "{error}");
            assert!(fs::read(one).unwrap() == before);
            // The failed attempt has released no part of the lock.
            assert!(Journal::open(two, limits()).is_err());
            drop(journal);
        }
    }
}

#[test]
fn one_name_after_the_other_is_the_same_journal() {
    for link in [symlink as Link, hard_link] {
        let (_directory, first, other) = names(link);
        let journal = Journal::open(&first, limits()).unwrap();
        journal.accept("a", &options(1), b"in").unwrap();
        drop(journal);
        let journal = Journal::open(&other, limits()).unwrap();
        assert_eq!(journal.state("a").unwrap(), Some(State::Pending));
    }
}
