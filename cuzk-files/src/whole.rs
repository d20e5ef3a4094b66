//! Files that are written whole, and read as far as they may go.
//!
//! Not what is in them. The invariants: a file that is written has its name only when it
//! is on the disk; one that is read costs no more memory than its limit, whatever it is.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::Draft;

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

/// Checks that [`write_whole`] could begin a file in `folder`. Nothing is left there.
///
/// # Errors
/// What the file system says.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    Draft::begin(&folder.join("file")).map(drop)
}

/// Reads a file of at most `max_bytes`. It may be a pipe, or a device without an end.
///
/// # Errors
/// What the file system says; [`io::ErrorKind::FileTooLarge`] if there is more, of which
/// a byte is read.
pub fn read_bounded(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?.take(max_bytes.saturating_add(1));
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= max_bytes) {
        return Ok(bytes);
    }
    let max = size(max_bytes);
    let problem = format!("the file has more than {max}; name the right one");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, problem))
}

/// Returns a limit as a user reads it: in MiB if it is a number of them.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes.is_multiple_of(MIB) {
        true => format!("{} MiB", bytes / MIB),
        false => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        // Any bytes but a slash are a name.
        let path = directory.path().join(OsStr::from_bytes(b"proof-\xff"));
        for length in [0, 1, 999, 1000] {
            let bytes = vec![7; length];
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(read_bounded(&path, 1000).unwrap(), bytes);
        }
        std::fs::write(&path, [7; 1001]).unwrap();
        let error = read_bounded(&path, 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(
            error
                .to_string()
                .starts_with("the file has more than 1000 bytes; ")
        );
        std::fs::write(&path, vec![7; (1 << 20) + 1]).unwrap();
        let error = read_bounded(&path, 1 << 20).unwrap_err().to_string();
        assert!(
            error.starts_with("the file has more than 1 MiB; "),
            "{error}"
        );
        let error = read_bounded(directory.path(), 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let error = read_bounded(&directory.path().join("none"), 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_a_device_without_one_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        for (length, is_read) in [(100_000, true), (100_001, false)] {
            let bytes = vec![7; length];
            std::thread::scope(|scope| {
                // Whoever reads no further closes it.
                scope.spawn(|| std::fs::write(&pipe, &bytes).ok());
                let read = read_bounded(&pipe, 100_000);
                assert_eq!(read.is_ok_and(|read| read == bytes), is_read);
            });
        }
        let zero = read_bounded(Path::new("/dev/zero"), 1000);
        assert_eq!(zero.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

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
