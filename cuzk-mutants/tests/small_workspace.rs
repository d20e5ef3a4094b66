//! The program tries the mutants of a workspace of one small package.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use cuzk_bounded::BoundedCommand;
use cuzk_mutants::packages::Package;
use tempfile::TempDir;

/// The tests know what is small and what comes after the last number. They do not know what is large.
const SOURCE: &str = r"
pub fn is_small(number: u8) -> bool {
    number < 10
}

pub fn next(number: u8) -> Option<u8> {
    match number {
        255 => None,
        _ => Some(number + 1),
    }
}

pub fn is_large(number: u8) -> bool {
    number >= 100
}

pub struct WithoutDefault(u8);

pub fn made() -> WithoutDefault {
    WithoutDefault(1)
}

#[test]
fn small_numbers() {
    assert!(is_small(9) && !is_small(10) && !is_small(11));
    assert_eq!(made().0, 1);
}
";

const TESTS: &str = r"
#[test]
fn the_last_number_has_no_next_one() {
    assert_eq!(cuzk_files::next(255), None);
    assert_eq!(cuzk_files::next(4), Some(5));
    assert!(!cuzk_files::is_large(5));
}
";

fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = "[package]\nname = \"cuzk-files\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let lock = "version = 4\n\n[[package]]\nname = \"cuzk-files\"\nversion = \"0.1.0\"\n";
    for (path, text) in [
        (
            "Cargo.toml",
            "[workspace]\nresolver = \"2\"\nmembers = [\"cuzk-files\"]\n",
        ),
        ("Cargo.lock", lock),
        (".gitignore", "target/\n"),
        (".cargo/mutants-survivors", "# None.\n"),
        ("cuzk-files/Cargo.toml", package),
        ("cuzk-files/src/lib.rs", SOURCE),
        ("cuzk-files/tests/next.rs", TESTS),
    ] {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    git(folder.path(), &["init", "--quiet"]);
    git(folder.path(), &["add", "."]);
    let name = ["-c", "user.name=A test", "-c", "user.email="];
    git(
        folder.path(),
        &[&name[..], &["commit", "--quiet", "--message", "First"]].concat(),
    );
    folder
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    assert!(
        command
            .args(arguments)
            .current_dir(folder)
            .status_bounded()
            .unwrap()
            .success()
    );
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-mutants"));
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    command
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR");
    command.args(arguments).current_dir(folder);
    command
}

fn mutants(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output_bounded().unwrap()
}

/// Returns the last line that the program printed, and the survivors.
fn said(output: &Output) -> (String, Vec<String>) {
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let complained = String::from_utf8(output.stderr.clone()).unwrap();
    let survivors = complained
        .lines()
        .filter_map(|line| line.strip_prefix("survivor: "));
    let last = printed.lines().last().unwrap_or(&complained).to_owned();
    (last, survivors.map(str::to_owned).collect())
}

#[test]
fn a_mutant_that_no_test_notices_survives() {
    let folder = workspace();
    let mut cut = command(folder.path(), &["cuzk-files"]);
    let output = cut.env("CUZK_MUTANTS_SECONDS", "0").output_bounded();
    assert_eq!(
        said(&output.unwrap()).0,
        "== not ended: cuzk-files: 0 of 0 mutants killed (100.0 %), 0 of them hung; 0 listed with a reason, 1 did not compile, 15 not tried in time"
    );
    let output = mutants(folder.path(), &["cuzk-files", "--survivors"]);
    let (last, survivors) = said(&output);
    let expected = [
        "cuzk-files/src/lib.rs: replace is_large -> bool with false @ pub fn is_large(number: u8) -> bool {",
        "cuzk-files/src/lib.rs: replace >= with > in is_large @ number >= 100",
    ];
    assert_eq!(survivors, expected, "{last}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        last,
        "== failed: cuzk-files, survivors of the last run: 13 of 15 mutants killed (86.6 %), 0 of them hung; 0 listed with a reason, 0 did not compile"
    );

    let list = folder.path().join(".cargo/mutants-survivors");
    fs::write(&list, expected.join("\n    A reason.\n") + "\n").unwrap();
    let output = mutants(folder.path(), &["cuzk-files", "--survivors"]);
    assert_eq!(
        said(&output).0,
        "== passed: cuzk-files, survivors of the last run: 0 of 0 mutants killed (100.0 %), 0 of them hung; 2 listed with a reason, 0 did not compile"
    );
    assert!(output.status.success());
    let output = mutants(folder.path(), &["cuzk-files", "--survivors"]);
    assert_eq!(
        said(&output).0,
        "== passed: cuzk-files, survivors of the last run: no line has a mutant"
    );

    let lib = folder.path().join("cuzk-files/src/lib.rs");
    assert_eq!(fs::read_to_string(&lib).unwrap(), SOURCE);
    let output = mutants(folder.path(), &["--changed", "HEAD"]);
    assert_eq!(
        said(&output).0,
        "== passed: all packages, lines changed since HEAD: no line has a mutant"
    );
    fs::write(&lib, SOURCE.replace("< 10", "<= 9")).unwrap();
    let output = mutants(folder.path(), &["--changed", "HEAD", "--sample", "9"]);
    assert_eq!(
        said(&output).0,
        "== passed: 9 of all packages, lines changed since HEAD: 4 of 4 mutants killed (100.0 %), 0 of them hung; 0 listed with a reason, 0 did not compile"
    );
}

#[test]
fn a_package_keeps_files_if_its_tests_name_their_folder() {
    let folder = workspace();
    let keeps_files = || {
        let package = Package::read(folder.path(), "cuzk-files", false).unwrap();
        package.keeps_files
    };
    assert!(!keeps_files());
    let test = folder.path().join("cuzk-files/tests/next.rs");
    fs::write(test, "const FOLDER: &str = env!(\"CARGO_TARGET_TMPDIR\");").unwrap();
    assert!(keeps_files());
}
