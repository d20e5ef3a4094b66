//! The locks of a journal.
//!
//! A file beside the journal is locked as long as the journal is open, and holds a
//! process id. The journal's own file is locked too. It can have several names, by
//! links or mounts, and each name has a lock file of its own.
//!
//! The operating system releases the locks when the process ends, in whichever way. The
//! lock file stays: if it were removed, two processes could hold locks of two files
//! with one name.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::JournalError;

/// The exclusive right to a journal.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the journal at `path`. Fails with the process that has it.
    pub(crate) fn take(path: &Path) -> Result<Self, JournalError> {
        let lock_path = beside(path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|error| JournalError::io(&lock_path, "open the lock file", error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::InUse {
                    path: path.to_owned(),
                    holder_pid: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(JournalError::io(&lock_path, "lock the lock file", error));
            }
        }
        // The lock is held already. The process id in the file is for people.
        let said = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = said {
            let path = lock_path.display();
            tracing::warn!(%path, %error, "the process id could not be written to the lock file");
        }
        Ok(Self { _file: file })
    }
}

/// The exclusive right to the file that a journal's name refers to.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    /// The lock belongs to this opening of the file, and not to later ones.
    locked: Mutex<Option<File>>,
}

impl Claim {
    /// Opens the file at `path`. Locks it, unless this claim has locked that file
    /// before.
    pub(crate) fn open(&self, path: &Path) -> Result<File, JournalError> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| JournalError::io(path, "open", error))?;
        let failed = |error| JournalError::io(path, "lock", error);
        let mut locked = self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(locked) = &*locked
            && is_same(locked, &file).map_err(failed)?
        {
            return Ok(file);
        }
        match file.try_lock() {
            Ok(()) => *locked = Some(file.try_clone().map_err(failed)?),
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::InUse {
                    path: path.to_owned(),
                    // The process id stands beside a name that is not known here.
                    holder_pid: None,
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(file)
    }
}

fn is_same(one: &File, other: &File) -> io::Result<bool> {
    let [one, other] = [one.metadata()?, other.metadata()?];
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".lock");
    PathBuf::from(name)
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in_use(opened: Result<File, JournalError>) -> bool {
        matches!(opened, Err(JournalError::InUse { .. }))
    }

    /// `/dev/full` can be locked, but every write to it fails.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_lock_is_taken_where_there_is_no_room_to_say_who_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        std::os::unix::fs::symlink("/dev/full", beside(&path)).unwrap();
        let lock = Lock::take(&path).unwrap();
        match Lock::take(&path) {
            Err(JournalError::InUse { holder_pid, .. }) => assert_eq!(holder_pid, None),
            other => panic!("{other:?}"),
        }
        drop(lock);
        Lock::take(&path).unwrap();
    }

    /// The process that has a failed store opens it again.
    #[test]
    fn a_claim_opens_its_own_file_again_and_keeps_it_from_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        File::create(&path).unwrap();
        let claim = Claim::default();
        for _ in 0..3 {
            drop(claim.open(&path).unwrap());
            assert!(is_in_use(Claim::default().open(&path)));
        }
        // Another file of that name is claimed like the first one.
        std::fs::remove_file(&path).unwrap();
        File::create(&path).unwrap();
        let other = Claim::default();
        other.open(&path).unwrap();
        assert!(is_in_use(claim.open(&path)));
        drop(other);
        claim.open(&path).unwrap();
        assert!(is_in_use(Claim::default().open(&path)));
        drop(claim);
        Claim::default().open(&path).unwrap();
    }
}
