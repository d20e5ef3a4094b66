//! Drafts and scratch folders that killed processes leave: their names, how they differ
//! from those in use, and their removal.
//!
//! They are made elsewhere. The invariant: a path is removed only if it has such a
//! name, and while its lock is held here.

use std::fs::{self, DirEntry, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

pub(crate) const PREFIX: &str = ".cuzk-";

/// The number of random characters in a name, between the system's start and the
/// suffix.
const RANDOM_LEN: usize = 6;

/// The time without a write after which a draft or folder of another start of the
/// system, or of another machine, is removed. It counts by the file system's clock.
pub(crate) const FOREIGN_AGE: Duration = Duration::from_secs(24 * 3600);

/// A kind of thing that is made here and may be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file that will get another name.
    Draft,
    /// A folder with its contents, often inside a folder that all users share.
    Scratch,
}

impl Kind {
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Draft => ".partial",
            Self::Scratch => ".scratch",
        }
    }

    /// Returns a builder of names of this kind, which begin with this process's
    /// [`prefix`].
    pub(crate) fn names(self, prefix: &str) -> tempfile::Builder<'_, 'static> {
        let mut names = tempfile::Builder::new();
        names.prefix(prefix).suffix(self.suffix());
        names.rand_bytes(RANDOM_LEN);
        names
    }

    /// Returns the start of a system in a name of this kind, or `None` for another
    /// name.
    fn start_in(self, name: &str) -> Option<&str> {
        let (start, random) = name
            .strip_prefix(PREFIX)?
            .strip_suffix(self.suffix())?
            .rsplit_once('-')?;
        let is_of_this_kind = start.len() == UNKNOWN_START.len()
            && random.len() == RANDOM_LEN
            && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_of_this_kind.then_some(start)
    }

    /// Returns true if this is of the kind, and the maker of `newest` may remove it.
    fn is_it(self, metadata: &Metadata, newest: &Metadata) -> bool {
        match self {
            // Everybody who may write to the folder may remove it: several users may
            // share a cache.
            Self::Draft => metadata.is_file(),
            Self::Scratch => metadata.is_dir() && metadata.uid() == newest.uid(),
        }
    }

    /// Opens it in the mode in which it can be locked.
    pub(crate) fn open(self, path: &Path) -> io::Result<File> {
        match self {
            // Some file systems lock only files that are open for writing.
            Self::Draft => File::options().read(true).write(true).open(path),
            Self::Scratch => File::open(path),
        }
    }

    fn remove(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Draft => fs::remove_file(path),
            // Follows no link, neither at the path nor below it.
            Self::Scratch => fs::remove_dir_all(path),
        }
    }
}

/// Returns the first part of all names that this process gives.
pub(crate) fn prefix() -> String {
    format!("{PREFIX}{}-", start_id())
}

/// Locks a new file, where locks exist. Fails with [`io::ErrorKind::AlreadyExists`] if
/// a sweep took it for a killed process's before it was locked. The caller then tries
/// another name.
pub(crate) fn lock_new(file: &File, path: &Path) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) if is_at(file, path)? => Ok(()),
        Ok(()) | Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Removes everything of this kind in `folder` that no process has any more. `newest`
/// was made there just now; it gives the file system's time and this process's user.
pub(crate) fn sweep(
    kind: Kind,
    folder: &Path,
    newest: &File,
    lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> io::Result<()> {
    let newest = newest.metadata()?;
    for entry in fs::read_dir(folder)?.flatten() {
        if may_be_left(kind, &entry, &newest)? {
            // An error concerns one path only: another user's file may not be ours to
            // open.
            let _ = remove_if_left(kind, &entry.path(), &lock);
        }
    }
    Ok(())
}

/// Returns true if the name, the owner and the times are those of something that may
/// have been left.
fn may_be_left(kind: Kind, entry: &DirEntry, newest: &Metadata) -> io::Result<bool> {
    let name = entry.file_name();
    let Some(start) = name.to_str().and_then(|name| kind.start_in(name)) else {
        return Ok(false);
    };
    // This does not follow links.
    let Ok(metadata) = entry.metadata() else {
        return Ok(false);
    };
    let is_of_this_start = start == start_id() && start != UNKNOWN_START;
    let is_left = is_of_this_start || is_older(&metadata, newest.modified()?);
    Ok(is_left && kind.is_it(&metadata, newest))
}

fn is_older(metadata: &Metadata, now: SystemTime) -> bool {
    let age = |modified| now.duration_since(modified).unwrap_or_default();
    metadata
        .modified()
        .is_ok_and(|modified| age(modified) >= FOREIGN_AGE)
}

/// Removes `path` if no process has it locked. While it is locked here, nobody else
/// writes to it, renames it, or removes it.
fn remove_if_left(
    kind: Kind,
    path: &Path,
    lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> io::Result<()> {
    let file = kind.open(path)?;
    lock(&file)?;
    if is_at(&file, path)? {
        kind.remove(path)?;
    }
    Ok(())
}

/// Returns true if `path` leads to this file itself, and not by a link.
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

/// Stands for the start of a system that does not tell its own.
pub(crate) const UNKNOWN_START: &str = "00000000-0000-0000-0000-000000000000";

/// Returns an id of this start of this machine's system.
pub(crate) fn start_id() -> &'static str {
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
