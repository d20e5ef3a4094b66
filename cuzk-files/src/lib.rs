//! Files that come into a folder whole or not at all, and folders that go with their process.
//!
//! Not what is in them. A file is written as a draft under a name of its own beside the
//! name it will have, and renamed when it is on the disk. The invariants: nobody sees
//! half a file under the name it will have; what a killed process leaves, a [`Draft`] or a
//! [`Scratch`], is removed by the next that makes one of its kind there; what a living
//! process has is not.
//!
//! Who writes a draft or has a scratch folder has it locked, and the system lets go of the
//! lock when the process ends, however it ends. Where there are no such locks nothing is
//! removed. Locks that do not reach from one machine to another, as on some network file
//! systems, are why a name says under which start of the system it was made: another's is
//! removed only if nobody has written to it for a day.

mod left;
mod scratch;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

use left::{Kind, lock_new, sweep};

pub use scratch::Scratch;

/// A file in the making. Dropped, it is gone.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    target: PathBuf,
}

impl Draft {
    /// Begins the file that will be at `target`, empty, in the same folder. Its
    /// permissions follow the process's umask. What killed processes left in the folder
    /// is removed.
    ///
    /// # Errors
    /// What the file system says of the new file; not what it says of others.
    pub fn begin(target: &Path) -> io::Result<Self> {
        let folder = folder_of(target);
        let prefix = left::prefix();
        let file = Kind::Draft.names(&prefix).make_in(folder, create_locked)?;
        // What cannot be looked through or removed is in nobody's way.
        let _ = sweep(Kind::Draft, folder, file.as_file(), File::try_lock);
        Ok(Self {
            file,
            target: target.to_owned(),
        })
    }

    /// The file as it is by now: open for reading and writing.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// The same, to be written to.
    #[must_use]
    pub fn file_mut(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its name, in the place of what has it, once its bytes are on the
    /// disk. When this returns the name is there, too.
    ///
    /// # Errors
    /// What the file system says. What was at the name is there still, or this file is.
    pub fn publish(self) -> io::Result<()> {
        self.put(|file, target| file.persist(target), sync_folder)
    }

    /// The same, where nothing has the name yet.
    ///
    /// # Errors
    /// As [`Self::publish`]; [`io::ErrorKind::AlreadyExists`] if something has it.
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
        // Its lock is let go of when it has its name.
        let file = rename(self.file, &self.target).map_err(|error| error.error)?;
        drop(file);
        sync_folder(folder_of(&self.target))
    }
}

/// A name is on the disk when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A new file at `path`, locked.
fn create_locked(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(path)?;
    lock_new(&file, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
