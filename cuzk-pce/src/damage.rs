//! Damage to files, for the tests of both formats.
//!
//! Both formats begin with magic (8 bytes), version (4), length of the label (4), field
//! (32) and fingerprint (32). Both end with a checksum of all bytes before it.

use crate::disk::{CHECKSUM_BYTES, DiskError, DiskFault, LABEL_BYTES_MAX};
use std::{fs, ops::Range, path::Path};

/// Where the version lies.
pub(crate) const VERSION_AT: usize = 8;

/// How a format is read, whatever comes of it.
pub(crate) type Read = fn(&Path) -> Result<(), DiskError>;

/// Why the file at `path` is refused; the error names it.
pub(crate) fn fault(read: Read, path: &Path) -> DiskFault {
    let error = read(path).unwrap_err();
    assert!(error.to_string().contains(&path.display().to_string()));
    error.fault
}

/// Rewrites the checksum, as a hostile writer would.
pub(crate) fn sign(bytes: &mut [u8]) {
    let end = bytes.len() - CHECKSUM_BYTES;
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(checksum.as_bytes());
}

/// Replaces what is at `at` in the good file at `path`, and signs it.
pub(crate) fn replace(path: &Path, good: &[u8], at: usize, bytes: &[u8]) {
    let mut bad = good.to_vec();
    bad[at..at + bytes.len()].copy_from_slice(bytes);
    sign(&mut bad);
    fs::write(path, &bad).unwrap();
}

/// Flips a bit of every byte, cuts the good file at `path` everywhere, and makes it longer.
/// Checks that each error names the damage. `counts` is the place of the sections' lengths
/// in the header.
pub(crate) fn every_damage_is_an_error(read: Read, path: &Path, counts: Range<usize>) {
    let good = fs::read(path).unwrap();
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 0x10;
        fs::write(path, &bad).unwrap();
        match (i, fault(read, path)) {
            (0..8, DiskFault::Magic { .. })
            | (8..12, DiskFault::Version { .. })
            | (12..16, DiskFault::Label { .. } | DiskFault::Size { .. })
            | (16..48, DiskFault::Field) => {}
            (i, DiskFault::Size { .. }) if counts.contains(&i) => {}
            (48.., DiskFault::Checksum) if !counts.contains(&i) => {}
            (i, other) => panic!("byte {i}: {other}"),
        }
        fs::write(path, &good[..i]).unwrap();
        let cut = fault(read, path);
        assert!(matches!(cut, DiskFault::Size { .. }), "cut at {i}: {cut}");
    }
    fs::write(path, [&good[..], &[0]].concat()).unwrap();
    assert!(matches!(fault(read, path), DiskFault::Size { .. }));
}

/// Whatever the checksum says, a file of a version that is not read is refused. The
/// error says which version it has and what to do. The last of `versions` is written, and all
/// of them are read.
pub(crate) fn another_version_is_an_error(read: Read, path: &Path, versions: &[u32]) {
    let good = fs::read(path).unwrap();
    let (first, expected) = (versions[0], versions[versions.len() - 1]);
    for got in [0, first - 1, expected + 1, u32::MAX] {
        replace(path, &good, VERSION_AT, &got.to_le_bytes());
        let fault = fault(read, path);
        assert_eq!(
            fault.to_string(),
            format!("format version {got}, expected {expected}; delete it and build it again")
        );
    }
}

/// Checks that a label that is too long, or a missing folder, is an error and leaves
/// nothing behind. `write` writes to a path with a label.
pub(crate) fn what_cannot_be_written_leaves_nothing(
    read: Read,
    write: impl Fn(&Path, &str) -> Result<(), DiskError>,
) {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(LABEL_BYTES_MAX + 1);
    let path = directory.path().join("circuit");
    let error = write(&path, &long).unwrap_err();
    assert!(matches!(error.fault, DiskFault::Label { got: 256 }));
    let nowhere = directory.path().join("absent").join("circuit");
    let error = write(&nowhere, "").unwrap_err();
    assert!(matches!(error.fault, DiskFault::Io(_)));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    assert!(matches!(fault(read, &path), DiskFault::Io(_)));
}
