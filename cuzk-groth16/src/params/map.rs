//! A file's bytes without copying them: the one place that maps memory. Parameters that are
//! no file have their bytes on the heap.

#![allow(unsafe_code)] // A mapping is only as good as the file behind it.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// A whole file, mapped for reading, or bytes that are in no file.
#[derive(Debug)]
pub(super) enum Map {
    File(Mmap),
    Memory(Vec<u8>),
}

impl Map {
    /// Maps all of `file` as it is now.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: nobody may shorten or rewrite the file while it is mapped.
        // The generator never does: it writes under another name and renames,
        // which leaves the mapped file as it was. Others who put files into the
        // parameter cache must do the same, as the documentation of
        // `MappedParams` says. The bytes are copied out and decoded, or, where
        // they are multiples, read as rows of words in place, of which any bytes are some:
        // so a change could give wrong points, which verification rejects, but no
        // invalid value.
        let map = unsafe { Mmap::map(file) }?;
        Ok(Self::File(map))
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::File(map) => map,
            Self::Memory(bytes) => bytes,
        }
    }
}
