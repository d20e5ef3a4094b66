//! The bytes of a file, read in place.
//!
//! Not a copy, and not what the bytes mean. Invariant: the file is not written any more. A file
//! that a [`Draft`](crate::Draft) published is never written again: it is replaced by another
//! one. Other programs that put files beside those must do the same. A program that writes or shortens a
//! file in place while it is mapped changes the bytes, or ends the process.
#![allow(unsafe_code)] // A mapping is only as good as the file behind it.

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// A whole file, mapped for reading.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps all of `file` as it is now. Nobody may write to it any more.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is only read. The bytes stay as they are as long as nobody writes the
        // file in place. A file is replaced by renaming another one, which leaves the mapped
        // file as it was. The bytes are valid whatever they are.
        unsafe { Mmap::map(file) }.map(Self)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{Draft, Scratch};

    #[test]
    fn a_file_that_is_replaced_keeps_its_mapped_bytes() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("file");
        let publish = |bytes: &[u8]| {
            let mut draft = Draft::begin(&path).unwrap();
            draft.file_mut().write_all(bytes).unwrap();
            draft.publish().unwrap();
            MappedFile::new(&File::open(&path).unwrap()).unwrap()
        };
        let first = publish(b"first");
        let second = publish(b"second, longer");
        assert_eq!((&*first, &*second), (&b"first"[..], &b"second, longer"[..]));
    }
}
