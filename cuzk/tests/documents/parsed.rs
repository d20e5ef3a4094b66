//! A command that is not run is read, as it is written: by the shell, and by the program that it
//! is of.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use cuzk_bounded::BoundedCommand;
use serde_json::Value;

use crate::repository;

/// Returns what is wrong with a command, as far as it can be seen without running it.
pub(crate) fn problem(command: &str) -> Option<String> {
    let (_, mut problem) = shell(&["-n", "-c", command], &repository());
    if let Some(at) = command.find("cargo ") {
        problem = problem.or_else(|| cargo(&command[at..]));
    }
    if command.starts_with("cuzk ") {
        problem = problem.or_else(|| cuzk(command));
    }
    problem.or_else(|| script(command))
}

fn shell(arguments: &[&str], folder: &Path) -> (Output, Option<String>) {
    let mut shell = Command::new("bash");
    let output = crate::scene::prepare(shell.args(arguments), folder).output_bounded();
    let output = output.unwrap();
    let problem = match output.status.success() {
        true => None,
        false => Some(format!("ends with {output:?}")),
    };
    (output, problem)
}

/// Has cuzk read its arguments. They name a configuration that is not there, which it says once it
/// has found nothing else wrong.
fn cuzk(command: &str) -> Option<String> {
    let command = command.trim_end_matches('&');
    let has_config = command.contains(" --config ");
    let missing = "cuzk() { command cuzk --config missing.toml \"$@\"; }\n";
    let script = match has_config {
        true => command.to_owned(),
        false => format!("{missing}{command}"),
    };
    let empty = tempfile::tempdir().unwrap();
    let (output, _) = shell(&["-c", &script], empty.path());
    let text = String::from_utf8_lossy(&output.stderr);
    let is_read = text.starts_with("error: configuration ") && text.contains("(os error 2)");
    (!is_read || output.status.code() != Some(2)).then(|| format!("is refused: {text}"))
}

/// A package of the workspace has each target and each feature that the command names.
fn cargo(command: &str) -> Option<String> {
    let (words, program) = match command.split_once(" -- ") {
        Some((words, arguments)) => (words, Some(arguments)),
        None => (command, None),
    };
    let mut words = words.split_whitespace().skip(1);
    if !["bench", "build", "run", "test"].contains(&words.next()?) {
        return None;
    }
    let packages = packages();
    let mut is_of_cuzk = false;
    while let Some(word) = words.next() {
        let is_known = match word {
            "--release" | "--locked" | "--workspace" => true,
            "--profile" => ["profiling", "tests"].contains(&words.next().unwrap_or_default()),
            "-p" | "--package" => {
                let name = words.next().unwrap_or_default();
                packages.iter().any(|package| package["name"] == name)
            }
            "--bin" | "--example" | "--test" | "--bench" => {
                let name = words.next().unwrap_or_default();
                is_of_cuzk |= (word, name) == ("--bin", "cuzk");
                name == "'*'" || has_target(packages, word.trim_start_matches('-'), name)
            }
            "--features" => words
                .next()
                .unwrap_or_default()
                .split(',')
                .all(|name| has_feature(packages, name)),
            _ => false,
        };
        if !is_known {
            return Some(format!("the workspace has nothing for {word}"));
        }
    }
    match program {
        Some(arguments) if is_of_cuzk => cuzk(&format!("cuzk {arguments}")),
        _ => None,
    }
}

/// Returns the packages of the workspace as Cargo describes them.
fn packages() -> &'static [Value] {
    static PACKAGES: OnceLock<Vec<Value>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let output = Command::new(cargo)
            .args(["metadata", "--no-deps", "--offline"])
            .args(["--format-version", "1"])
            .current_dir(repository())
            .output_bounded()
            .unwrap();
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        metadata["packages"].as_array().unwrap().clone()
    })
}

fn has_target(packages: &[Value], kind: &str, name: &str) -> bool {
    let targets = packages
        .iter()
        .flat_map(|package| package["targets"].as_array().unwrap());
    let mut targets = targets.filter(|target| target["name"] == name);
    targets.any(|target| target["kind"].as_array().unwrap().contains(&kind.into()))
}

/// A feature is written alone, or after its package.
fn has_feature(packages: &[Value], name: &str) -> bool {
    let (package, feature) = match name.split_once('/') {
        Some((package, feature)) => (Some(package), feature),
        None => (None, name),
    };
    let is_of = |of: &&Value| package.is_none_or(|package| of["name"] == package);
    let mut packages = packages.iter().filter(is_of);
    packages.any(|package| !package["features"][feature].is_null())
}

/// A script of the repository is there.
fn script(command: &str) -> Option<String> {
    let word = command
        .split_whitespace()
        .find(|word| !word.contains('='))?;
    let is_script = word.starts_with(".ci/") || word.starts_with("cuzk/") || word.ends_with(".sh");
    let is_there = repository().join(word).is_file();
    (is_script && !is_there).then(|| format!("{word} is not there"))
}

#[test]
fn a_command_with_a_mistake_is_found() {
    for right in [
        "cuzk sweep --kind window-post --c 20 &",
        "cuzk --config x.toml worker",
        "NVCC=$(x) cargo build --release --features cuzk/cuda --bin cuzk",
        "cargo run --release --bin cuzk -- demo",
        "cargo test --profile tests --workspace",
        "cargo deb --package cuzk --no-build",
        ".ci/run",
    ] {
        assert_eq!(problem(right), None, "{right}");
    }
    for wrong in [
        "cuzk sweep --kind window-posts",
        "cuzk sweeps",
        "cuzk plan calibrate --runs 5",
        "cuzk --config x.toml worker --nobody",
        "cargo build --release --features cuzk/cudas",
        "cargo build --release --bin cuzks",
        "cargo test --profile test --workspace",
        "cargo run --release --bin cuzk -- demos",
        "for x in y; do",
        ".ci/walk",
    ] {
        assert!(problem(wrong).is_some(), "{wrong}");
    }
}
