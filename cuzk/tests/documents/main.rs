//! The commands that the documents show do what the documents say, and print what they show. Each
//! is run, or is in a table with the reason why not.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

mod blocks;
mod daemon;
mod rules;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use blocks::{Shown, difference, shown_in};
use daemon::{Daemon, placed};
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

/// Returns a folder with links to the parameters and the circuits that are there. A daemon makes
/// multiples beside the parameters, and other tests expect none there.
fn linked_cache(folder: &Path) -> PathBuf {
    let cache = folder.join("parameters");
    std::fs::create_dir_all(&cache).unwrap();
    for entry in std::fs::read_dir(param_cache()).unwrap() {
        let path = entry.unwrap().path();
        let link = cache.join(path.file_name().unwrap());
        let extension = path.extension().and_then(|last| last.to_str());
        if matches!(extension, Some("params" | "vk" | "circuit")) && !link.exists() {
            std::os::unix::fs::symlink(path, link).unwrap();
        }
    }
    cache
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

/// Adds the environment in which a command of a document runs.
fn prepare<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let program = Path::new(env!("CARGO_BIN_EXE_cuzk")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    command
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.display()))
        .env("FIL_PROOFS_PARAMETER_CACHE", param_cache())
        .env_remove("IPFS_GATEWAY")
}

/// Returns the name of the variable that a command sets, if it only does that.
fn variable(command: &str) -> Option<&str> {
    let command = command.strip_prefix("export ").unwrap_or(command);
    let (name, _) = command.split_once('=')?;
    let is_name = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
    name.chars().all(is_name).then_some(name)
}

/// Runs a command in the folder. Variables that earlier commands of the document set are set.
fn run(command: &str, folder: &Path) -> Output {
    let keep = variable(command).map(|name| format!("declare -p {name} >> .variables"));
    let keep = keep.unwrap_or_default();
    let script = format!("[ ! -e .variables ] || . ./.variables\n{command}\n{keep}");
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &script]);
    prepare(&mut shell, folder).output().unwrap()
}

/// Returns true if the machine has a program.
fn has(tool: &str) -> bool {
    let command = format!("command -v {tool}");
    let looked = Command::new("bash").args(["-c", &command]).output();
    looked.is_ok_and(|output| output.status.success())
}

/// Says that a command is skipped if the machine lacks one of its programs, and returns true then.
fn is_skipped(shown: &Shown, tools: &[&str]) -> bool {
    let Some(tool) = tools.iter().find(|tool| !has(tool)) else {
        return false;
    };
    let line = format!("skipped, it needs {tool}: {shown}\n");
    // The harness keeps back what `eprintln!` writes.
    drop(std::io::stderr().write_all(line.as_bytes()));
    true
}

/// The place in which the commands of one document run. A block's later commands use the files of
/// its earlier ones, and so do the blocks of a document.
struct Scene {
    folder: tempfile::TempDir,
    daemon: Option<Daemon>,
    /// The block of the last command, and all that its commands printed.
    printed: (usize, String),
}

impl Scene {
    /// Starts the daemon of this command, or that of other documents, and ends the one before.
    fn serve(&mut self, command: Option<&str>) -> Result<(), String> {
        let ended = self.end();
        let folder = self.folder.path();
        self.daemon = Some(Daemon::start(command, folder, |shell| {
            prepare(shell, folder).env("FIL_PROOFS_PARAMETER_CACHE", linked_cache(folder))
        }));
        ended
    }

    fn end(&mut self) -> Result<(), String> {
        match self.daemon.take().map(Daemon::stop) {
            None | Some(Some(0)) => Ok(()),
            Some(code) => Err(format!("a daemon ended with {code:?}")),
        }
    }

    /// Does what a document shows.
    fn act(&mut self, shown: &Shown) -> Result<(), String> {
        let exit_codes = match rule_of(&shown.command) {
            Some(Rule::NotRun(_)) => return Ok(()),
            Some(Rule::Serves) => return self.serve(Some(&shown.command)),
            Some(Rule::Needs(tool)) => {
                if is_skipped(shown, &[tool]) {
                    return Ok(());
                }
                &[0][..]
            }
            Some(Rule::Calls(tools)) => {
                if is_skipped(shown, tools) {
                    return Ok(());
                }
                if self.daemon.is_none() {
                    self.serve(None)?;
                }
                &[0][..]
            }
            Some(Rule::Ends(codes)) => *codes,
            None => &[0][..],
        };
        let folder = self.folder.path();
        let command = placed(&shown.command, folder, self.daemon.as_ref());
        let output = run(&command, folder);
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let code = output.status.code();
        if !code.is_some_and(|code| exit_codes.contains(&code)) {
            return Err(format!("ended with {code:?}:\n{stdout}{stderr}"));
        }
        if self.printed.0 != shown.block {
            self.printed = (shown.block, String::new());
        }
        self.printed.1.push_str(&stdout);
        difference(&shown.prints, &self.printed.1).map_or(Ok(()), Err)
    }
}

#[test]
fn every_command_that_a_document_shows_runs_or_says_why_it_is_not_run() {
    let mut failures = Vec::new();
    let mut scenes: BTreeMap<String, Scene> = BTreeMap::new();
    for shown in commands() {
        let scene = scenes.entry(shown.document.clone());
        let scene = scene.or_insert_with(|| Scene {
            folder: scratch(),
            daemon: None,
            printed: (0, String::new()),
        });
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

/// A shown output is compared if its command is run.
#[test]
fn the_output_of_a_first_proof_and_of_a_plan_is_shown_and_compared() {
    let is_run = |shown: &&Shown| !matches!(rule_of(&shown.command), Some(Rule::NotRun(_)));
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
    let is_run = |shown: &&Shown| !matches!(rule_of(&shown.command), Some(Rule::NotRun(_)));
    let commands = commands();
    let run: Vec<_> = commands.iter().filter(is_run).collect();
    for document in ["README.md", "docs/command-line.md", "docs/daemon.md"] {
        let is_there = run.iter().any(|shown| shown.document == document);
        assert!(is_there, "no command of {document} is run");
    }
    assert!(run.len() > 35, "only {} commands are run", run.len());
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
