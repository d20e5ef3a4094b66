//! The examples are built by `cargo test`, so that `.ci/examples-check` has programs to run.
//!
//! It does not run them.

#![allow(clippy::unwrap_used, reason = "a failure in a test fails the test")]

use house::sources::Sources as _;
use house::workspace::{members, top};
use toml::{Table, Value};

/// Lists the examples of a manifest that `cargo test` builds as tests of them. It does not build
/// their programs then.
fn without_program(manifest: &str) -> Vec<String> {
    let manifest: Table = manifest.parse().unwrap();
    let examples = manifest.get("example").and_then(Value::as_array);
    examples
        .into_iter()
        .flatten()
        .filter(|example| example.get("test").and_then(Value::as_bool) == Some(true))
        .map(|example| example["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_tests_build_the_program_of_each_example() {
    for member in members(&top()).unwrap() {
        let manifest = top().text(&member.folder.join("Cargo.toml")).unwrap();
        assert_eq!(without_program(&manifest), [""; 0], "{}", member.name);
    }
}

#[test]
fn an_example_that_is_a_test_has_no_program() {
    let manifest = "[[example]]\nname = \"a\"\ntest = true\n[[example]]\nname = \"b\"\n";
    assert_eq!(without_program(manifest), ["a"]);
}
