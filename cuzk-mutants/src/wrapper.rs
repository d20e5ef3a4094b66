//! The compiler, as Cargo calls it during a build with mutants (`RUSTC_WRAPPER`).
//!
//! The crates of other packages are compiled as ever, if the mutated package or its tests need them. The
//! mutated package is compiled from the tree with mutants, and is not optimised much. Every other crate
//! of the workspace keeps what an ordinary build has made of it. Cargo calls for each of them, since
//! they depend on the mutated one. An empty file takes the place of what has not been built.
//!
//! Cargo gives the crates of all others the same features as in an ordinary build only if it builds for
//! the whole workspace. This is why the wrapper exists.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::packages::Package;

/// The variable that makes the program a compiler. It has an [`Order`] as JSON.
pub const ORDER: &str = "CUZK_MUTANTS_ORDER";

/// The crates that are to be compiled, and their sources.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The folder of the workspace.
    pub top: PathBuf,
    /// The folder with the mutated sources: a workspace of the same form.
    pub tree: PathBuf,
    /// The mutated package.
    pub package: String,
    /// The members that are compiled if they have changed.
    pub needed: Vec<String>,
    /// A crate needs the package's library: a test in its own file, or one between.
    pub needs_library: bool,
}

impl Order {
    /// Returns the order to build a package's tests.
    #[must_use]
    pub fn of(package: &Package, top: &Path, tree: &Path) -> Self {
        Self {
            top: top.to_owned(),
            tree: tree.to_owned(),
            package: package.name.clone(),
            needed: package.needed.iter().cloned().collect(),
            needs_library: !package.tests.is_empty() || package.needed.contains(&package.name),
        }
    }
}

/// A call of the compiler.
struct Call {
    arguments: Vec<String>,
    crate_name: String,
    is_test: bool,
}

/// The answer to a call.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Compile,
    CompileMutated,
    Keep,
}

impl Call {
    fn new(arguments: Vec<String>) -> Self {
        let after = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name);
            at.and_then(|at| arguments.get(at + 1))
                .cloned()
                .unwrap_or_default()
        };
        Self {
            crate_name: after("--crate-name"),
            is_test: arguments.iter().any(|argument| argument == "--test"),
            arguments,
        }
    }

    /// `package` is the member of the workspace that the crate belongs to.
    fn answer(&self, order: &Order, package: Option<&str>) -> Answer {
        let Some(package) = package.filter(|_| !self.crate_name.starts_with("build_script_"))
        else {
            return Answer::Compile;
        };
        if package == order.package {
            if self.is_test || order.needs_library {
                Answer::CompileMutated
            } else {
                Answer::Keep
            }
        } else if !self.is_test && order.needed.iter().any(|needed| needed == package) {
            Answer::Compile
        } else {
            Answer::Keep
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.arguments.windows(2);
        pairs.find_map(|pair| match pair {
            [option, value] if option == name => Some(&**value),
            [option, value] if option == "-C" => value.strip_prefix(name)?.strip_prefix('='),
            _ => None,
        })
    }

    /// Returns the files that the compiler makes, as far as Cargo asks for them.
    fn outputs(&self) -> Vec<PathBuf> {
        let (Some(folder), Some(end)) = (self.value("--out-dir"), self.value("extra-filename"))
        else {
            return Vec::new();
        };
        let folder = Path::new(folder);
        let name = format!("{}{end}", self.crate_name);
        let mut files = vec![folder.join(format!("{name}.d"))];
        let kinds = self.arguments.windows(2).filter_map(|pair| match pair {
            [option, kind] if option == "--crate-type" => Some(&**kind),
            _ => None,
        });
        for kind in kinds {
            let suffixes: &[&str] = match kind {
                "lib" | "rlib" => &["rmeta", "rlib"],
                "cdylib" | "dylib" | "proc-macro" => &["so"],
                "staticlib" => &["a"],
                _ => continue,
            };
            files.extend(
                suffixes
                    .iter()
                    .map(|end| folder.join(format!("lib{name}.{end}"))),
            );
        }
        if files.len() == 1 {
            files.push(folder.join(name));
        }
        files
    }

    /// Returns the arguments for the mutated sources.
    fn mutated(&self, order: &Order) -> Vec<String> {
        let source = |argument: &String| {
            let path = order.top.join(argument);
            let is_source = argument.ends_with(".rs") && !argument.starts_with('-');
            let within = path.strip_prefix(&order.top).ok().filter(|_| is_source);
            match within {
                Some(path) => order.tree.join(path).to_string_lossy().into_owned(),
                None if argument == "opt-level=3" => "opt-level=1".to_owned(),
                None => argument.clone(),
            }
        };
        let mut arguments: Vec<_> = self.arguments.iter().map(source).collect();
        arguments.extend(["--cap-lints".to_owned(), "allow".to_owned()]);
        arguments
    }
}

