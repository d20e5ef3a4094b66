//! The commands that the documents show do what the documents say. Each is run, or is in a table
//! with the reason why not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod blocks;
mod rules;

use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{Shown, shown_in};
use rules::{RULES, Rule, rule_of};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Shared with the other tests that prove, and kept between runs.
fn param_cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The documents whose commands are looked at.
fn documents() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(repository().join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let mut names: Vec<_> = docs.filter(|name| name.ends_with(".md")).collect();
    names.extend(["README.md", "clients/go/README.md"].map(str::to_owned));
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(repository().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

fn commands() -> Vec<Shown> {
    let documents = documents();
    let shown = documents
        .iter()
        .flat_map(|(name, text)| shown_in(name, text));
    shown.collect()
}

/// A folder that a command runs in: the bundled data and configurations, and requests under
/// the names that the documents use.
fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    for name in ["configs", "data"] {
        let target = repository().join(name).canonicalize().unwrap();
        std::os::unix::fs::symlink(target, scratch.path().join(name)).unwrap();
    }
    let request = repository().join("data/sector-2kib/winning-post.json");
    for name in ["a.json", "b.json", "porep.json"] {
        std::fs::copy(&request, scratch.path().join(name)).unwrap();
    }
    std::fs::write(scratch.path().join("my.toml"), "").unwrap();
    std::fs::write(scratch.path().join("curio.toml"), "").unwrap();
    scratch
}

/// Runs a command in the folder, and returns what it ended with and what it said.
fn run(command: &str, folder: &Path) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_cuzk")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .env_remove("IPFS_GATEWAY")
        .output()
        .unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn every_command_that_a_document_shows_runs_or_says_why_it_is_not_run() {
    let mut failures = Vec::new();
    // A block's later commands use the files of its earlier ones, and so do the blocks of a
    // document.
    let mut folders: Vec<(String, tempfile::TempDir)> = Vec::new();
    let mut number_run = 0;
    for shown in commands() {
        let exit_codes = match rule_of(&shown.command) {
            Some(Rule::NotRun(_)) => continue,
            Some(Rule::Ends(codes)) => codes,
            None => &[0][..],
        };
        if folders.iter().all(|(name, _)| *name != shown.document) {
            folders.push((shown.document.clone(), scratch()));
        }
        let folder = folders.iter().find(|(name, _)| *name == shown.document);
        let (code, said) = run(&shown.command, folder.unwrap().1.path());
        number_run += 1;
        if !code.is_some_and(|code| exit_codes.contains(&code)) {
            failures.push(format!("{shown} ended with {code:?}:\n{said}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(number_run > 15, "only {number_run} commands were run");
}

#[test]
fn every_rule_is_of_a_command_that_is_shown_and_has_a_reason() {
    let commands = commands();
    for (beginning, rule) in RULES {
        let is_used = |shown: &Shown| shown.command.starts_with(beginning);
        assert!(
            commands.iter().any(is_used),
            "no document shows {beginning}"
        );
        if let Rule::NotRun(reason) = rule {
            assert!(reason.len() > 10, "{beginning}");
        }
    }
}
