//! The locks of a journal.
//!
//! A file beside the journal is locked as long as the journal is open, and holds a
//! process id. The journal's own file is locked too. It can have several names, by
//! links or mounts, and each name has a lock file of its own.
//!
//! The operating system releases the locks when the process ends, in whichever way. The
//! lock file of a journal stays. That of a file that is refused is removed again, by the
//! process that created and holds it. A process that locked a file which lost its name
//! meanwhile tries again, so two processes never hold locks of two files with one name.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::JournalError;

/// The number of lock files that are tried while refused journals lose theirs.
const TRIES: usize = 100;

/// The exclusive right to a journal.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    path: PathBuf,
    /// True if this process created the lock file.
    is_new: bool,
}

impl Lock {
    /// Takes the lock of the journal at `path`. Fails with the process that has it.
    pub(crate) fn take(path: &Path) -> Result<Self, JournalError> {
        let lock_path = beside(path);
        let failed = |action| {
            let lock_path = lock_path.clone();
            move |error| JournalError::io(&lock_path, action, error)
        };
        for _ in 0..TRIES {
            let (mut file, is_new) =
                open_or_create(&lock_path).map_err(|error| match folder_problem(path) {
                    Some(problem) => {
                        let error = io::Error::new(error.kind(), problem);
                        JournalError::io(path, "begin it", error)
                    }
                    None => failed("open the lock file")(error),
                })?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(JournalError::InUse {
                        path: path.to_owned(),
                        holder_pid: holder(&mut file),
                    });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(failed("lock the lock file")(error));
                }
            }
            if is_at(&file, &lock_path).map_err(failed("look at the lock file"))? {
                return Ok(Self::held(file, lock_path, is_new));
            }
        }
        Err(JournalError::InUse {
            path: path.to_owned(),
            holder_pid: None,
        })
    }

    /// Writes the process id into the lock file, whose lock is held.
    fn held(mut file: File, lock_path: PathBuf, is_new: bool) -> Self {
        // The lock is held already. The process id in the file is for people.
        let said = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = said {
            let path = lock_path.display();
            tracing::warn!(%path, %error, "the process id could not be written to the lock file");
        }
        Self {
            _file: file,
            path: lock_path,
            is_new,
        }
    }

    /// Removes the lock file if this process created it, because what it is beside is not
    /// used as a journal.
    pub(crate) fn give_up(self) {
        if self.is_new {
            // A file that stays is as harmless as that of a journal.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns the problem of the folder of a journal at `path`, with its remedy; none if the folder
/// is there. [`Journal::open`](crate::Journal::open) makes the file, but not its folder.
#[must_use]
pub fn folder_problem(path: &Path) -> Option<String> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() {
        return None;
    }
    let what = match folder.exists() {
        true => "is not a folder",
        false => "does not exist",
    };
    let folder = folder.display();
    Some(format!(
        "the folder {folder} {what}; make it, or name a file elsewhere"
    ))
}

/// Opens the file at `path`. Returns true beside it if the file was created.
fn open_or_create(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((options.create(true).truncate(false).open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Returns true if `path` leads to this file, by a link or not.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(there) => {
            let here = file.metadata()?;
            Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
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

    #[test]
    fn a_lock_that_is_given_up_leaves_only_a_lock_file_that_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        Lock::take(&path).unwrap().give_up();
        assert!(!beside(&path).exists());
        drop(Lock::take(&path).unwrap());
        assert!(beside(&path).exists());
        Lock::take(&path).unwrap().give_up();
        assert!(beside(&path).exists());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        File::create(directory.path().join("file")).unwrap();
        for (name, problem) in [
            ("no/j", "no does not exist; make it"),
            ("file/j", "file is not a folder; make it"),
        ] {
            let path = directory.path().join(name);
            let error = Lock::take(&path).unwrap_err();
            assert!(
                error.is_input() && error.to_string().contains(problem),
                "{error}"
            );
            assert!(folder_problem(&path).unwrap().contains(problem));
        }
        assert_eq!(folder_problem(&directory.path().join("j")), None);
        assert_eq!(folder_problem(Path::new("j")), None);
    }

    #[test]
    fn a_file_that_lost_its_name_is_not_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        let (file, is_new) = open_or_create(&path).unwrap();
        assert!(is_new && is_at(&file, &path).unwrap());
        assert!(
            is_at(&file, &path.join("below")).is_err(),
            "it is no folder"
        );
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        let (other, is_new) = open_or_create(&path).unwrap();
        assert!(is_new && is_at(&other, &path).unwrap() && !is_at(&file, &path).unwrap());
        assert!(!open_or_create(&path).unwrap().1);
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
