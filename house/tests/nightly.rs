//! `.ci/nightly` run in a repository of its own, with a Cargo that only says what it is told.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuzk_bounded::BoundedCommand;
use house::workspace::top;

/// The steps that run tests by their names, and need nothing else.
const STEPS: [&str; 10] = [
    "bellperson",
    "documents",
    "killed",
    "activation",
    "soak",
    "flood",
    "differential",
    "simulation",
    "engine",
    "circuits",
];

/// The end of a run of Cargo in which no test has the name.
const NONE: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 13 filtered out; \
                    finished in 0.00s";

/// A repository with the script and its page.
struct Repository(PathBuf);

impl Repository {
    /// Returns none where there is no git.
    fn new(name: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::remove_dir_all(&folder).ok();
        for file in [".ci/machine", ".ci/nightly", "docs/nightly.md"] {
            let to = folder.join(file);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(top().0.join(file), to).unwrap();
        }
        program(&folder.join(".ci/full-size"), "exec cargo full-size \"$@\"");
        fs::create_dir_all(folder.join("programs")).unwrap();
        fs::write(folder.join(".gitignore"), "programs\ntarget\n").unwrap();
        let here = Self(folder);
        let name = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        let commit = [&name[..], &["commit", "--quiet", "--message", "A"]].concat();
        let git = [vec!["init", "--quiet"], vec!["add", "--all"], commit];
        let done = git.iter().all(|arguments| {
            let git = Command::new("git")
                .args(arguments)
                .current_dir(&here.0)
                .output_bounded();
            git.is_ok_and(|output| output.status.success())
        });
        done.then_some(here)
    }

    /// Runs a step with a Cargo that prints a text.
    fn run(&self, step: &str, cargo: &str) -> Output {
        self.run_with(step, &format!("echo '{cargo}'"))
    }

    /// Runs a step with a Cargo that is a script.
    fn run_with(&self, step: &str, cargo: &str) -> Output {
        program(&self.0.join("programs/cargo"), cargo);
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args([".ci/nightly", step])
            .env(
                "PATH",
                format!("{}:{path}", self.0.join("programs").display()),
            )
            .current_dir(&self.0)
            .output_bounded()
            .unwrap()
    }

    fn page(&self) -> String {
        fs::read_to_string(self.0.join("docs/nightly.md")).unwrap()
    }
}

/// Writes a program of the shell.
fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Notes its arguments. Of `--list` it has two tests. A call whose arguments have `second` or `porep`
/// fails until there is the file `mended`.
const CARGO: &str = "echo \"$@\" >> programs/calls
case \"$*\" in
    *--list*) printf 'first: test\\nsecond: test\\n' ;;
    *second* | *porep*) [ -e programs/mended ] && echo 'test result: ok. 1 passed' ;;
    *) echo 'test result: ok. 1 passed' ;;
esac";

/// Each part of a step has its name at the end of a call. The part before the one that failed is not
/// run again.
#[test]
fn a_step_goes_on_with_the_part_that_failed() {
    let Some(repository) = Repository::new("nightly-parts") else {
        let line = "skipped, it needs git: a_step_goes_on_with_the_part_that_failed\n";
        return drop(std::io::stderr().write_all(line.as_bytes()));
    };
    let programs = repository.0.join("programs");
    for (step, target, [good, bad], told) in [
        (
            "circuits",
            "--test kinds",
            ["first", "second"],
            "2 tests of kinds",
        ),
        (
            "full-size",
            "full-size",
            ["winning-post", "porep"],
            "1 passed",
        ),
    ] {
        let before = repository.page();
        let failed = repository.run_with(step, CARGO);
        assert_eq!(failed.status.code(), Some(1), "{step}: {failed:?}");
        assert_eq!(repository.page(), before, "{step}");
        fs::write(programs.join("mended"), "").unwrap();
        let passed = repository.run_with(step, CARGO);
        assert!(passed.status.success(), "{step}: {passed:?}");
        let page = repository.page();
        let mut rows = page.lines();
        let row = rows.find(|line| line.starts_with(&format!("| {step} | 20")));
        assert!(row.is_some_and(|row| row.contains(told)), "{row:?}");
        let calls = fs::read_to_string(programs.join("calls")).unwrap();
        let count = |part: &str| {
            let of_part = |call: &&str| call.contains(target) && call.ends_with(part);
            calls.lines().filter(of_part).count()
        };
        assert_eq!((count(good), count(bad)), (1, 2), "{step}: {calls}");
        fs::remove_file(programs.join("mended")).unwrap();
    }
}

#[test]
fn a_step_that_runs_no_test_fails_and_has_no_row() {
    let Some(repository) = Repository::new("nightly") else {
        let line = "skipped, it needs git: a_step_that_runs_no_test_fails_and_has_no_row\n";
        return drop(std::io::stderr().write_all(line.as_bytes()));
    };
    let before = repository.page();
    for step in STEPS {
        let output = repository.run(step, NONE);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{step}: {told}");
        assert!(told.contains("no test ran"), "{step}: {told}");
        assert_eq!(repository.page(), before, "{step}");
    }
    let passed = NONE.replace("0 passed", "2 passed");
    let output = repository.run("bellperson", &passed);
    assert!(output.status.success(), "{output:?}");
    let row = repository.page();
    let row = row
        .lines()
        .find(|line| line.starts_with("| bellperson | 20"));
    assert!(row.is_some_and(|row| row.contains("2 passed")), "{row:?}");
    // A cell with several parts has a line for each. As one sentence it would be too long.
    assert!(row.is_some_and(|row| !row.contains("; ")), "{row:?}");
}
