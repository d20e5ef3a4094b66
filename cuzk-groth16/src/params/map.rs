//! A file's bytes without copying them. Parameters that are no file have their bytes on the
//! heap.
//!
//! The bytes are copied out and decoded, or, where they are multiples, read as rows of words in
//! place, of which any bytes are some. So another program that changes a mapped file, against
//! what the documentation of `MappedParams` says, could make points wrong, which verification
//! rejects.

use std::fs::File;
use std::io;

use cuzk_files::MappedFile;

/// A whole file, mapped for reading, or bytes that are in no file.
#[derive(Debug)]
pub(super) enum Map {
    File(MappedFile),
    Memory(Vec<u8>),
}

impl Map {
    /// Maps all of `file` as it is now.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        MappedFile::new(file).map(Self::File)
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::File(map) => map,
            Self::Memory(bytes) => bytes,
        }
    }
}
