//! Files that appear in a folder whole or not at all, and folders that are removed with
//! their process.
//!
//! * A [`Draft`] is a file in the making. It is written beside its future name, under a
//!   name of its own. It is renamed when it is on the disk.
//! * A [`Scratch`] is a temporary folder of one process.
//! * A [`MappedFile`] is a file that is read in place.
//!
//! This crate does not look into files. Its invariants:
//!
//! * Nobody sees a partly written file under its future name.
//! * A [`Draft`] or [`Scratch`] that a killed process left is removed by the next
//!   process that makes one of the same kind there.
//! * A draft or folder of a living process is not removed.
//!
//! A process holds a lock on each of its drafts and scratch folders. The system
//! releases the lock when the process ends, in whichever way. Where such locks do not
//! exist, nothing is removed.
//!
//! On some network file systems a lock does not reach another machine. So each name
//! tells under which start of the system it was made. A draft or folder of another
//! start is removed only if nobody has written to it for a day.
//!
//! # Example
//!
//! ```
//! use std::io::Write;
//!
//! use cuzk_files::{Draft, Scratch};
//!
//! let scratch = Scratch::new()?;
//! let path = scratch.path().join("proof");
//! let mut draft = Draft::begin(&path)?;
//! draft.file_mut().write_all(b"whole")?;
//! assert!(!path.exists());
//! draft.publish()?;
//! assert_eq!(std::fs::read(&path)?, b"whole");
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(unsafe_code)]

mod identity;
mod left;
mod mapped;
mod scratch;
mod whole;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

use left::{Kind, lock_new, sweep};

pub use identity::FileIdentity;
pub use mapped::MappedFile;
pub use scratch::Scratch;
pub use whole::{check_folder, read_bounded, write_whole};

/// A file in the making. A draft that is dropped is removed.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    target: PathBuf,
}

impl Draft {
    /// Begins the file that will be at `target`, empty, in the same folder. Its
    /// permissions follow the process's umask. Drafts that killed processes left in the
    /// folder are removed.
    ///
    /// # Errors
    /// An error of the file system about the new file. Errors about other files are
    /// ignored.
    pub fn begin(target: &Path) -> io::Result<Self> {
        let folder = folder_of(target);
        let prefix = left::prefix();
        let file = Kind::Draft.names(&prefix).make_in(folder, create_locked)?;
        // A file that cannot be examined or removed does not hinder this one.
        let _ = sweep(Kind::Draft, folder, file.as_file(), File::try_lock);
        Ok(Self {
            file,
            target: target.to_owned(),
        })
    }

    /// Returns the file in its present state, open for reading and writing.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Returns the file, to be written to.
    #[must_use]
    pub fn file_mut(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Writes the file to the disk and gives it its name. Replaces a file of that name.
    /// When this returns, the name is on the disk, too.
    ///
    /// # Errors
    /// An error of the file system. The name then has either its former file or this
    /// one.
    pub fn publish(self) -> io::Result<()> {
        self.put(|file, target| file.persist(target), sync_folder)
    }

    /// Publishes the file like [`Self::publish`], if nothing has the name yet.
    ///
    /// # Errors
    /// As [`Self::publish`]; [`io::ErrorKind::AlreadyExists`] if something has the
    /// name.
    pub fn publish_new(self) -> io::Result<()> {
        let put = |file: NamedTempFile, target: &Path| file.persist_noclobber(target);
        self.put(put, sync_folder)
    }

    fn put(
        self,
        rename: impl FnOnce(NamedTempFile, &Path) -> Result<File, PersistError>,
        sync_folder: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        // Its lock is released once it has its name.
        let file = rename(self.file, &self.target).map_err(|error| error.error)?;
        drop(file);
        sync_folder(folder_of(&self.target))
    }
}

/// Writes the folder to the disk: only then a name in it is on the disk.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a file at `path` and locks it.
fn create_locked(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(path)?;
    lock_new(&file, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
