//! Who has a journal: a file beside it, locked for as long as it is open, that
//! holds a process id.
//!
//! The operating system lets go of the lock when the process ends, however it
//! ends. The file itself stays: removing it would let two processes hold locks
//! of two files with one name.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::JournalError;

/// The exclusive right to a journal.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the journal at `path`, or says who has it.
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
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|error| JournalError::io(&lock_path, "write the lock file", error))?;
        Ok(Self { _file: file })
    }
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
