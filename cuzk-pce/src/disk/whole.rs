//! A file that appears complete, with its checksum, or not at all.

use super::error::DiskFault;
use cuzk_files::Draft;
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

/// Bytes of the checksum at a file's end.
pub(crate) const CHECKSUM_BYTES: usize = 32;

/// Bytes read, decoded or encoded at a time.
pub(super) const BLOCK_BYTES: usize = 1 << 16;

/// Makes the file at `path`, complete with its checksum or not at all.
pub(crate) fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut HashingWriter<'_>) -> io::Result<()>,
) -> Result<(), DiskFault> {
    let draft = Draft::begin(path)?;
    let mut out = HashingWriter::new(draft.file());
    content(&mut out)?;
    out.finish()?;
    Ok(draft.publish()?)
}

/// Hashes what it writes.
pub(crate) struct HashingWriter<'a> {
    out: BufWriter<&'a File>,
    hasher: blake3::Hasher,
}

impl<'a> HashingWriter<'a> {
    fn new(file: &'a File) -> Self {
        HashingWriter {
            out: BufWriter::with_capacity(BLOCK_BYTES, file),
            hasher: blake3::Hasher::new(),
        }
    }

    /// Appends the checksum and empties the buffer.
    fn finish(mut self) -> io::Result<()> {
        let checksum = self.hasher.finalize();
        self.out.write_all(checksum.as_bytes())?;
        self.out.flush()
    }
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
