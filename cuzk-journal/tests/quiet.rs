//! A refused journal leaves no file, and its panics are not printed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod common;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{limits, noise, options};
use cuzk_journal::{Journal, JournalError};

/// The panics that the process's hook heard of.
static HEARD: AtomicUsize = AtomicUsize::new(0);

/// The blocks that are damaged, one after the other.
const PLACES_MAX: usize = 400;

/// One test, because the hook belongs to the process.
#[test]
fn a_refused_journal_leaves_no_lock_file_and_its_panics_are_not_printed() {
    std::panic::set_hook(Box::new(|_| {
        HEARD.fetch_add(1, Ordering::Relaxed);
    }));
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let journal = Journal::open(at("j"), limits()).unwrap();
    for job in 0..8_u64 {
        let id = format!("job-{job}");
        journal.accept(&id, &options(4), &noise(job, 9000)).unwrap();
    }
    drop(journal);
    let whole = fs::read(at("j")).unwrap();
    fs::remove_file(at("j.lock")).unwrap();

    let mut panics = 0;
    // Blocks with content, past the header, which has checksums of its own.
    let places = (4096..whole.len()).step_by(64);
    let has_content = |place: &usize| whole[*place..].iter().take(64).any(|byte| *byte != 0);
    let places: Vec<_> = places.filter(has_content).collect();
    let step = places.len().div_ceil(PLACES_MAX);
    for place in places.into_iter().step_by(step) {
        let mut damaged = whole.clone();
        damaged[place..]
            .iter_mut()
            .take(64)
            .for_each(|byte| *byte ^= 0xff);
        fs::write(at("d"), &damaged).unwrap();
        match Journal::open(at("d"), limits()) {
            Err(error) => {
                assert!(!at("d.lock").exists(), "{error}");
                panics += usize::from(error.to_string().contains("panicked"));
            }
            Ok(journal) => {
                drop(journal);
                fs::remove_file(at("d.lock")).unwrap();
            }
        }
    }
    assert!(panics > 0, "no damage made the store panic");
    assert_eq!(HEARD.load(Ordering::Relaxed), 0);

    fs::write(at("text"), "no journal").unwrap();
    fs::create_dir(at("folder")).unwrap();
    for name in ["text", "folder"] {
        let error = Journal::open(at(name), limits()).unwrap_err();
        assert!(matches!(error, JournalError::Foreign { .. }), "{error}");
        assert!(!at(&format!("{name}.lock")).exists());
    }
    assert_eq!(std::panic::catch_unwind(|| panic!("of others")).ok(), None);
    assert_eq!(HEARD.load(Ordering::Relaxed), 1);
}
