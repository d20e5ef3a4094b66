//! Files that are whole or not there.
//!
//! Not what is in them. The invariant: a file has its name only when it is on the disk.

use std::io::{self, Write};
use std::path::Path;

use cuzk_files::Draft;

/// Writes `bytes` to `path` under another name, and renames it when it is on
/// the disk: no reader sees half a file, and a failure leaves what was there.
///
/// # Errors
/// What the file system says.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::begin(path)?;
    draft.file_mut().write_all(bytes)?;
    draft.publish()
}

/// Whether [`write_whole`] could begin a file in `folder`. Nothing is left there.
///
/// # Errors
/// What the file system says.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    Draft::begin(&folder.join("file")).map(drop)
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
