//! Environment variables at which the proofs libraries would panic.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuzk_bounded::BoundedCommand;

fn request(kind: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/sector-2kib");
    folder.join(kind).with_extension("json")
}

/// Checks that a synthesis of this kind's bundled request fails because of its input,
/// with `message` and without a panic.
fn synthesis_fails(kind: &str, name: &str, value: &OsStr, folder: &Path, message: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args(["synth", "--partition", "0", "--request"])
        .arg(request(kind))
        .env("FIL_PROOFS_PARAMETER_CACHE", folder)
        .env(name, value)
        .current_dir(folder)
        .output_bounded()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
#[cfg(unix)]
fn a_variable_that_is_not_utf8_is_named() {
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let value = OsStr::from_bytes(b"\xff");
    for kind in ["winning-post", "window-post"] {
        synthesis_fails(kind, "SOME_VARIABLE", value, folder.path(), "SOME_VARIABLE");
    }
}

#[test]
fn settings_of_the_proofs_libraries_that_cannot_be_read_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let variable = "FIL_PROOFS_ROWS_TO_DISCARD";
    let value = OsStr::new("abc");
    synthesis_fails(
        "window-post",
        variable,
        value,
        folder.path(),
        "rows_to_discard",
    );
    let file = folder.path().join("rust-fil-proofs.config.toml");
    std::fs::write(file, "rows_to_discard = \"some\"\n").unwrap();
    let harmless = OsStr::new("1");
    synthesis_fails(
        "window-post",
        "SOME_VARIABLE",
        harmless,
        folder.path(),
        "rust-fil-proofs.config.toml",
    );
}

/// The circuit of a PoSt divides its sectors by this number.
#[test]
fn no_threads_for_the_sectors_of_a_post_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let variable = "FIL_PROOFS_WINDOW_POST_SYNTHESIS_NUM_CPUS";
    for kind in ["winning-post", "window-post"] {
        let message = "set it to at least 1";
        synthesis_fails(kind, variable, OsStr::new("0"), folder.path(), message);
    }
}

#[test]
#[cfg(unix)]
fn a_folder_that_is_not_utf8_is_not_silently_another_one() {
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join(OsStr::from_bytes(b"parameters-\xff"));
    std::fs::create_dir(&cache).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cuzk"))
        .args([
            "params",
            "verify",
            "--kind",
            "porep",
            "--sector-size",
            "2KiB",
        ])
        .env("FIL_PROOFS_PARAMETER_CACHE", &cache)
        .output_bounded()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("parameters-"), "{stderr}");
}
