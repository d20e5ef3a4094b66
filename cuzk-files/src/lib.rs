//! Files that come into a folder whole or not at all.
//!
//! Not what is in them. A file is written as a draft under a name of its own beside the
//! name it will have, and renamed when it is on the disk. The invariants: nobody sees
//! half a file under the name it will have; what a killed process leaves is removed by
//! the next that writes to the folder; a draft that a living process writes is not.
//!
//! Who writes a draft has its file locked, and the system lets go of the lock when the
//! process ends, however it ends. Where files cannot be locked nothing is removed. Locks
//! that do not reach from one machine to another, as on some network file systems, are
//! why a draft's name says under which start of the system it was made: another's is
//! removed only if nobody has written to it for a day.

use std::fs::{self, DirEntry, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use tempfile::{NamedTempFile, PersistError};

const PREFIX: &str = ".cuzk-";
const SUFFIX: &str = ".partial";

/// Characters between them, beside what names the system's start: drawn at random.
const RANDOM_LEN: usize = 6;

/// For how long nobody has written to a draft of another start of the system, or of
/// another machine, when it is removed; by the file system's clock.
const FOREIGN_AGE: Duration = Duration::from_secs(24 * 3600);

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
        let prefix = format!("{PREFIX}{}-", start_id());
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(SUFFIX)
            .rand_bytes(RANDOM_LEN)
            .make_in(folder, create_locked)?;
        // What cannot be looked through or removed is in nobody's way.
        let _ = sweep(folder, file.as_file(), File::try_lock);
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

/// Locks a new file, where files can be locked. One that was taken for a killed process's
/// before it was locked counts as a name that is taken, so that another is tried.
fn lock_new(file: &File, path: &Path) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) if is_at(file, path)? => Ok(()),
        Ok(()) | Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Removes the drafts in `folder` that nobody writes any more. `newest` was made there
/// just now, and has the time of the file system.
fn sweep(
    folder: &Path,
    newest: &File,
    lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> io::Result<()> {
    let now = newest.metadata()?.modified()?;
    for entry in fs::read_dir(folder)?.flatten() {
        if may_be_left(&entry, now) {
            // Each by itself: others' files may not be ours to open.
            let _ = remove_if_left(&entry.path(), &lock);
        }
    }
    Ok(())
}

/// Whether a file's name and times are those of a draft that may have been left.
fn may_be_left(entry: &DirEntry, now: SystemTime) -> bool {
    let name = entry.file_name();
    let Some(start) = name.to_str().and_then(start_in) else {
        return false;
    };
    // Without following links.
    let Ok(metadata) = entry.metadata() else {
        return false;
    };
    let is_ours = start == start_id() && start != UNKNOWN_START;
    metadata.is_file() && (is_ours || is_older(&metadata, now))
}

fn is_older(metadata: &Metadata, now: SystemTime) -> bool {
    let age = |modified| now.duration_since(modified).unwrap_or_default();
    metadata
        .modified()
        .is_ok_and(|modified| age(modified) >= FOREIGN_AGE)
}

/// Removes the draft at `path` if nobody has it locked. While this has it locked nobody
/// writes it, renames it, or removes it.
fn remove_if_left(path: &Path, lock: impl Fn(&File) -> Result<(), TryLockError>) -> io::Result<()> {
    // Some file systems lock only what could be written.
    let file = File::options().read(true).write(true).open(path)?;
    lock(&file)?;
    if is_at(&file, path)? {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Whether `path` leads to this very file, and not by a link.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let is_same = |there: Metadata| {
        let here = file.metadata()?;
        Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
    };
    match path.symlink_metadata() {
        Ok(there) => is_same(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the system does not say.
const UNKNOWN_START: &str = "00000000-0000-0000-0000-000000000000";

/// What tells this start of this machine's system from all others.
fn start_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let read = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let id = read.trim();
        if id.len() == UNKNOWN_START.len() && !id.contains('/') {
            id.to_owned()
        } else {
            UNKNOWN_START.to_owned()
        }
    })
}

/// The start of a system in a draft's name; none if this is no draft's.
fn start_in(name: &str) -> Option<&str> {
    let (start, random) = name
        .strip_prefix(PREFIX)?
        .strip_suffix(SUFFIX)?
        .rsplit_once('-')?;
    let is_draft = start.len() == UNKNOWN_START.len()
        && random.len() == RANDOM_LEN
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_draft.then_some(start)
}

#[cfg(test)]
mod tests;
