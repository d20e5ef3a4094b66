//! Words in memory or in a mapped file.
//!
//! Invariant: [`Words::as_slice`] is always the same words. A mapped file was written by
//! this crate, renamed into place, and is never written again. A program that truncates it
//! in place while it is mapped breaks that promise, and the process, as with any mapped
//! file.
#![allow(unsafe_code)] // Mapping a file, and viewing its bytes as words.

use memmap2::Mmap;
use std::{fs::File, io, ops::Range};

/// Words that are owned, or borrowed from a file.
#[derive(Debug)]
pub(crate) enum Words {
    /// In memory.
    Owned(Vec<u32>),
    /// In a file: these bytes of it, aligned and a whole number of words.
    Mapped(Mmap, Range<usize>),
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
    pub(crate) fn from_file(map: Mmap, bytes: Range<usize>) -> Option<Self> {
        let view = map.get(bytes.clone())?;
        let in_place = cfg!(target_endian = "little")
            && view.len() % 4 == 0
            && view.as_ptr().cast::<u32>().is_aligned();
        if in_place {
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
                // SAFETY: any four bytes are a u32. `align_to` keeps the
                // middle aligned and inside `view`; it is all of `view`, for
                // `from_file` has checked its alignment and length.
                let (_, words, _) = unsafe { view.align_to::<u32>() };
                words
            }
        }
    }
}

/// Maps a file that is not written to any more.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is only read. The bytes stay what they are as long as
    // nobody writes the file in place: files of this crate are written under
    // another name, renamed when they are whole, and replaced the same way.
    unsafe { Mmap::map(file) }
}
