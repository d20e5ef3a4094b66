//! The folder that Cargo builds in: a copy of that of ordinary builds.
//!
//! So nothing is built again but what has changed. A file that Cargo writes to is copied. A file that
//! the compiler makes is linked. [`crate::wrapper`] removes such a link before the compiler runs.
//! Invariant: no file of an ordinary build changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// The profile, and its folder.
pub const PROFILE: &str = "release";

/// Makes the folder `to` from the folder `from`, which an ordinary build may not have made yet. The
/// package `mutated` counts as not built.
///
/// # Errors
/// A file cannot be copied.
pub fn copy(from: &Path, to: &Path, mutated: &str) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| to.display().to_string())?;
    }
    let profile = to.join(PROFILE);
    fs::create_dir_all(&profile).with_context(|| profile.display().to_string())?;
    for (option, part, into) in [
        ("-al", "deps", &*profile),
        ("-a", "build", &*profile),
        ("-a", ".fingerprint", &*profile),
        ("-a", "tmp", to),
    ] {
        let part = if into == to {
            from.join(part)
        } else {
            from.join(PROFILE).join(part)
        };
        if part.is_dir() {
            cp(option, &part, into)?;
        }
    }
    forget(to, mutated)
}

/// Copies a folder into another one.
///
/// # Errors
/// The command `cp` fails.
pub fn cp(option: &str, from: &Path, into: &Path) -> Result<()> {
    let mut command = Command::new("cp");
    let status = command.arg(option).arg(from).arg(into).status();
    if !status.context("cp cannot be started")?.success() {
        bail!(
            "{} cannot be copied into {}",
            from.display(),
            into.display()
        );
    }
    Ok(())
}

/// Lets Cargo call the compiler for a package, whatever has been built.
///
/// # Errors
/// A file of Cargo's cannot be removed.
pub fn forget(target: &Path, package: &str) -> Result<()> {
    let folder = target.join(PROFILE).join(".fingerprint");
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name
            .rsplit_once('-')
            .is_some_and(|(name, _)| name == package)
        {
            fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// Files that tests make for later tests, such as parameters, and a copy of them.
///
/// A mutant may write wrong ones. They would fail the tests of the next mutants.
#[derive(Clone, Debug)]
pub struct Made {
    made: PathBuf,
    kept: PathBuf,
}

impl Made {
    /// Names the files of a build below `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            made: folder.join("build/tmp"),
            kept: folder.join("kept/tmp"),
        }
    }

    /// Copies the files, as the tests have made them without a mutant.
    ///
    /// # Errors
    /// A file cannot be copied.
    pub fn keep(&self) -> Result<()> {
        replace(&self.kept, &self.made)
    }

    /// Returns true if there is such a file.
    #[must_use]
    pub fn is_some(&self) -> bool {
        !listing(&self.kept).is_empty()
    }

    /// Makes the files as they were if one has changed.
    ///
    /// # Errors
    /// A file cannot be copied.
    pub fn restore(&self) -> Result<()> {
        if listing(&self.made) == listing(&self.kept) {
            Ok(())
        } else {
            replace(&self.made, &self.kept)
        }
    }
}

fn replace(to: &Path, from: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| to.display().to_string())?;
    }
    let Some(folder) = to.parent().filter(|_| from.is_dir()) else {
        return Ok(());
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    cp("-a", from, folder)
}

/// Returns the paths in a folder, with the length and time of each file.
fn listing(folder: &Path) -> BTreeMap<PathBuf, Option<(u64, SystemTime)>> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            let data = entry.metadata().ok();
            let file = data.filter(fs::Metadata::is_file);
            let file = file.and_then(|data| Some((data.len(), data.modified().ok()?)));
            if file.is_none() {
                open.push(path.clone());
            }
            let relative = path.strip_prefix(folder).unwrap_or(&path);
            all.insert(relative.to_owned(), file);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_mutant_changes_is_as_it_was_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("build/tmp/x/parameters");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "good").unwrap();
        let made = Made::new(folder.path());
        assert!(!made.is_some());
        made.keep().unwrap();
        assert!(made.is_some());
        fs::write(&file, "wrong").unwrap();
        made.restore().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "good");
        fs::remove_file(&file).unwrap();
        made.restore().unwrap();
        assert!(file.is_file());
    }
}
