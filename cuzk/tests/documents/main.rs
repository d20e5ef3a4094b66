//! The commands that the documents show do what the documents say, and print what they show. Each
//! is run, or is in a table with the reason why not. Other blocks of a document are in a table, too,
//! with the tests that they have.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod blocks;
mod described;
mod fragments;
mod named;
mod parsed;
mod place;
mod process;
mod rules;
mod scene;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use blocks::{Block, Shown, blocks_in, shown_in};
use cuzk_bounded::BoundedCommand;
use rules::{RULES, Rule, rule_of};
use scene::Scene;

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Shared with the other tests that prove, and kept between runs.
pub(crate) fn param_cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parameters");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Adds the documents of a folder and of the folders in it.
fn add_documents(folder: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap_or_default();
        let path = folder.join(&name);
        let is_folder = entry.file_type().unwrap().is_dir();
        let is_foreign = name.starts_with('.') || ["target", "shared"].contains(&&name[..]);
        if is_folder && !is_foreign {
            add_documents(&path, names);
        } else if !is_folder && name.ends_with(".md") {
            names.push(path.display().to_string());
        }
    }
}

/// Returns all documents of the repository: their names and texts.
pub(crate) fn documents() -> Vec<(String, String)> {
    let mut names = Vec::new();
    add_documents(Path::new(""), &mut names);
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(repository().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// Returns the blocks of a language.
pub(crate) fn blocks(language: &str) -> Vec<Block> {
    let documents = documents();
    let blocks = documents
        .iter()
        .flat_map(|(name, text)| blocks_in(name, text));
    blocks.filter(|block| block.language == language).collect()
}

fn commands() -> Vec<Shown> {
    let documents = documents();
    let shown = documents
        .iter()
        .flat_map(|(name, text)| shown_in(name, text));
    shown.collect()
}

/// Returns true if the machine has a program.
fn has(tool: &str) -> bool {
    let command = format!("command -v {tool}");
    let looked = Command::new("bash").args(["-c", &command]).output_bounded();
    looked.is_ok_and(|output| output.status.success())
}

/// Returns the program that a command needs and that the machine lacks.
fn missing(shown: &Shown) -> Option<&'static str> {
    let tools = rule_of(&shown.command).map_or(&[][..], Rule::tools);
    tools.iter().copied().find(|tool| !has(tool))
}

/// Does what the documents show. Says which commands were skipped for want of a program. Commands
/// that take minutes are run if there is time for them.
fn play(commands: Vec<Shown>, has_time: bool) {
    let mut failures = Vec::new();
    let mut scenes: BTreeMap<String, Scene> = BTreeMap::new();
    for shown in commands {
        if let Some(tool) = missing(&shown) {
            let line = format!("skipped, it needs {tool}: {shown}\n");
            // The harness keeps back what `eprintln!` writes.
            drop(std::io::stderr().write_all(line.as_bytes()));
            continue;
        }
        let scene = scenes.entry(shown.document.clone());
        let scene = scene.or_insert_with(|| Scene::new(&shown.document));
        scene.has_time = has_time;
        if let Err(problem) = scene.act(&shown) {
            failures.push(format!("{shown} {problem}"));
        }
    }
    for (document, scene) in &mut scenes {
        if let Err(problem) = scene.end() {
            failures.push(format!("{document}: {problem}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_command_that_a_document_shows_runs_or_says_why_it_is_not_run() {
    play(commands(), false);
}

/// `.ci/documents-check` has them.
#[test]
#[ignore = "needs the programs that commands call, see .ci/documents-check"]
fn no_command_is_skipped_for_want_of_a_program() {
    let needs = |shown: &Shown| {
        let tools = rule_of(&shown.command).map_or(&[][..], Rule::tools);
        !tools.is_empty()
    };
    let commands = commands();
    let of_tools: Vec<_> = commands.iter().filter(|shown| needs(shown)).collect();
    let missing: Vec<_> = of_tools.iter().filter_map(|shown| missing(shown)).collect();
    assert_eq!(missing, [""; 0], "this machine lacks them");
    let documents: Vec<_> = of_tools
        .iter()
        .map(|shown| shown.document.clone())
        .collect();
    // Other documents make the parameters of these.
    let make = "cuzk params generate --kind winning-post --sector-size 2KiB";
    let made = scene::run(make, &repository());
    assert!(made.status.success(), "{made:?}");
    let of_them = |shown: &Shown| documents.contains(&shown.document);
    play(commands.into_iter().filter(of_them).collect(), false);
}

/// Runs the documents that have such commands.
#[test]
#[ignore = "takes many minutes, see .ci/nightly"]
fn commands_that_take_minutes_do_what_the_documents_say() {
    let is_long = |shown: &&Shown| matches!(rule_of(&shown.command), Some(Rule::Long(_)));
    let commands = commands();
    let long = commands.iter().filter(is_long);
    let documents: Vec<_> = long.map(|shown| shown.document.clone()).collect();
    let of_them = |shown: &Shown| documents.contains(&shown.document);
    play(commands.into_iter().filter(of_them).collect(), true);
}

fn is_run(shown: &&Shown) -> bool {
    let rule = rule_of(&shown.command);
    !matches!(rule, Some(Rule::NotRun(_) | Rule::Long(_)))
}

/// A shown output is compared if its command is run.
#[test]
fn the_output_of_a_first_proof_and_of_a_plan_is_shown_and_compared() {
    let commands = commands();
    let compared = commands.iter().filter(|shown| !shown.prints.is_empty());
    let compared: Vec<_> = compared.filter(is_run).collect();
    for document in ["README.md", "docs/plan.md", "docs/seed.md"] {
        let is_there = compared.iter().any(|shown| shown.document == document);
        assert!(is_there, "no output in {document} is compared");
    }
}

/// The commands that are not run are few enough to be read.
#[test]
fn most_commands_around_a_first_proof_and_a_daemon_are_run() {
    let commands = commands();
    let run: Vec<_> = commands.iter().filter(is_run).collect();
    for document in ["README.md", "docs/command-line.md", "docs/daemon.md"] {
        let is_there = run.iter().any(|shown| shown.document == document);
        assert!(is_there, "no command of {document} is run");
    }
    assert!(run.len() > 70, "only {} commands are run", run.len());
}

/// A reason may name a script or a test that does the same. Then a run of CI has the script, and the
/// test is there.
#[test]
fn every_rule_is_of_a_command_that_is_shown_and_has_a_reason() {
    let commands = commands();
    let read = |name: &str| std::fs::read_to_string(repository().join(name)).unwrap();
    let runs = [".ci/run", ".ci/nightly"].map(read).concat();
    for (beginning, rule) in RULES {
        // That of an earlier rule would never meet this one.
        let is_used =
            |shown: &Shown| rule_of(&shown.command).is_some_and(|of| std::ptr::eq(of, rule));
        assert!(
            commands.iter().any(is_used),
            "no document shows {beginning}"
        );
        if let Rule::NotRun(reason) | Rule::Long(reason) = rule {
            assert!(reason.len() > 10, "{beginning}");
            let words = reason.split([' ', ',', ';']);
            for test in words.clone().filter(|word| word.ends_with(".rs")) {
                assert!(repository().join(test).is_file(), "{beginning}: {test}");
            }
            for script in words.filter(|word| word.starts_with(".ci/")) {
                let is_there = repository().join(script).is_file();
                let is_run = runs.contains(script) || [".ci/run", ".ci/nightly"].contains(&script);
                assert!(is_there && is_run, "{beginning}: {script}");
            }
        }
    }
}

/// A run of tests of which none has the name passes, too.
#[test]
fn scripts_choose_each_test_that_is_ignored() {
    let read = |name: &str| std::fs::read_to_string(repository().join(name)).unwrap();
    let scripts = [".ci/documents-check", ".ci/nightly"].map(read).concat();
    let chosen = scripts.split("--test documents -- --ignored ").skip(1);
    let chosen = chosen.filter_map(|rest| rest.split_whitespace().next());
    let chosen: Vec<_> = chosen.collect();
    let ignored = include_str!("main.rs").split(concat!("#[", "ignore"));
    let ignored = ignored
        .skip(1)
        .filter_map(|rest| rest.split("\nfn ").nth(1));
    for test in ignored {
        let name = test.split('(').next().unwrap_or_default();
        let is_chosen = chosen.iter().any(|part| name.contains(part));
        assert!(is_chosen, "no script runs {name}");
    }
    assert_eq!(chosen.len(), 2);
}
