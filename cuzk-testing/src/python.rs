//! Python with the package `cuzk` as it was just built.
//!
//! Not an installation: the package lies in a folder that ends with its test. The invariant: the
//! package's library is the one that Cargo made for the calling program.

use std::path::Path;
use std::process::Command;

/// Returns true if there is a Python that is new enough for the package.
#[must_use]
pub fn has_python() -> bool {
    let is_new = "import sys; sys.exit(sys.version_info < (3, 9))";
    let asked = Command::new("python3").args(["-c", is_new]).status();
    asked.is_ok_and(|status| status.success())
}

/// Makes the package in an empty folder, and returns a Python that finds it there. `root` is the
/// folder of `cuzk-python`. Call it from a test or a bench of that crate.
///
/// # Panics
///
/// If the folder cannot be written.
#[must_use]
pub fn with_package(root: &Path, folder: &Path) -> Command {
    let package = folder.join("cuzk");
    std::fs::create_dir(&package).unwrap();
    let module = root.join("python/cuzk/__init__.py");
    std::fs::copy(module, package.join("__init__.py")).unwrap();
    // Cargo leaves the library of a program's crate beside the program.
    let program = std::env::current_exe().unwrap();
    let library = program.parent().unwrap().join("lib_cuzk.so");
    std::os::unix::fs::symlink(library, package.join("_cuzk.abi3.so")).unwrap();
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder);
    python
}
