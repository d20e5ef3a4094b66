//! The members of the workspace and their files.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::sources::{Folder, Sources};
use crate::{Error, Result};

/// Extensions of the files whose length is checked.
const EXTENSIONS: [&str; 7] = ["rs", "c", "cpp", "cu", "cuh", "h", "hpp"];

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its package's name.
    pub name: String,
    /// Its folder, relative to the top.
    pub folder: PathBuf,
    /// Its manifest itself says `publish = false`: it serves development only.
    pub is_for_development: bool,
}

impl Member {
    /// Returns the roots of its library and of its program, as far as it has them.
    #[must_use]
    pub fn roots(&self, sources: &dyn Sources) -> Vec<PathBuf> {
        ["src/lib.rs", "src/main.rs"]
            .iter()
            .map(|root| self.folder.join(root))
            .filter(|root| sources.has(root))
            .collect()
    }
}

/// Returns the folder at the top of this workspace.
#[must_use]
pub fn top() -> Folder {
    Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

/// Returns the members, in the order of the workspace's manifest.
///
/// # Errors
/// A manifest cannot be read or has another form.
pub fn members(sources: &dyn Sources) -> Result<Vec<Member>> {
    let manifest = table(sources, Path::new("Cargo.toml"))?;
    let list = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("members"))
        .and_then(Value::as_array)
        .ok_or_else(|| Error::new(Path::new("Cargo.toml"), "no list of members"))?;
    list.iter()
        .filter_map(Value::as_str)
        .map(|folder| member(sources, Path::new(folder)))
        .collect()
}

fn member(sources: &dyn Sources, folder: &Path) -> Result<Member> {
    let path = folder.join("Cargo.toml");
    let manifest = table(sources, &path)?;
    let package = manifest
        .get("package")
        .ok_or_else(|| Error::new(&path, "no package"))?;
    let name = package
        .get("name")
        .and_then(Value::as_str)
        .ok_or_else(|| Error::new(&path, "no name of the package"))?;
    Ok(Member {
        name: name.to_owned(),
        folder: folder.to_owned(),
        is_for_development: package.get("publish").and_then(Value::as_bool) == Some(false),
    })
}

fn table(sources: &dyn Sources, path: &Path) -> Result<Table> {
    let text = sources.text(path)?;
    text.parse().map_err(|error| Error::new(path, error))
}

/// Returns the sorted paths of all Rust, C, C++ and CUDA files, relative to the top.
///
/// # Errors
/// A folder cannot be read.
pub fn source_files(top: &Folder) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let full = top.0.join(&folder);
        let entries = fs::read_dir(&full).map_err(|error| Error::new(&full, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Error::new(&full, error))?;
            let kind = entry
                .file_type()
                .map_err(|error| Error::new(&full, error))?;
            let path = folder.join(entry.file_name());
            if kind.is_dir() && !is_ignored(&path) {
                folders.push(path);
            } else if kind.is_file() && has_source_extension(&path) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns true for the folders of builds and for hidden ones, except that of CI.
fn is_ignored(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name == "target" || (name.starts_with('.') && name != ".ci")
}

fn has_source_extension(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    EXTENSIONS.iter().any(|known| extension == *known)
}
