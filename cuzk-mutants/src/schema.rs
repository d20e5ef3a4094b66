//! A build with mutants, without those that do not compile.
//!
//! The compiler says where it fails. The mutants there are taken out, and it runs once more, until it
//! succeeds. Most rounds end before the compiler makes code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::packages::Package;
use crate::render::{Rendered, render};
use crate::sites::{Site, keys};
use crate::walk::sites;
use crate::wrapper::{ORDER, Order};
use crate::{runtime, target, tree};

/// The compiler names errors of one phase at a time.
const ROUNDS_MAX: usize = 24;

/// A change of a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutant {
    /// Its number in the build.
    pub number: u32,
    /// `FILE: NAME @ TEXT`.
    pub key: String,
    /// The lines that it is about.
    pub lines: RangeInclusive<usize>,
    /// The byte of its file where its function begins.
    pub function: usize,
    /// It is part of the build.
    pub compiles: bool,
}

impl Mutant {
    /// Returns the file that it is in.
    #[must_use]
    pub fn file(&self) -> &str {
        self.key.split_once(": ").map_or("", |(file, _)| file)
    }
}

/// The sources of a package, with the places that have mutants.
pub struct Sources {
    files: BTreeMap<String, (String, Vec<Site>)>,
    root: String,
    /// The mutants, in the order of their numbers.
    pub mutants: Vec<Mutant>,
    /// The numbers by file, site and change.
    numbers: BTreeMap<String, Vec<Vec<Option<u32>>>>,
}

impl Sources {
    /// Reads the sources of a package. The mutants are those that `is_chosen` likes.
    ///
    /// # Errors
    /// A source cannot be read.
    pub fn read(top: &Path, package: &str, is_chosen: impl Fn(&Mutant) -> bool) -> Result<Self> {
        let paths = tree::sources(top, package)?;
        let mut read = Self {
            root: paths
                .first()
                .map(|path| path.display().to_string())
                .unwrap_or_default(),
            files: BTreeMap::new(),
            mutants: Vec::new(),
            numbers: BTreeMap::new(),
        };
        for path in paths {
            let text =
                fs::read_to_string(top.join(&path)).with_context(|| path.display().to_string())?;
            let found = sites(&text).with_context(|| path.display().to_string())?;
            let file = path.display().to_string();
            let mut of_file = Vec::new();
            for (site, keys) in found.iter().zip(keys(&text, &found)) {
                let mutant = |key| Mutant {
                    number: 0,
                    key: format!("{file}: {key}"),
                    lines: site.lines.clone(),
                    function: site.function.start,
                    compiles: true,
                };
                let mutants = keys.into_iter().map(mutant);
                of_file.push(mutants.map(|mutant| read.add(mutant, &is_chosen)).collect());
            }
            read.numbers.insert(file.clone(), of_file);
            read.files.insert(file, (text, found));
        }
        Ok(read)
    }

    /// Gives a mutant a number if it is chosen.
    fn add(&mut self, mutant: Mutant, is_chosen: impl Fn(&Mutant) -> bool) -> Option<u32> {
        let number = u32::try_from(self.mutants.len()).ok()? + 1;
        is_chosen(&mutant).then(|| {
            self.mutants.push(Mutant { number, ..mutant });
            number
        })
    }

    /// Takes a mutant out of the build.
    fn drop_mutant(&mut self, number: u32) {
        for mutant in self
            .mutants
            .iter_mut()
            .filter(|mutant| mutant.number == number)
        {
            mutant.compiles = false;
        }
        let all = self.numbers.values_mut().flatten().flatten();
        all.filter(|one| **one == Some(number))
            .for_each(|one| *one = None);
    }

    /// Writes the sources with their mutants into the tree.
    fn write(&self, tree: &Path) -> Result<BTreeMap<String, Rendered>> {
        let mut all = BTreeMap::new();
        let most = u32::try_from(self.mutants.len()).context("too many mutants")?;
        for (file, (text, sites)) in &self.files {
            let numbers = self
                .numbers
                .get(file)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let mut rendered = render(text, sites, numbers);
            if *file == self.root {
                rendered.text += &runtime::text(most);
            }
            fs::write(tree.join(file), &rendered.text).with_context(|| file.clone())?;
            all.insert(file.clone(), rendered);
        }
        Ok(all)
    }
}

