//! An error of each code that only commands have: what, where, and what to do. A full disk is
//! here, too, under a proof and under the journal.
//!
//! The codes that an engine returns have a table in cuzk-core.

use std::process::Stdio;

use cuzk_bounded::{BoundedChild, BoundedCommand, bounded};
use cuzk_core::error::ErrorCode;

use super::*;

/// Runs a command whose standard output takes no byte.
fn onto_a_full_disk(arguments: &[&str]) -> Output {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    command.args(arguments).stdout(full.unwrap());
    command.stderr(Stdio::piped()).output_bounded().unwrap()
}

/// Proves with a journal where no file can be longer than a block, as on a full disk.
fn without_room(folder: &Path, prove: &[&str]) -> Output {
    let journal = format!("[jobs]\njournal = {:?}\n", text(&folder.join("jobs")));
    let config = folder.join("journal.toml");
    std::fs::write(&config, journal).unwrap();
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_cuzk"), "--config"]);
    command.arg(config).args(prove);
    command.arg(folder.join("proof-of-journal"));
    command.env("FIL_PROOFS_PARAMETER_CACHE", param_cache());
    command.output_bounded().unwrap()
}

/// Sends SIGTERM to a command that waits for an answer.
fn stopped(folder: &Path) -> Output {
    let config = folder.join("cuzk.toml");
    std::fs::write(&config, "[server]\nhttp = \"\"\n").unwrap();
    let socket = folder.join("cuzk.sock");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    command.args(["--config", text(&config), "status", "--address"]);
    command.arg(format!("unix://{}", socket.display()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // Somebody takes the call, and never answers.
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let child = command.spawn().unwrap();
    let _call = bounded(|| listener.accept()).unwrap();
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    child.wait_with_output_bounded().unwrap()
}

#[test]
fn each_error_of_a_command_says_what_where_and_what_to_do() {
    generate("winning-post");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(folder.join("proof"), [0; 192]).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.join("full")).unwrap();
    let request = data("winning-post.json");
    let (request, proof, full) = (text(&request), folder.join("proof"), folder.join("full"));
    let of_circuit = ["--kind", "winning-post", "--sector-size", "2KiB"];
    let fetch = [
        &["params", "fetch"],
        &of_circuit[..],
        &["--from", text(&empty)],
    ]
    .concat();
    let prove = ["prove", "--request", request, "--out"];
    let verify = ["verify", "--request", request, "--proof", text(&proof)];
    let doctor = [&["doctor"], &of_circuit[..]].concat();
    let nobody = format!("unix://{}", folder.join("nobody").display());
    let cases = [
        (
            ErrorCode::Output,
            1,
            "standard output",
            onto_a_full_disk(&["version"]),
        ),
        (
            ErrorCode::Output,
            1,
            text(&full),
            cuzk(&[&prove[..], &[text(&full)]].concat()),
        ),
        (
            ErrorCode::JournalFailing,
            1,
            "journal",
            without_room(folder, &prove),
        ),
        (ErrorCode::Signal, 143, "SIGTERM", stopped(folder)),
        (
            ErrorCode::Daemon,
            1,
            &nobody,
            cuzk(&["status", "--address", &nobody]),
        ),
        (
            ErrorCode::Fetch,
            1,
            ".params",
            cuzk_in(&folder.join("cache"), &fetch),
        ),
        (ErrorCode::Doctor, 1, "error", cuzk_in(&empty, &doctor)),
        (ErrorCode::NotValid, 1, text(&proof), cuzk(&verify)),
    ];
    for (code, exit_code, place, output) in cases {
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit_code), "{code}: {said}");
        let end = format!(" [{code}]");
        let error = said.lines().find(|line| line.ends_with(&end));
        let error = error.unwrap_or_else(|| panic!("{code}: {said}"));
        assert!(error.contains(place), "{code}: {place} is not in {error}");
        assert!(
            error.contains("; "),
            "{code} does not say what to do: {error}"
        );
    }
}
