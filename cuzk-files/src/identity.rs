//! Which file is at a path at this moment.
//!
//! Not what is in it. The invariant: two identities are equal only if the path led to
//! the same file, and nobody had written to it in between.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The properties of a file that tell it from another, and from itself before it was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of the file at `path`, if there is one.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let file = path.metadata().ok()?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }

    /// Returns true if `other` is this file, written to or not.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}
