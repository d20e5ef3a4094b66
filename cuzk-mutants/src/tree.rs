//! The tree of sources that a build with mutants reads.
//!
//! It has the form of the workspace. The mutated package is a copy, whose tests may write into it. All
//! other entries are links.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use house::modules::Crate;
use house::sources::Folder;

use crate::conditions::is_built;
use crate::process::output;

/// Returns the sources of a package's library, without those of tests and of other builds. The paths
/// begin at `top`. The first one is that of the root.
///
/// # Errors
/// A source cannot be read.
pub fn sources(top: &Path, package: &str) -> Result<Vec<PathBuf>> {
    let root = Path::new(package).join("src/lib.rs");
    let read = Crate::read(package, &root, &Folder(top.to_owned()))?;
    let mut files = vec![root];
    let mut seen = BTreeSet::new();
    let mut open = vec![0];
    while let Some(next) = open.pop() {
        let Some(module) = read.modules.get(next) else {
            continue;
        };
        if seen.insert(module.file.clone()) && files.first() != Some(&module.file) {
            files.push(module.file.clone());
        }
        for (position, child) in &module.children {
            let Some(syn::Item::Mod(item)) = module.items.get(*position) else {
                continue;
            };
            if is_built(&item.attrs) {
                open.push(*child);
            }
        }
    }
    if let Some((_, others)) = files.split_first_mut() {
        others.sort();
    }
    Ok(files)
}

/// Makes the tree in a folder.
///
/// # Errors
/// A file cannot be copied, or Git does not know the files.
pub fn make(top: &Path, tree: &Path, package: &str) -> Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree).with_context(|| tree.display().to_string())?;
    }
    fs::create_dir_all(tree).with_context(|| tree.display().to_string())?;
    for entry in fs::read_dir(top).with_context(|| top.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        if name != ".git" && name != "target" && name != package {
            symlink(entry.path(), tree.join(&name))
                .with_context(|| entry.path().display().to_string())?;
        }
    }
    for file in files(top, package)? {
        let to = tree.join(&file);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        fs::copy(top.join(&file), &to).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

/// Returns the files of a folder that Git does not ignore.
///
/// # Errors
/// Git fails.
pub fn files(top: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let arguments = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        folder,
    ];
    let text = output(top, "git", &arguments)?;
    let paths = text
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    Ok(paths.filter(|path| top.join(path).is_file()).collect())
}
