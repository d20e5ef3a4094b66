//! The packages whose mutants are tried, and the tests that try them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::output;
use crate::tree;

/// The variable with a folder in which tests keep files for later ones, such as parameters.
const KEPT_IN: &str = "CARGO_TARGET_TMPDIR";

/// The tests that have to notice a package's mutants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// All of its own.
    All,
    /// Those within its sources.
    Within,
}

/// The packages, with their tests. Those in the folders `tests` of cuzk-core and cuzk-filecoin prove for
/// minutes. The unit tests of cuzk-core contain the simulation of the engine.
const PACKAGES: &[(&str, Tests)] = &[
    ("cuzk-cluster", Tests::All),
    ("cuzk-core", Tests::Within),
    ("cuzk-fetch", Tests::All),
    ("cuzk-filecoin", Tests::All),
    ("cuzk-files", Tests::All),
    ("cuzk-groth16", Tests::All),
    ("cuzk-journal", Tests::All),
    ("cuzk-memory", Tests::All),
    ("cuzk-plan", Tests::All),
    ("cuzk-scheduler", Tests::All),
    ("cuzk-timeline", Tests::All),
];

/// A package that is mutated.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name, which is that of its folder.
    pub name: String,
    /// The tests in its folder `tests` that are built.
    pub tests: Vec<String>,
    /// The members of the workspace that it or its tests need, directly or through others.
    pub needed: BTreeSet<String>,
    /// True if its tests may keep files for later ones.
    pub keeps_files: bool,
}

impl Package {
    /// Reads the package of this name. `top` is the folder of the workspace. It has all its tests
    /// if `every_test` says so.
    ///
    /// # Errors
    /// The package is not one of those whose mutants are tried, or Cargo does not know it.
    pub fn read(top: &Path, name: &str, every_test: bool) -> Result<Self> {
        let Some((_, tests)) = PACKAGES.iter().find(|(known, _)| *known == name) else {
            bail!(
                "no mutants of {name} are tried; the packages are {}",
                names().join(", ")
            );
        };
        let tests = match tests {
            Tests::Within if !every_test => Vec::new(),
            Tests::Within | Tests::All => targets(&top.join(name).join("tests"))?,
        };
        let needed = needed(top, name)?;
        Ok(Self {
            name: name.to_owned(),
            tests,
            keeps_files: keeps_files(top, name, &needed)?,
            needed,
        })
    }

    /// Returns the name of its library as the compiler is told it.
    #[must_use]
    pub fn library(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// Returns the names of the packages whose mutants are tried.
#[must_use]
pub fn names() -> Vec<&'static str> {
    PACKAGES.iter().map(|(name, _)| *name).collect()
}

/// Returns the names of the tests in a folder: files, and folders with a `main.rs`.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path: PathBuf = entry?.path();
            let is_test =
                path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file();
            if let Some(name) = path.file_stem().filter(|_| is_test) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Returns true if a source of a package, or of a library that it needs, names the folder of kept files.
fn keeps_files(top: &Path, name: &str, needed: &BTreeSet<String>) -> Result<bool> {
    let libraries = needed.iter().map(|needed| format!("{needed}/src"));
    for folder in libraries.chain([name.to_owned()]) {
        for file in tree::files(top, &folder)? {
            let text = fs::read_to_string(top.join(file));
            if text.is_ok_and(|text| text.contains(KEPT_IN)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the members that a package needs. Its own tests count, and not those of the others.
fn needed(top: &Path, name: &str) -> Result<BTreeSet<String>> {
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
        "--offline",
    ];
    let text = output(top, "cargo", &arguments)?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata has no packages")?;
    let mut of = BTreeMap::new();
    for package in packages {
        let list = package["dependencies"].as_array().into_iter().flatten();
        let list: Vec<_> = list
            .filter_map(|one| Some((one["name"].as_str()?, one["kind"].as_str())))
            .collect();
        of.insert(package["name"].as_str().unwrap_or_default(), list);
    }
    let mut needed = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        for (other, kind) in of.get(next).into_iter().flatten() {
            let counts = *kind != Some("dev") || next == name;
            if counts && of.contains_key(other) && needed.insert((*other).to_owned()) {
                open.push(other);
            }
        }
    }
    Ok(needed)
}
