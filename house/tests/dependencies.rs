//! The `[dependencies]` that the documents show. They are those that the programs on the same page
//! need, with the versions and features of this workspace.
//!
//! It does not build them as a crate of its own; `.ci/embed-check` does that.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test fails the test"
)]

use std::collections::BTreeSet;
use std::path::Path;

use house::imports::Imports;
use house::sources::Sources as _;
use house::workspace::{members, top};
use toml::{Table, Value};

const PAGES: [&str; 4] = [
    "README.md",
    "docs/aggregation.md",
    "docs/any-circuit.md",
    "docs/embedding.md",
];

/// Crates that need no line.
const BUILT_IN: [&str; 2] = ["core", "std"];

fn page(name: &str) -> String {
    top().text(Path::new(name)).unwrap()
}

fn manifest(folder: &str) -> Table {
    let text = page(&format!("{folder}/Cargo.toml"));
    text.parse().unwrap()
}

/// Returns the blocks of a language on a page.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let begin = format!("\n```{language}\n");
    let block = |rest: &str| rest.split_once("\n```").unwrap().0.to_owned();
    text.split(&begin).skip(1).map(block).collect()
}

/// Returns the lines of the block of dependencies.
fn shown(text: &str) -> Vec<String> {
    let blocks = blocks(text, "toml");
    let block = blocks
        .iter()
        .find_map(|block| block.strip_prefix("[dependencies]\n"));
    block.unwrap().lines().map(str::to_owned).collect()
}

fn dependencies(lines: &[String]) -> Table {
    lines.join("\n").parse().unwrap()
}

/// Returns the crates that a program names.
fn crates_of(program: &str) -> BTreeSet<String> {
    let whole = |text: &str| syn::parse_file(text).map(|file| file.items);
    let items = whole(program)
        .or_else(|_| whole(&format!("fn main() {{ {program} }}")))
        .unwrap();
    let found = Imports::of(&items);
    let imported: BTreeSet<_> = found.imports.iter().map(|(name, _)| name.clone()).collect();
    let paths = found.imports.iter().map(|(_, path)| path);
    let roots = paths.chain(&found.paths).map(|path| path[0].clone());
    // Types begin with a large letter, and what was imported stands for its crate.
    let is_crate = |name: &String| name.starts_with(|first: char| first.is_ascii_lowercase());
    let roots = roots.filter(is_crate);
    let of_paths: BTreeSet<_> = found
        .imports
        .iter()
        .map(|(_, path)| path[0].clone())
        .collect();
    roots
        .filter(|name| of_paths.contains(name) || !imported.contains(name))
        .collect()
}

/// Returns the features that a line names, in its comment, too.
fn features(line: &str) -> Vec<String> {
    let lists = line.split("features = [").skip(1);
    let list = |rest: &str| rest.split(']').next().unwrap().to_owned();
    let words = lists.map(list).collect::<Vec<_>>().join(",");
    let words = words.split(',').map(|word| word.trim().trim_matches('"'));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns a dependency as a table: `"0.7"` is `{ version = "0.7" }`.
fn as_table(value: &Value) -> Table {
    match value {
        Value::String(version) => {
            Table::from_iter([("version".to_owned(), Value::String(version.clone()))])
        }
        Value::Table(table) => table.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn programs_need_the_crates_that_their_page_shows() {
    for name in PAGES {
        let text = page(name);
        let needed: BTreeSet<_> = blocks(&text, "rust")
            .iter()
            .flat_map(|text| crates_of(text))
            .collect();
        let needed: BTreeSet<_> = needed
            .into_iter()
            .filter(|name| !BUILT_IN.contains(&name.as_str()))
            .collect();
        let shown = dependencies(&shown(&text));
        let shown: BTreeSet<_> = shown.keys().map(|name| name.replace('-', "_")).collect();
        assert_eq!(
            shown, needed,
            "{name}: the crates of the block, and those of the programs"
        );
    }
}

#[test]
fn a_shown_crate_is_a_member_or_has_the_version_of_the_workspace() {
    let members = members(&top()).unwrap();
    let workspace = manifest(".");
    let workspace = workspace["workspace"]["dependencies"].as_table().unwrap();
    for name in PAGES {
        let lines = shown(&page(name));
        for (key, value) in dependencies(&lines) {
            let place = format!("{name}: {key}");
            let line = lines
                .iter()
                .find(|line| line.starts_with(&format!("{key} ")));
            let features = features(line.unwrap());
            let value = as_table(&value);
            let Some(path) = value.get("path") else {
                let ours = as_table(&workspace[&key]);
                for of in ["version", "default-features"] {
                    assert_eq!(value.get(of), ours.get(of), "{place}: {of}");
                }
                let known = ours.get("features").and_then(Value::as_array);
                let known = |feature: &String| {
                    let mut all = known.into_iter().flatten().filter_map(Value::as_str);
                    all.any(|other| other == feature)
                };
                assert!(features.iter().all(known), "{place}: {features:?}");
                continue;
            };
            let folder = path.as_str().unwrap().strip_prefix("cuzk/").unwrap();
            let member = members.iter().find(|member| member.name == key).unwrap();
            assert_eq!(member.folder, Path::new(folder), "{place}");
            assert!(!member.is_for_development, "{place}");
            let known = manifest(folder);
            let known = known.get("features").and_then(Value::as_table);
            let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
            assert!(features.iter().all(is_known), "{place}: {features:?}");
        }
    }
}

#[test]
fn crates_are_found_in_imports_and_paths() {
    let program = "use a::{B, c}; use std::fs;\nlet x: B = c::d()?; e::f(fs::g(), Self::h());";
    let found: Vec<_> = crates_of(program).into_iter().collect();
    assert_eq!(found, ["a", "e", "std"]);
    assert_eq!(
        features(r#"a = { path = "b" }   # features = ["c", "d"]"#),
        ["c", "d"]
    );
}
