//! A circuit's file that whoever reads it waits for.

use std::fs::{OpenOptions, remove_file};
use std::path::{Path, PathBuf};
use std::process::Command;

use cuzk_core::circuits;
use cuzk_filecoin::ProofKind;

use crate::common::tiny;

/// A named pipe in the place of the tiny circuit's file, until it is dropped.
pub(crate) struct Pipe(PathBuf);

impl Pipe {
    /// In the place of the file of this kind, which is in `folder`.
    pub(crate) fn in_place_of(kind: ProofKind, folder: &Path) -> Self {
        let path = circuits::cache_path(tiny::id(kind), folder).unwrap();
        remove_file(&path).unwrap();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Self(path)
    }
}

impl Drop for Pipe {
    /// Who reads has the end of the file now, and finds no other. Opened without waiting
    /// for a reader: there may be none.
    fn drop(&mut self) {
        let written = OpenOptions::new().read(true).write(true).open(&self.0);
        remove_file(&self.0).unwrap();
        drop(written.unwrap());
    }
}
