//! The texts of the sources, from a folder or from memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Texts by their paths, which are relative to the top of the workspace.
pub trait Sources {
    /// Returns true if there is a text at `path`.
    fn has(&self, path: &Path) -> bool;

    /// Returns the text at `path`.
    ///
    /// # Errors
    /// There is no text at `path`, or it cannot be read.
    fn text(&self, path: &Path) -> Result<String>;
}

/// The folder at the top of a workspace.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Sources for Folder {
    fn has(&self, path: &Path) -> bool {
        self.0.join(path).is_file()
    }

    fn text(&self, path: &Path) -> Result<String> {
        let full = self.0.join(path);
        fs::read_to_string(&full).map_err(|error| Error::new(&full, error))
    }
}

impl Sources for BTreeMap<PathBuf, String> {
    fn has(&self, path: &Path) -> bool {
        self.contains_key(path)
    }

    fn text(&self, path: &Path) -> Result<String> {
        self.get(path)
            .cloned()
            .ok_or_else(|| Error::new(path, "no such file"))
    }
}
