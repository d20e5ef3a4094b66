//! A temporary folder of one process.
//!
//! This module does not look into the folder. The invariant: the folder is locked from
//! its creation until all its contents are removed.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::left::{self, Kind, lock_new, sweep};

/// The number of names to try. A name is lost only to a process that sweeps at the same
/// moment.
const ATTEMPTS: usize = 16;

/// A folder that only this user can open. It is removed with its contents when it is
/// dropped.
#[derive(Debug)]
pub struct Scratch {
    // Removed before its lock is released.
    folder: TempDir,
    lock: File,
}

impl Scratch {
    /// Makes an empty folder in the system's folder for temporary files. Folders that
    /// killed processes of the same user left there are removed.
    ///
    /// # Errors
    /// An error of the file system about the new folder. Errors about other folders are
    /// ignored.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// Makes an empty folder like [`Self::new`], in the folder `parent`.
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
        // A folder that cannot be examined or removed does not hinder this one.
        let _ = sweep(Kind::Scratch, parent, &made.lock, File::try_lock);
        Ok(made)
    }

    /// Makes and locks a folder. Fails with an error that [`is_taken`] if a sweep took
    /// the folder for a killed process's.
    fn make(parent: &Path) -> io::Result<Self> {
        let prefix = left::prefix();
        let mut names = Kind::Scratch.names(&prefix);
        let names = names.permissions(Permissions::from_mode(0o700));
        let folder = names.tempdir_in(parent)?;
        let lock = Kind::Scratch.open(folder.path())?;
        lock_new(&lock, folder.path())?;
        Ok(Self { folder, lock })
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder with its contents, also while another thread still makes files in
    /// it: the path leads nowhere before the first file is removed.
    ///
    /// # Errors
    /// An error of the file system. The next process that makes a folder there tries again.
    pub fn remove(self) -> io::Result<()> {
        let path = self.folder.path();
        let prefix = left::prefix();
        let names = Kind::Scratch.names(&prefix);
        let away = names.tempdir_in(path.parent().unwrap_or(Path::new("/")))?;
        fs::rename(path, away.path())?;
        away.close()
    }
}

/// Returns true if a sweep took a new folder for a killed process's before it was
/// locked.
fn is_taken(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, NotFound};
    matches!(error.kind(), AlreadyExists | NotFound)
}