/// Builds the tests of a package with its mutants. It returns the programs, and says in `sources` which
/// mutants do not compile.
///
/// # Errors
/// The compiler fails for another reason than a mutant.
pub fn build(
    top: &Path,
    folder: &Path,
    package: &Package,
    sources: &mut Sources,
) -> Result<Vec<PathBuf>> {
    let (tree, into) = (folder.join("tree"), folder.join("build"));
    tree::make(top, &tree, &package.name)?;
    target::copy(&top.join("target"), &into, &package.name)?;
    let order = serde_json::to_string(&Order::of(package, top, &tree))?;
    for _ in 0..ROUNDS_MAX {
        let rendered = sources.write(&tree)?;
        target::forget(&into, &package.name)?;
        let mut command = Command::new("cargo");
        command.args([
            "test",
            "--profile",
            target::PROFILE,
            "--locked",
            "--workspace",
            "--lib",
        ]);
        for test in &package.tests {
            command.args(["--test", test]);
        }
        command.args(["--no-run", "--message-format", "json"]);
        command
            .current_dir(top)
            .env(ORDER, &order)
            .env("CARGO_TARGET_DIR", &into);
        command.env(
            "RUSTC_WRAPPER",
            std::env::current_exe().context("the path of this program")?,
        );
        let log = folder.join("build-log");
        let said = fs::File::create(&log).with_context(|| log.display().to_string())?;
        let output = command.stderr(said).stdin(Stdio::null()).output();
        let output = output.context("cargo cannot be started")?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let messages: Vec<Value> = messages.collect();
        if output.status.success() {
            return Ok(programs(&messages, top, &package.name));
        }
        let failed = mutants_at(&messages, &tree, &rendered);
        if failed.is_empty() {
            bail!(
                "the build with mutants fails; see {}\n{}",
                log.display(),
                said_by(&messages)
            );
        }
        failed
            .into_iter()
            .for_each(|number| sources.drop_mutant(number));
    }
    bail!("the build with mutants does not succeed in {ROUNDS_MAX} rounds")
}

/// Returns the test programs of a package.
fn programs(messages: &[Value], top: &Path, package: &str) -> Vec<PathBuf> {
    let manifest = top.join(package).join("Cargo.toml");
    let of_tests = messages.iter().filter(|message| {
        let is_own = message["manifest_path"].as_str().map(Path::new) == Some(&manifest);
        is_own && message["profile"]["test"] == true
    });
    of_tests
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect()
}

fn errors(messages: &[Value]) -> impl Iterator<Item = &Value> {
    let of_compiler = messages
        .iter()
        .filter(|message| message["reason"] == "compiler-message");
    let messages = of_compiler.map(|message| &message["message"]);
    messages.filter(|message| message["level"] == "error")
}

/// Returns the first errors of the compiler.
fn said_by(messages: &[Value]) -> String {
    let said = errors(messages).filter_map(|error| error["rendered"].as_str());
    said.take(3).collect()
}

/// Returns the mutants where the compiler fails.
fn mutants_at(
    messages: &[Value],
    tree: &Path,
    rendered: &BTreeMap<String, Rendered>,
) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    for error in errors(messages) {
        let spans = error["spans"].as_array().into_iter().flatten();
        let primary = spans.filter(|span| span["is_primary"] == true);
        for span in primary.flat_map(expansions) {
            let file = span["file_name"].as_str().map(Path::new);
            let file = file.and_then(|file| file.strip_prefix(tree).ok()?.to_str());
            let bytes = bytes(span);
            if let (Some(source), Some(bytes)) = (file.and_then(|file| rendered.get(file)), bytes) {
                numbers.extend(source.at(&bytes));
            }
        }
    }
    numbers
}

/// Returns a span, and then those of the macros that it comes from, the outermost one last.
fn expansions(span: &Value) -> impl Iterator<Item = &Value> {
    iter::successors(Some(span), |span| span.get("expansion")?.get("span"))
}

fn bytes(span: &Value) -> Option<Range<usize>> {
    let byte = |name| usize::try_from(span.get(name)?.as_u64()?).ok();
    Some(byte("byte_start")?..byte("byte_end")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_span_within_a_macro_leads_to_its_call() {
        let call = json!({"file_name": "lib.rs", "expansion": null});
        let span = json!({"file_name": "vec.rs", "expansion": {"span": call}});
        let files = expansions(&span).map(|span| &span["file_name"]);
        assert_eq!(files.collect::<Vec<_>>(), ["vec.rs", "lib.rs"]);
    }
}
