#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::fs::{self, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use cuzk_bounded::BoundedReceiver;

use super::left::{FOREIGN_AGE, PREFIX, UNKNOWN_START, start_id};
use super::*;

/// The end of a draft's name.
const SUFFIX: &str = ".partial";

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Makes a draft of a process that was killed.
fn leave(folder: &Path, start: &str, random: &str) -> PathBuf {
    let path = folder.join(format!("{PREFIX}{start}-{random}{SUFFIX}"));
    fs::write(&path, "half").unwrap();
    path
}

fn make_older(path: &Path, age: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_file_replaces_another_or_finds_its_place_taken() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("circuit");
    for bytes in [&[1; 1000][..], &[2; 10]] {
        let mut draft = Draft::begin(&target).unwrap();
        draft.file_mut().write_all(bytes).unwrap();
        draft.publish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), bytes);
    }
    let taken = Draft::begin(&target).unwrap().publish_new().unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&target).unwrap(), [2; 10]);
    drop(Draft::begin(&target).unwrap());
    let other = folder.path().join("other");
    Draft::begin(&other).unwrap().publish_new().unwrap();
    assert_eq!(names_in(folder.path()), ["circuit", "other"]);
}

#[test]
fn the_folder_is_synced_after_the_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("circuit");
    let mut draft = Draft::begin(&target).unwrap();
    draft.file_mut().write_all(b"whole").unwrap();
    let rename = |file: NamedTempFile, target: &Path| file.persist(target);
    let synced = draft.put(rename, |synced| {
        assert_eq!(synced, folder.path());
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        Err(io::Error::other("the disk is gone"))
    });
    assert_eq!(synced.unwrap_err().to_string(), "the disk is gone");
}

#[test]
fn what_was_left_is_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let writing = Draft::begin(&path.join("circuit")).unwrap();
    let own = start_id();
    assert_ne!(own, UNKNOWN_START);
    let other = "0123abcd-0123-0123-0123-0123456789ab";
    let left = leave(path, own, "aaaaaa");
    let left_long_ago = leave(path, other, "bbbbbb");
    make_older(&left_long_ago, FOREIGN_AGE + Duration::from_secs(3600));
    let elsewhere = leave(path, other, "cccccc");
    make_older(&elsewhere, FOREIGN_AGE - Duration::from_secs(3600));
    let unknown = leave(path, UNKNOWN_START, "dddddd");
    // Names that no draft has, and a draft's name that is a link.
    let others = [
        path.join(format!("{PREFIX}{own}-eeeeee")),
        path.join(format!("{PREFIX}{own}-eeeeeee{SUFFIX}")),
        path.join(format!("{PREFIX}{own}-ee.eee{SUFFIX}")),
        path.join(format!("{PREFIX}x-eeeeee{SUFFIX}")),
        path.join(format!("x{PREFIX}{own}-eeeeee{SUFFIX}")),
        path.join(".tmpabcdef"),
    ];
    for other in &others {
        fs::write(other, "somebody's").unwrap();
        make_older(other, 2 * FOREIGN_AGE);
    }
    let link = path.join(format!("{PREFIX}{own}-ffffff{SUFFIX}"));
    symlink(&others[0], &link).unwrap();
    let in_a_folder = path.join(format!("{PREFIX}{own}-gggggg{SUFFIX}"));
    fs::create_dir(&in_a_folder).unwrap();

    drop(Draft::begin(&path.join("another")).unwrap());
    assert!(!left.exists() && !left_long_ago.exists());
    for kept in others
        .iter()
        .chain([&elsewhere, &unknown, &link, &in_a_folder])
    {
        assert!(kept.symlink_metadata().is_ok(), "{}", kept.display());
    }
    // The lock protects it, and neither its age nor its owner.
    make_older(writing.file.path(), 2 * FOREIGN_AGE);
    drop(Draft::begin(&path.join("another")).unwrap());
    writing.publish().unwrap();
}

/// Some network file systems have no lock manager.
#[test]
fn where_files_cannot_be_locked_nothing_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let left = leave(folder.path(), start_id(), "aaaaaa");
    let newest = tempfile::tempfile_in(folder.path()).unwrap();
    let unsupported = |_: &File| Err(TryLockError::Error(io::ErrorKind::Unsupported.into()));
    sweep(Kind::Draft, folder.path(), &newest, unsupported).unwrap();
    assert!(left.exists());
    sweep(Kind::Draft, folder.path(), &newest, File::try_lock).unwrap();
    assert!(!left.exists());
}

