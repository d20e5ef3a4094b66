//! Files that are whole or not there.
//!
//! Not what is in them. The invariant: a file has its name only when it is on the disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// What a large file is called while it is written, after its own name and six letters.
const UNFINISHED: &str = ".tmp";

/// Writes `bytes` to `path` under another name, and renames it when it is on
/// the disk: no reader sees half a file, and a failure leaves what was there.
///
/// # Errors
/// What the file system says.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = folder_of(path);
    let mut file = begin(directory, &mut tempfile::Builder::new())?;
    file.write_all(bytes)?;
    finish(file, path)
}

/// Whether [`write_whole`] could begin a file in `folder`. Nothing is left there.
///
/// # Errors
/// What the file system says.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    begin(folder, &mut tempfile::Builder::new()).map(drop)
}

/// [`write_whole`] of what `write` writes, which is large: what a writer left that was killed
/// goes when the next one begins.
///
/// # Errors
/// What `write` returns or the file system says.
pub(crate) fn write_whole_with<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let directory = folder_of(path);
    let prefix = unfinished_prefix(path);
    remove_abandoned(directory, &prefix);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(UNFINISHED);
    let mut file = loop {
        let file = begin(directory, &mut builder)?;
        // Held until it has its name. Where nothing can be locked nothing is abandoned.
        file.as_file().lock().ok();
        // Before it was locked another writer may have taken it for abandoned.
        if file.path().exists() {
            break file;
        }
    };
    write(file.as_file_mut())?;
    Ok(finish(file, path)?)
}

fn finish(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // Its name is on the disk when the folder is.
    File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What the names of unfinished files for `path` begin with.
fn unfinished_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Removes unfinished files whose writer is gone: the system gave back its lock.
fn remove_abandoned(directory: &Path, prefix: &OsStr) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let (name, prefix) = (name.as_encoded_bytes(), prefix.as_encoded_bytes());
        let ours = name.strip_prefix(prefix);
        let ours = ours.and_then(|rest| rest.strip_suffix(UNFINISHED.as_bytes()));
        if ours.is_none_or(|letters| letters.len() != 6) {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else {
            continue;
        };
        // Locked until it is gone, so that a writer of this moment sees it.
        if file.try_lock().is_ok() && fs::remove_file(&path).is_ok() {
            tracing::info!(path = %path.display(), "removed what a writer left that was killed");
        }
    }
}

/// A file under a name that nobody knows: its errors are the system's alone. Its permissions
/// follow the process's umask.
fn begin(directory: &Path, builder: &mut tempfile::Builder) -> io::Result<NamedTempFile> {
    let open = |path: &Path| {
        let mut options = File::options();
        options.read(true).write(true).create_new(true).open(path)
    };
    builder.make_in(directory, open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("proof");
        write_whole(&path, &[1; 1000]).unwrap();
        write_whole(&path, &[2; 10]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [2; 10]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_directory_is_an_error_in_the_systems_words() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("no");
        let system = std::fs::read(&missing).unwrap_err();
        for result in [
            write_whole(&missing.join("proof"), &[]),
            check_folder(&missing),
        ] {
            assert_eq!(result.unwrap_err().to_string(), system.to_string());
        }
        check_folder(directory.path()).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
