//! `supraseal-sys/card.sh run` with programs that end as they are told, where no card is.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuzk_bounded::BoundedCommand;
use house::workspace::top;

/// The last lines of the tests on a card.
const PASSED: &str = "test result: ok. 1 passed; 0 failed";
const NONE: &str = "test result: ok. 0 passed; 0 failed; 13 filtered out";

/// A folder with the script and the programs that it brings along.
struct Packed(PathBuf);

impl Packed {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("card");
        fs::remove_dir_all(&folder).ok();
        for name in ["supraseal-sys", "target/card", "programs"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let script = "supraseal-sys/card.sh";
        fs::copy(top().0.join(script), folder.join(script)).unwrap();
        fs::write(folder.join("target/card/root"), folder.to_str().unwrap()).unwrap();
        Self(folder)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.0.join("programs").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs the checks with a prover and with tests that do this.
    fn run(&self, cuzk: &str, dual: &str) -> Output {
        self.program("nvidia-smi", "echo a card");
        self.program("cuzk", cuzk);
        self.program("dual", dual);
        let programs = self.0.join("programs");
        let packed = Command::new("tar")
            .args(["-czf", "../target/card/programs.tar.gz", "cuzk", "dual"])
            .current_dir(&programs)
            .status();
        assert!(packed.unwrap().success());
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args(["supraseal-sys/card.sh", "run"])
            .env("PATH", format!("{}:{path}", programs.display()))
            .current_dir(&self.0)
            .output_bounded()
            .unwrap()
    }
}

#[test]
fn a_failed_step_on_a_card_is_named_and_ends_with_1() {
    let packed = Packed::new();
    let cuzk = "echo CUDA shows none";
    let fails = "echo CUDA shows none; case $* in *porep*) exit 1;; esac";
    let (passed, none) = (format!("echo '{PASSED}'"), format!("echo '{NONE}'"));
    for (cuzk, dual, missed) in [
        (cuzk, &*passed, None),
        (
            cuzk,
            "echo 'test result: FAILED. 0 passed; 1 failed'; exit 101",
            Some("dual"),
        ),
        (cuzk, &*none, Some("dual")),
        (
            fails,
            &*passed,
            Some("porep load porep-streamed porep-b-g2-cpu"),
        ),
        (
            "exit 1",
            &*passed,
            Some("hidden porep load porep-streamed porep-b-g2-cpu winning shape-24 shape-25"),
        ),
    ] {
        let output = packed.run(cuzk, dual);
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap_or_default();
        let told = last.strip_prefix("== failed or skipped: ");
        assert_eq!(told, missed, "{cuzk}, {dual}: {text}");
        assert_eq!(
            output.status.code(),
            Some(missed.is_some().into()),
            "{text}"
        );
    }
}