/// A sweep may examine a file between its creation and its lock.
#[test]
fn a_new_file_that_was_taken_for_left_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("draft");
    let lock = |file| lock_new(file, &path).map_err(|error| error.kind());
    let file = File::create(&path).unwrap();
    let removing = File::options().write(true).open(&path).unwrap();
    removing.lock().unwrap();
    assert_eq!(lock(&file), Err(io::ErrorKind::AlreadyExists));
    fs::remove_file(&path).unwrap();
    drop(removing);
    assert_eq!(lock(&file), Err(io::ErrorKind::AlreadyExists));
    let another = File::create(&path).unwrap();
    assert_eq!(lock(&file), Err(io::ErrorKind::AlreadyExists));
    assert_eq!(lock(&another), Ok(()));
}

/// Makes a folder of a process that was killed, with a file in it and a link out of it.
fn leave_scratch(parent: &Path, start: &str, random: &str, target: &Path) -> PathBuf {
    let path = parent.join(format!("{PREFIX}{start}-{random}.scratch"));
    fs::create_dir_all(path.join("cache")).unwrap();
    fs::write(path.join("cache/layer"), "half").unwrap();
    symlink(target, path.join("link")).unwrap();
    path
}

#[test]
fn a_scratch_folder_is_its_users_alone_and_goes_with_all_in_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::new_in(parent.path()).unwrap();
    let mode = scratch.path().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    fs::create_dir(scratch.path().join("cache")).unwrap();
    fs::write(scratch.path().join("cache/layer"), "half").unwrap();
    // A second folder of the same process is treated like one of another process.
    let neighbour = Scratch::new_in(parent.path()).unwrap();
    assert_eq!(
        fs::read(scratch.path().join("cache/layer")).unwrap(),
        b"half"
    );
    drop(scratch);
    assert_eq!(names_in(parent.path()).len(), 1);
    drop(neighbour);
    assert!(names_in(parent.path()).is_empty());
    let missing = Scratch::new_in(&parent.path().join("none")).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn scratch_folders_that_were_left_are_removed_and_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path();
    let own = start_id();
    let other = "0123abcd-0123-0123-0123-0123456789ab";
    let elsewhere = path.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "somebody's").unwrap();
    let age = |path: &Path, age| {
        let folder = File::open(path).unwrap();
        folder.set_modified(SystemTime::now() - age).unwrap();
    };
    let leave = |start, random| leave_scratch(path, start, random, &elsewhere);
    let left = leave(own, "aaaaaa");
    let left_long_ago = leave(other, "bbbbbb");
    age(&left_long_ago, FOREIGN_AGE + Duration::from_secs(3600));
    let of_another_machine = leave(other, "cccccc");
    let unknown = leave(UNKNOWN_START, "dddddd");
    // A link and a file under such names, and a draft, which only a sweep of drafts
    // removes.
    let link = path.join(format!("{PREFIX}{own}-eeeeee.scratch"));
    symlink(&elsewhere, &link).unwrap();
    let file = path.join(format!("{PREFIX}{own}-ffffff.scratch"));
    fs::write(&file, "somebody's").unwrap();
    let draft = path.join(format!("{PREFIX}{own}-gggggg{SUFFIX}"));
    fs::write(&draft, "half").unwrap();
    let mut kept = vec![of_another_machine, unknown, link, file, draft];
    // A folder of another user. Only the superuser can give one away.
    let of_another_user = leave(own, "hhhhhh");
    if std::os::unix::fs::chown(&of_another_user, Some(65_534), None).is_ok() {
        kept.push(of_another_user);
    }

    drop(Scratch::new_in(path).unwrap());
    assert!(!left.exists() && !left_long_ago.exists());
    for kept in kept {
        assert!(kept.symlink_metadata().is_ok(), "{}", kept.display());
    }
    assert_eq!(names_in(&elsewhere), ["file"]);
}

/// The thread that makes files finds no folder in the end.
#[test]
fn a_folder_is_removed_while_files_are_made_in_it() {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::new_in(parent.path()).unwrap();
    let path = scratch.path().to_owned();
    fs::create_dir(path.join("cache")).unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let made = (0..).map(|n: u32| fs::write(path.join("cache").join(n.to_string()), "x"));
            let mut made = made.inspect(|_| begun.send(()).unwrap_or_default());
            // Ends at the first that cannot be made.
            made.find(Result::is_err)
        });
        for _ in 0..100 {
            has_begun.recv_bounded().unwrap();
        }
        scratch.remove().unwrap();
    });
    assert_eq!(names_in(parent.path()), [""; 0]);
}
