//! Words in memory or in a mapped file.
//!
//! Invariant: [`Words::as_slice`] is always the same words. A mapped file was written by
//! this crate, renamed into place, and is never written again.

use cuzk_files::MappedFile;
use cuzk_memory::values_of;
use std::ops::Range;

/// Words that are owned, or borrowed from a file.
#[derive(Debug)]
pub(crate) enum Words {
    /// In memory.
    Owned(Vec<u32>),
    /// In a file: these bytes of it, aligned and a whole number of words.
    Mapped(MappedFile, Range<usize>),
}

impl From<Vec<u32>> for Words {
    fn from(words: Vec<u32>) -> Self {
        Words::Owned(words)
    }
}

impl Words {
    /// Returns words from these little-endian bytes of a mapped file. They stay in place if
    /// the machine is little-endian and they are aligned. Otherwise they are copied.
    /// Returns `None` if the file has no such bytes.
    pub(crate) fn from_file(map: MappedFile, bytes: Range<usize>) -> Option<Self> {
        let view = map.get(bytes.clone())?;
        if cfg!(target_endian = "little") && values_of::<u32>(view).is_some() {
            return Some(Words::Mapped(map, bytes));
        }
        let (words, _) = view.as_chunks::<4>();
        let words = words.iter().map(|&word| u32::from_le_bytes(word));
        Some(Words::Owned(words.collect()))
    }

    /// The words.
    pub(crate) fn as_slice(&self) -> &[u32] {
        match self {
            Words::Owned(words) => words,
            Words::Mapped(map, bytes) => {
                let view = map.get(bytes.clone()).unwrap_or(&[]);
                // There are words, for `from_file` has looked.
                values_of(view).unwrap_or(&[])
            }
        }
    }
}
