//! A folder for as long as its process needs it.
//!
//! Not what is in it. The invariant: it is locked from when it is made until all in it is
//! removed.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::left::{self, Kind, lock_new, sweep};

/// Names that are tried: only who sweeps at the same moment takes one.
const ATTEMPTS: usize = 16;

/// A folder of this user's alone. Dropped, it is gone with what is in it.
#[derive(Debug)]
pub struct Scratch {
    // Removed before its lock is let go of.
    folder: TempDir,
    lock: File,
}

impl Scratch {
    /// Makes an empty folder in the system's folder for what is temporary. Those that
    /// killed processes of the same user left there are removed.
    ///
    /// # Errors
    /// What the file system says of the new folder; not what it says of others.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// The same, in the folder `parent`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        let mut attempts = 1;
        let made = loop {
            match Self::make(parent) {
                Err(error) if is_taken(&error) && attempts < ATTEMPTS => attempts += 1,
                made => break made?,
            }
        };
        // What cannot be looked through or removed is in nobody's way.
        let _ = sweep(Kind::Scratch, parent, &made.lock, File::try_lock);
        Ok(made)
    }

    /// An error that [`is_taken`] if somebody took it for a killed process's.
    fn make(parent: &Path) -> io::Result<Self> {
        let prefix = left::prefix();
        let mut names = Kind::Scratch.names(&prefix);
        let names = names.permissions(Permissions::from_mode(0o700));
        let folder = names.tempdir_in(parent)?;
        let lock = Kind::Scratch.open(folder.path())?;
        lock_new(&lock, folder.path())?;
        Ok(Self { folder, lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether a new folder was taken for a killed process's before it was locked.
fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotFound};
    matches!(error.kind(), AlreadyExists | NotFound)
}
