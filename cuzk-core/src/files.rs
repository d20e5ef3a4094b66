//! Files that are whole or not there.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to `path` under another name, and renames it when it is on
/// the disk: no reader sees half a file, and a failure leaves what was there.
///
/// # Errors
/// What the file system says.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_with(path, |file| file.write_all(bytes))
}

/// Whether [`write_whole`] could begin a file in `folder`. Nothing is left there.
///
/// # Errors
/// What the file system says.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    begin(folder).map(drop)
}

/// [`write_whole`] of what `write` writes.
///
/// # Errors
/// What `write` returns or the file system says.
pub(crate) fn write_whole_with<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = begin(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // Its name is on the disk when the folder is.
    File::open(directory)?.sync_all()?;
    Ok(())
}

/// A file under a name that nobody knows: its errors are the system's alone. Its permissions
/// follow the process's umask.
fn begin(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let open = |path: &Path| {
        let mut options = File::options();
        options.read(true).write(true).create_new(true).open(path)
    };
    tempfile::Builder::new().make_in(directory, open)
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
