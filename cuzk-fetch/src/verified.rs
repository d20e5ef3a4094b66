//! Which files of a folder had the right digest when they were last hashed.
//!
//! The note is a file in the folder. The invariant: a file that was written to since it was
//! hashed has no digest here. Nobody must trust the note: it saves people a question, and
//! no check is left out for it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Digest, file_digest};

/// The name of the note.
const NOTE: &str = ".cuzk-verified.json";

/// The largest note that is read, in bytes.
const NOTE_BYTES_MAX: u64 = 1 << 20;

/// A file when it was hashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    digest: String,
    bytes: u64,
    inode: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Entry {
    fn of(path: &Path, digest: &str) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            digest: digest.to_owned(),
            bytes: metadata.len(),
            inode: metadata.ino(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        })
    }
}

fn entries(folder: &Path) -> BTreeMap<String, Entry> {
    let read = cuzk_files::read_bounded(&folder.join(NOTE), NOTE_BYTES_MAX);
    let parsed = read.ok().map(|bytes| serde_json::from_slice(&bytes));
    parsed.and_then(Result::ok).unwrap_or_default()
}

/// Adds a file to the note. Files that are gone are forgotten. One process notes at a time, or
/// a note may be lost.
fn note(folder: &Path, name: &str, entry: Entry) -> io::Result<()> {
    let mut entries = entries(folder);
    entries.retain(|name, _| folder.join(name).exists());
    entries.insert(name.to_owned(), entry);
    let text = serde_json::to_vec_pretty(&entries).map_err(io::Error::other)?;
    cuzk_files::write_whole(&folder.join(NOTE), &text)
}

/// Notes the digest of a file that was hashed before it got its name.
pub(crate) fn note_digest(folder: &Path, name: &str, digest: Digest) -> io::Result<()> {
    let entry = Entry::of(&folder.join(name), &digest.to_string())?;
    note(folder, name, entry)
}

/// A file that was hashed whole, and was not written to or replaced meanwhile.
#[derive(Debug)]
pub struct HashedFile<'a> {
    folder: &'a Path,
    name: &'a str,
    digest: Digest,
    entry: Entry,
}

impl<'a> HashedFile<'a> {
    /// Hashes a file of a folder. `advanced` gets the number of bytes of each step, and
    /// returns false to stop.
    ///
    /// # Errors
    /// As [`file_digest`]. [`io::ErrorKind::Other`] if the file was written to or replaced
    /// while it was hashed.
    pub fn new(
        folder: &'a Path,
        name: &'a str,
        advanced: impl FnMut(u64) -> bool,
    ) -> io::Result<Self> {
        let path = folder.join(name);
        let before = Entry::of(&path, "")?;
        let digest = file_digest(&path, advanced)?;
        if Entry::of(&path, "")? != before {
            let problem = "the file was written to or replaced while it was hashed; hash it again";
            return Err(io::Error::other(problem));
        }
        let entry = Entry {
            digest: digest.to_string(),
            ..before
        };
        Ok(Self {
            folder,
            name,
            digest,
            entry,
        })
    }

    /// Returns the digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Notes the digest in the folder. A file that was replaced since it was hashed has no
    /// digest there. One process notes at a time, or a note may be lost.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn note(self) -> io::Result<()> {
        note(self.folder, self.name, self.entry)
    }
}

/// Returns the digest that a file had when it was hashed last; nothing if it was not, or was
/// written to since.
#[must_use]
pub fn noted_digest(folder: &Path, name: &str) -> Option<Digest> {
    let entry = entries(folder).remove(name)?;
    let now = Entry::of(&folder.join(name), &entry.digest).ok()?;
    (now == entry).then(|| entry.digest.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_while_it_was_hashed_or_since_has_no_digest() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (name, path) = ("x", folder.join("x"));
        let replace = |text: &str| {
            let new = folder.join("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, &path).unwrap();
        };
        replace("good");
        let hashed = HashedFile::new(folder, name, |_| true).unwrap();
        assert_eq!(hashed.digest(), Digest::of_bytes(b"good"));
        hashed.note().unwrap();
        assert_eq!(noted_digest(folder, name), Some(Digest::of_bytes(b"good")));

        // Both files are of the same length.
        let changed = HashedFile::new(folder, name, |_| {
            replace("evil");
            true
        });
        let problem = changed.unwrap_err().to_string();
        assert!(problem.contains("while it was hashed"), "{problem}");
        assert_eq!(noted_digest(folder, name), None);

        let hashed = HashedFile::new(folder, name, |_| true).unwrap();
        replace("also");
        hashed.note().unwrap();
        assert_eq!(noted_digest(folder, name), None);

        let stopped = HashedFile::new(folder, name, |_| false).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_digest_is_of_the_file_that_was_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let digest = Digest::of_bytes(b"x");
        assert!(note_digest(folder, "x", digest).is_err());
        for name in ["x", "y"] {
            fs::write(folder.join(name), "x").unwrap();
            note_digest(folder, name, digest).unwrap();
        }
        assert_eq!(noted_digest(folder, "x"), Some(digest));
        fs::write(folder.join("x"), "longer").unwrap();
        assert_eq!(noted_digest(folder, "x"), None);
        assert_eq!(noted_digest(folder, "y"), Some(digest));
        fs::remove_file(folder.join("y")).unwrap();
        assert_eq!(noted_digest(folder, "y"), None);
        for text in ["", "[]", "{\"x\": 1}"] {
            fs::write(folder.join(NOTE), text).unwrap();
            assert_eq!(noted_digest(folder, "x"), None);
        }
    }
}
