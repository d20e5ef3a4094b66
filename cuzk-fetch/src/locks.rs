//! The locks of a folder of parameters, as all its users take them.
//!
//! * `fetch.lock`, which the fetching libraries of Go lock with POSIX record locks. The lock
//!   here belongs to the open file, and such locks and record locks exclude each other.
//! * `NAME.params.lock`, which the makers of test parameters lock with `flock`.
//! * The file itself, which the proofs libraries lock with `flock` while they use it.
//!
//! The invariant: no lock file is removed. Two processes could hold locks of two files with
//! one name otherwise.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// The name of the lock file of a whole folder.
const FOLDER_LOCK: &str = "fetch.lock";

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _file: File,
}

/// Returns the lock file of a folder.
pub(crate) fn folder_lock(folder: &Path) -> PathBuf {
    folder.join(FOLDER_LOCK)
}

/// Returns the file that a maker of the file `name` locks.
pub(crate) fn maker_lock(folder: &Path, name: &str) -> PathBuf {
    let stem = name
        .strip_suffix(".vk")
        .map(|stem| format!("{stem}.params"));
    folder.join(format!("{}.lock", stem.as_deref().unwrap_or(name)))
}

/// Locks the lock file of a folder. Returns nothing if another process has it.
pub(crate) fn try_folder(path: &Path) -> io::Result<Option<Held>> {
    let file = open(path)?;
    // The constants are small numbers, and the field is a short one on some systems.
    let lock = libc::flock {
        l_type: libc::F_WRLCK.try_into().unwrap_or_default(),
        l_whence: libc::SEEK_SET.try_into().unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    match fcntl(&file, FcntlArg::F_OFD_SETLK(&lock)) {
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
        // Some network file systems have no locks. Others cannot be kept out there.
        _ => Ok(Some(Held { _file: file })),
    }
}

/// Locks a maker's lock file. Returns nothing if another process has it.
pub(crate) fn try_maker(path: &Path) -> io::Result<Option<Held>> {
    let file = open(path)?;
    Ok(taken(file.try_lock()).then_some(Held { _file: file }))
}

/// Locks a file that exists against its users: alone, or together with other readers.
/// Returns nothing if another process uses it.
pub(crate) fn try_file(file: &File, is_alone: bool) -> bool {
    let locked = if is_alone {
        file.try_lock()
    } else {
        file.try_lock_shared()
    };
    taken(locked)
}

fn taken(locked: Result<(), TryLockError>) -> bool {
    !matches!(locked, Err(TryLockError::WouldBlock))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_bounded::BoundedChild;

    #[test]
    fn a_lock_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        for (path, try_it) in [
            (
                folder_lock(folder.path()),
                try_folder as fn(&Path) -> io::Result<Option<Held>>,
            ),
            (maker_lock(folder.path(), "x.vk"), try_maker),
        ] {
            let held = try_it(&path).unwrap();
            assert!(held.is_some());
            assert!(try_it(&path).unwrap().is_none());
            drop(held);
            assert!(try_it(&path).unwrap().is_some());
        }
        assert!(folder.path().join("x.params.lock").exists());
    }

    #[test]
    fn a_record_lock_of_another_process_keeps_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder_lock(folder.path());
        File::create(&path).unwrap();
        let script = format!(
            "import fcntl, sys\nf = open({:?}, 'r+')\nfcntl.lockf(f, fcntl.LOCK_EX)\n\
             print('locked', flush=True)\nsys.stdin.read()",
            path.to_str().unwrap()
        );
        let python = std::process::Command::new("python3")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn();
        // Only a process without such locks of its own can show it, and Python has them.
        let Ok(mut python) = python else {
            return;
        };
        let mut said = [0; 7];
        let stdout = python.stdout.as_mut().unwrap();
        io::Read::read_exact(stdout, &mut said).unwrap();
        assert!(try_folder(&path).unwrap().is_none());
        drop(python.stdin.take());
        python.wait_bounded().unwrap();
        assert!(try_folder(&path).unwrap().is_some());
    }
}
