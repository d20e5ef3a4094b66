//! Keys that several threads ask for, and files that are replaced meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cuzk_bounded::BoundedJoin;
use cuzk_groth16::aggregate::InnerProductSrs;
use tempfile::TempDir;

use super::*;

/// For what takes moments, unless it never comes.
const MOMENTS: Duration = Duration::from_secs(60);

/// Returns keys of the file in a folder. It has no points: the tests read them of elsewhere.
fn keys() -> (TempDir, AggregationKeys) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.srs.param_cache = folder.path().to_owned();
    let keys = AggregationKeys::new(&config);
    std::fs::write(&keys.path, "1").unwrap();
    (folder, keys)
}

/// Returns a key for a number of proofs.
fn key(proofs: usize) -> Result<Arc<AggregationKey>> {
    let srs = InnerProductSrs::insecure(1, proofs).unwrap();
    Ok(Arc::new(AggregationKey::new(&srs, proofs).unwrap()))
}

/// Replaces the file of the keys.
fn replace(keys: &AggregationKeys, text: &str) {
    let new = keys.path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, &keys.path).unwrap();
}

#[test]
fn a_key_is_read_while_another_one_is_read_too() {
    let (_folder, keys) = keys();
    let (begun, has_begun) = channel();
    let (ended, has_ended) = channel();
    thread::scope(|scope| {
        let slow = move |_| {
            begun.send(()).unwrap();
            has_ended.recv_timeout(MOMENTS).unwrap();
            key(2)
        };
        let keys = &keys;
        let slow = scope.spawn(move || keys.key_from(2, false, slow).unwrap());
        has_begun.recv_timeout(MOMENTS).unwrap();
        let other = keys.key_from(4, false, |_| key(4)).unwrap();
        ended.send(()).unwrap();
        let slow = slow.join_bounded().unwrap();
        // Both are kept.
        for (proofs, expected) in [(2, slow), (4, other)] {
            let kept = keys.key_from(proofs, false, |_| panic!("it is kept"));
            assert!(Arc::ptr_eq(&kept.unwrap(), &expected), "{proofs}");
        }
    });
}

#[test]
fn a_key_that_several_threads_ask_for_is_read_once() {
    let (_folder, keys) = keys();
    let reads = AtomicUsize::new(0);
    let read = |_| {
        reads.fetch_add(1, Ordering::Relaxed);
        key(2)
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| keys.key_from(2, false, read).unwrap());
        }
    });
    assert_eq!(reads.into_inner(), 1);
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_is_read_again() {
    let (_folder, keys) = keys();
    let old = keys.key_from(4, true, |compare| {
        assert!(compare);
        key(4)
    });
    let reads = AtomicUsize::new(0);
    let read = |compare| {
        // The digest of the new file is compared, too.
        let reads = reads.fetch_add(1, Ordering::Relaxed);
        assert_eq!(compare, reads > 0);
        if reads == 0 {
            replace(&keys, "22");
        }
        key(2)
    };
    keys.key_from(2, true, read).unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 2);
    // The key for four proofs is of the old file.
    let new = keys.key_from(4, true, |_| key(4)).unwrap();
    assert!(!Arc::ptr_eq(&new, &old.unwrap()));
    let cannot_be_used = |_| Err(Error::Stopped);
    replace(&keys, "333");
    let kept = keys.key_from(4, true, cannot_be_used).unwrap();
    assert!(Arc::ptr_eq(&kept, &new));
}
