//! Files, functions and types have limits. Committed lists have the exceptions.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use house::exceptions::Exceptions;
use house::functions::{Function, functions, lines_in_tests};
use house::impls::{OwnImpl, own_impls};
use house::modules::Crate;
use house::sources::Sources;
use house::workspace::{members, source_files, top};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 60;
const TEST_LINES_MAX: usize = 80;
const ENGINE_METHODS_MAX: usize = 25;

/// bindgen writes it.
const GENERATED: [&str; 1] = ["supraseal-sys/src/bindings.rs"];

/// Figures of the sources, tests apart where a field does not say otherwise.
struct Measured {
    /// The lines of each file.
    files: BTreeMap<String, usize>,
    /// The functions of each file, those of tests included.
    functions: Vec<(String, Function)>,
    impls: Vec<OwnImpl>,
}

static MEASURED: LazyLock<Measured> = LazyLock::new(measure);

fn measure() -> Measured {
    let top = top();
    let mut impls = Vec::new();
    let mut in_tests = BTreeSet::new();
    for member in members(&top).unwrap() {
        for root in member.roots(&top) {
            let modules = Crate::read(&member.name, &root, &top).unwrap();
            impls.extend(own_impls(&modules));
            let tests = modules.modules.iter().filter(|m| m.conditions.needs_test());
            let own_files = tests.filter(|m| modules.modules[m.parent].file != m.file);
            in_tests.extend(own_files.map(|module| module.file.clone()));
        }
    }
    let mut measured = Measured {
        files: BTreeMap::new(),
        functions: Vec::new(),
        impls,
    };
    for path in source_files(&top).unwrap() {
        let text = top.text(&path).unwrap();
        let is_test = in_tests.contains(&path) || path.iter().any(|part| part == "tests");
        measured.add(&path, &text, is_test);
    }
    measured
}

impl Measured {
    fn add(&mut self, path: &Path, text: &str, is_test: bool) {
        let name = path.to_str().unwrap().to_owned();
        if GENERATED.contains(&name.as_str()) {
            return;
        }
        let mut lines = text.lines().count();
        if path.extension().unwrap() == "rs" {
            let file = syn::parse_file(text).unwrap();
            lines -= lines_in_tests(&file);
            for mut function in functions(&file) {
                function.is_in_tests |= is_test;
                self.functions.push((name.clone(), function));
            }
        }
        if !is_test {
            self.files.insert(name, lines);
        }
    }
}

fn check(list: &str, limit: usize, measured: &BTreeMap<String, usize>) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(list);
    let text = fs::read_to_string(path).unwrap();
    let exceptions = Exceptions::parse(&format!("house/{list}"), &text).unwrap();
    let violations = exceptions.violations(limit, measured);
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn a_file_has_at_most_400_lines() {
    check("large-files.txt", FILE_LINES_MAX, &MEASURED.files);
}

/// Returns the lines of the chosen functions. Two of one name, as `#[cfg]`s make them, count
/// as the longer one.
fn longest(choose: impl Fn(&Function) -> bool) -> BTreeMap<String, usize> {
    let mut longest = BTreeMap::new();
    for (file, function) in MEASURED.functions.iter().filter(|(_, f)| choose(f)) {
        let name = format!("{file} {}", function.name);
        let lines = longest.entry(name).or_insert(0);
        *lines = function.lines.max(*lines);
    }
    longest
}

#[test]
fn a_function_fits_a_screen() {
    let functions = longest(|function| !function.is_in_tests);
    check("long-functions.txt", FUNCTION_LINES_MAX, &functions);
}

#[test]
fn a_test_has_at_most_80_lines() {
    let tests = longest(|function| function.is_test);
    check("long-tests.txt", TEST_LINES_MAX, &tests);
}

#[test]
fn a_type_of_the_engine_has_at_most_25_methods() {
    let mut methods: BTreeMap<&str, usize> = BTreeMap::new();
    let of_engine = |i: &&OwnImpl| i.file.starts_with("cuzk-core/src/engine");
    for own in MEASURED.impls.iter().filter(of_engine) {
        *methods.entry(&own.type_path).or_default() += own.methods;
    }
    assert!(!methods.is_empty(), "no impl in cuzk-core/src/engine");
    methods.retain(|_, count| *count > ENGINE_METHODS_MAX);
    assert!(methods.is_empty(), "divide these types: {methods:?}");
}

#[test]
fn the_methods_of_a_type_are_in_one_file() {
    let mut files: BTreeMap<String, BTreeSet<&Path>> = BTreeMap::new();
    for own in &MEASURED.impls {
        files
            .entry(own.type_path.clone())
            .or_default()
            .insert(&own.file);
    }
    let counts = files.into_iter().map(|(path, files)| (path, files.len()));
    check("split-impls.txt", 1, &counts.collect());
}
