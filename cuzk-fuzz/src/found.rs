//! The inputs that guided runs found, in one file of the tree for each decoder.
//!
//! These are not the [`Kept`], which a run reads and writes. They come with the sources, so that each
//! `cargo test` tries them. The file of `PACKAGE/tests/corpus/NAME` is `NAME.found` beside it. An input
//! there is its length, as four bytes from the lowest, and its bytes. The invariant: what is written
//! is read again, and the inputs of a file have at most [`BYTES_MAX`] bytes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::kept::{self, Kept};

/// The most bytes of the inputs in a file. The shortest come first: nearly all of them reach edges that
/// no shorter one reaches.
const BYTES_MAX: usize = 32 << 10;

/// Returns the file for the decoder of a corpus.
fn path(corpus: &Path) -> PathBuf {
    let mut name = corpus.file_name().unwrap_or_default().to_owned();
    name.push(".found");
    corpus.with_file_name(name)
}

/// Reads the inputs for the decoder of a corpus. There may be none.
///
/// # Panics
/// If the file is damaged.
pub(crate) fn read(corpus: &Path) -> Vec<Vec<u8>> {
    let path = path(corpus);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.unwrap(),
    };
    let mut inputs = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let input = rest.split_first_chunk().and_then(|(length, after)| {
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            after.split_at_checked(length)
        });
        assert!(input.is_some(), "{} is cut off", path.display());
        let (input, after) = input.unwrap();
        inputs.push(input.to_vec());
        rest = after;
    }
    inputs
}

/// Writes the file of each decoder whose inputs guided runs kept in a folder. `packages` is the folder
/// of the packages that have the decoders. Returns the names of the decoders, and the number of inputs
/// in the file of each.
///
/// # Errors
/// If a folder cannot be read, or a file not be written.
pub fn write(kept: &Path, packages: &Path) -> io::Result<Vec<(String, usize)>> {
    let mut written = Vec::new();
    for package in folders(kept)? {
        let name = package.file_name().unwrap_or_default();
        let corpora = packages.join(name).join("tests/corpus");
        // Corpora of tests of this crate have no package.
        if !packages.join(name).is_dir() {
            continue;
        }
        fs::create_dir_all(&corpora)?;
        for decoder in folders(&package)? {
            let corpus = corpora.join(decoder.file_name().unwrap_or_default());
            let inputs = shortest(Kept::at(decoder).inputs());
            fs::write(path(&corpus), bytes_of(&inputs))?;
            written.push((kept::name(&corpus), inputs.len()));
        }
    }
    Ok(written)
}

/// Returns the folders in a folder, in the order of their names.
fn folders(of: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(of)?.map(|entry| Ok(entry?.path()));
    let mut folders = entries.collect::<io::Result<Vec<_>>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

/// Returns as many inputs as a file takes. The shortest are the first ones.
fn shortest(inputs: Vec<(PathBuf, Vec<u8>)>) -> Vec<Vec<u8>> {
    let mut bytes = 0;
    let inputs = inputs.into_iter().map(|(_, input)| input);
    inputs
        .take_while(|input| {
            bytes += input.len();
            bytes <= BYTES_MAX
        })
        .collect()
}

fn bytes_of(inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for input in inputs {
        // They have at most BYTES_MAX bytes.
        let length = u32::try_from(input.len()).unwrap();
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(input);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_inputs_are_written_and_read_again() {
        let folder = std::env::temp_dir().join(format!("cuzk-found-{}", std::process::id()));
        let (kept, packages) = (folder.join("kept"), folder.join("packages"));
        let corpus = packages.join("some-package/tests/corpus/decoder");
        assert!(read(&corpus).is_empty());
        let long = vec![7; BYTES_MAX];
        let decoder = Kept::at(kept.join("some-package/decoder"));
        for input in [&b"long"[..], b"", b"\n", &long] {
            decoder.add(input);
        }
        Kept::at(kept.join("unknown/decoder")).add(b"a");
        fs::create_dir_all(packages.join("some-package")).unwrap();

        let written = write(&kept, &packages).unwrap();
        assert_eq!(written, [("some-package/decoder".to_owned(), 3)]);
        assert_eq!(read(&corpus), [&b""[..], b"\n", b"long"]);
        assert!(!packages.join("unknown").exists());

        let whole = fs::read(path(&corpus)).unwrap();
        for length in 1..whole.len() {
            fs::write(path(&corpus), &whole[..length]).unwrap();
            let read = std::panic::catch_unwind(|| read(&corpus).len());
            // The ends of inputs are no cut.
            assert!(read.map_or(![4, 9].contains(&length), |inputs| inputs < 3));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