/// Answers a call of Cargo's: the compiler, and its arguments.
///
/// # Errors
/// The order does not parse, a file cannot be written, or the compiler cannot be started.
pub fn answer(order: &str, arguments: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    let order: Order = serde_json::from_str(order).context(ORDER)?;
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let compiler = arguments.next().context("Cargo names no compiler")?;
    let call = Call::new(arguments.collect());
    let variables: BTreeMap<_, _> = std::env::vars().collect();
    let folder = variables.get("CARGO_MANIFEST_DIR").map(Path::new);
    let member = folder.and_then(|folder| folder.strip_prefix(&order.top).ok()?.to_str());
    let answer = call.answer(&order, member);
    let outputs = call.outputs();
    let mut command = Command::new(compiler);
    if answer == Answer::Keep {
        for path in outputs.iter().filter(|path| !path.exists()) {
            fs::write(path, "").with_context(|| path.display().to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for path in outputs.iter().filter(|path| path.exists()) {
        fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    if answer == Answer::CompileMutated {
        command.args(call.mutated(&order));
        command.env("CARGO_MANIFEST_DIR", order.tree.join(&order.package));
    } else {
        command.args(&call.arguments);
    }
    Err(command.exec()).context("the compiler cannot be started")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Call {
        Call::new(line.split(' ').map(str::to_owned).collect())
    }

    fn order() -> Order {
        Order {
            top: "/top".into(),
            tree: "/tree".into(),
            package: "cuzk-a".to_owned(),
            needed: vec!["cuzk-b".to_owned()],
            needs_library: false,
        }
    }

    #[test]
    fn a_crate_is_compiled_if_the_tests_need_it() {
        let library = call("--crate-name x --crate-type lib");
        let test = call("--crate-name x --test");
        assert_eq!(library.answer(&order(), None), Answer::Compile);
        assert_eq!(library.answer(&order(), Some("cuzk-a")), Answer::Keep);
        assert_eq!(
            test.answer(&order(), Some("cuzk-a")),
            Answer::CompileMutated
        );
        assert_eq!(library.answer(&order(), Some("cuzk-b")), Answer::Compile);
        assert_eq!(test.answer(&order(), Some("cuzk-b")), Answer::Keep);
        assert_eq!(library.answer(&order(), Some("cuzk-c")), Answer::Keep);
        let build = call("--crate-name build_script_build --crate-type bin");
        assert_eq!(build.answer(&order(), Some("cuzk-c")), Answer::Compile);
    }

    #[test]
    fn the_mutated_sources_take_the_place_of_the_others() {
        let call = call("--crate-name cuzk_a cuzk-a/src/lib.rs -C opt-level=3 --out-dir /o");
        assert_eq!(
            call.mutated(&order()).join(" "),
            "--crate-name cuzk_a /tree/cuzk-a/src/lib.rs -C opt-level=1 --out-dir /o --cap-lints allow"
        );
    }

    #[test]
    fn the_files_of_a_call_are_known() {
        let names = |line: &str| {
            let paths = call(line).outputs();
            let names = paths.iter().map(|path| path.to_str().unwrap().to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names("--crate-name x --crate-type lib -C extra-filename=-1 --out-dir /o"),
            "/o/x-1.d /o/libx-1.rmeta /o/libx-1.rlib"
        );
        assert_eq!(
            names("--crate-name x --test -C extra-filename=-1 --out-dir /o"),
            "/o/x-1.d /o/x-1"
        );
        assert_eq!(names("-vV"), "");
    }
}
