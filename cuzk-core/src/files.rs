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
    let mut file = as_umask_says().tempfile_in(directory)?;
    write(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(io::Error::from)?;
    Ok(())
}

/// Temporary files are private by default, which what they become is not.
fn as_umask_says() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
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
    fn a_missing_directory_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(write_whole(&directory.path().join("no/proof"), &[]).is_err());
    }
}
