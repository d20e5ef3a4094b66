//! Blocks of the documents that are no commands. Each has a line here with the test that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use cuzk_bounded::BoundedCommand;
use serde_json::Value;
use toml::Table;

use crate::blocks::blocks_in;
use crate::described::block;
use crate::place::HTTP;
use crate::scene::{Scene, prepare};
use crate::{blocks, commands, documents, repository};

const PROGRAMS: &str = "cuzk-core/tests/documents/programs.rs runs it";
const CLIENT: &str = "clients/go/readme_test.go and programs_test.go run them";
const DEPENDENCIES: &str = "a test below; .ci/embed-check builds with it";
const CURIO: &str = "a test below has the doctor read it";
const PRINTED: &str = "it is compared with what its commands print";
const PICTURE: &str = "it is a picture for people";

/// Documents, languages, how many blocks there are, and what tests them. The blocks of `sh` are in
/// [`crate::rules`].
const FRAGMENTS: &[(&str, &str, usize, &str)] = &[
    ("ARCHITECTURE.md", "text", 5, PICTURE),
    ("README.md", "rust", 1, PROGRAMS),
    ("README.md", "text", 1, PRINTED),
    ("README.md", "toml", 1, DEPENDENCIES),
    ("clients/go/README.md", "go", 3, CLIENT),
    (
        "docs/aggregation.md",
        "json",
        1,
        "a command of the page reads it",
    ),
    ("docs/aggregation.md", "rust", 1, PROGRAMS),
    ("docs/aggregation.md", "toml", 1, DEPENDENCIES),
    (
        "docs/any-circuit.md",
        "rust",
        2,
        "doc tests of cuzk-groth16; .ci/embed-check runs them alone",
    ),
    (
        "docs/any-circuit.md",
        "text",
        1,
        "a test below finds its words in the source of the error",
    ),
    ("docs/any-circuit.md", "toml", 1, DEPENDENCIES),
    (
        "docs/cluster.md",
        "json",
        1,
        "cuzk/tests/worker/proves.rs compares its keys with a worker's",
    ),
    (
        "docs/cluster.md",
        "text",
        1,
        "a test below finds its words in the source of the table",
    ),
    (
        "docs/cluster.md",
        "toml",
        2,
        "commands of the page and cuzk/tests/cluster/three.rs use them",
    ),
    ("docs/contributing.md", "text", 1, "it is of sentences"),
    (
        "docs/daemon.md",
        "toml",
        2,
        "a test below and commands of the page use them",
    ),
    (
        "docs/embedding.md",
        "python",
        1,
        "cuzk-python/tests/package.rs runs it",
    ),
    ("docs/embedding.md", "rust", 1, PROGRAMS),
    ("docs/embedding.md", "toml", 1, DEPENDENCIES),
    (
        "docs/http.md",
        "yaml",
        1,
        "a test below; .ci/alerts-check has promtool check it",
    ),
    ("docs/plan.md", "text", 1, PRINTED),
    ("docs/seed.md", "text", 1, PRINTED),
    (
        "docs/systemd.md",
        "ini",
        2,
        ".ci/systemd-check verifies them with the service",
    ),
    ("docs/systemd.md", "toml", 1, CURIO),
];

#[test]
fn every_block_of_a_document_has_a_test() {
    let documents = documents();
    let shown = documents
        .iter()
        .flat_map(|(name, text)| blocks_in(name, text));
    let mut counts = BTreeMap::new();
    for block in shown.filter(|block| block.language != "sh") {
        *counts.entry((block.document, block.language)).or_insert(0) += 1;
    }
    let known = FRAGMENTS.iter().map(|&(document, language, count, _)| {
        let of = (document.to_owned(), language.to_owned());
        (of, count)
    });
    assert_eq!(counts, known.collect());
    for (.., test) in FRAGMENTS {
        let words = test.split([' ', ';']);
        for file in words.filter(|word| word.contains('/')) {
            assert!(repository().join(file).is_file(), "{file} is not there");
        }
    }
}

/// A block of commands without a command would be one that the other tests do not see.
#[test]
fn every_block_of_commands_has_one() {
    let commands = commands();
    for block in blocks("sh") {
        let is_of =
            |line: usize| line > block.line && line <= block.line + block.text.lines().count();
        let mut of_document = commands
            .iter()
            .filter(|shown| shown.document == block.document);
        let has_one = of_document.any(|shown| is_of(shown.line));
        assert!(has_one, "{}:{}", block.document, block.line);
    }
}

/// The table tells outputs from other texts.
#[test]
fn printed_blocks_come_after_their_commands() {
    let commands = commands().into_iter();
    let with_output = commands.filter(|shown| !shown.prints.is_empty());
    let found: BTreeSet<_> = with_output.map(|shown| shown.document).collect();
    let told = FRAGMENTS.iter().filter(|(.., test)| *test == PRINTED);
    let told: BTreeSet<_> = told.map(|(document, ..)| (*document).to_owned()).collect();
    assert_eq!(found, told);
}

/// The packages of a block for Cargo are there. Those of the workspace have the features of the
/// comment. The others are of the version that the workspace has.
#[test]
fn dependencies_are_those_of_the_workspace() {
    let read = |path: &str| -> Table {
        let text = std::fs::read_to_string(repository().join(path));
        text.unwrap_or_else(|_| panic!("{path} is not there"))
            .parse()
            .unwrap()
    };
    let locked = read("Cargo.lock");
    let locked = locked["package"].as_array().unwrap();
    let mut found = 0;
    for block in blocks("toml") {
        let shown: Table = block.text.parse().unwrap();
        let Some(dependencies) = shown.get("dependencies") else {
            continue;
        };
        found += 1;
        for (name, told) in dependencies.as_table().unwrap() {
            if let Some(path) = told.get("path") {
                let path = path.as_str().unwrap().strip_prefix("cuzk/").unwrap();
                let package = read(&format!("{path}/Cargo.toml"));
                assert_eq!(package["package"]["name"].as_str(), Some(&name[..]));
                let line = block
                    .text
                    .lines()
                    .find(|line| line.starts_with(&format!("{name} =")));
                if let Some((_, features)) = line.unwrap().split_once("# features = ") {
                    let features: Table = format!("features = {features}").parse().unwrap();
                    for feature in features["features"].as_array().unwrap() {
                        let feature = feature.as_str().unwrap();
                        assert!(
                            package["features"].get(feature).is_some(),
                            "{name} {feature}"
                        );
                    }
                }
            } else {
                let version = told.get("version").unwrap_or(told).as_str().unwrap();
                let is_it = |package: &toml::Value| {
                    let has = package["version"].as_str().unwrap();
                    let is_version = has
                        .strip_prefix(version)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
                    package["name"].as_str() == Some(name) && is_version
                };
                assert!(locked.iter().any(is_it), "{name} {version}");
            }
        }
    }
    assert_eq!(found, 4);
}

/// Curio's section, and the other address of its comment, are those of a daemon's listeners.
#[test]
fn the_doctor_finds_nothing_wrong_in_the_section_for_curio() {
    let sections = blocks("toml")
        .into_iter()
        .filter(|block| block.text.contains("[Cuzk]"));
    let sections: Vec<_> = sections.map(|block| block.text).collect();
    assert_eq!(sections.len(), 2);
    let other = sections[0].replace("unix:///run/cuzk/cuzk.sock", "127.0.0.1:9820");
    assert!(sections[0].contains("or \"127.0.0.1:9820\""));
    let folder = tempfile::tempdir().unwrap();
    let listen = "[server]\nlisten = [\"unix:///run/cuzk/cuzk.sock\", \"tcp://127.0.0.1:9820\"]\n";
    std::fs::write(folder.path().join("cuzk.toml"), listen).unwrap();
    for section in sections.into_iter().chain([other]) {
        std::fs::write(folder.path().join("curio.toml"), &section).unwrap();
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_cuzk"));
        let arguments = [
            "--json",
            "--config",
            "cuzk.toml",
            "doctor",
            "--curio",
            "curio.toml",
        ];
        let output = prepare(doctor.args(arguments), folder.path())
            .output_bounded()
            .unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        let of_curio = found_about_curio(&report);
        assert_eq!(of_curio, ["ok"; 3], "{section}{report}");
    }
}

/// Returns the levels of the findings about Curio.
fn found_about_curio(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of_curio = findings
        .iter()
        .filter(|finding| finding["topic"] == "curio");
    let levels = of_curio.map(|finding| finding["level"].as_str().unwrap().to_owned());
    levels.collect()
}

/// Prometheus reads `/metrics` of a target, unless its configuration names another path.
#[test]
fn prometheus_finds_metrics_where_the_page_says() {
    let block = block("docs/http.md", "yaml", "scrape_configs");
    assert!(
        block.text.contains(&format!("- targets: [\"{HTTP}\"]")),
        "{}",
        block.text
    );
    assert!(!block.text.contains("metrics_path"));
    let mut scene = Scene::new("docs/http.md");
    scene.serve("cuzk serve").unwrap();
    let address = scene.http();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(
        reply.starts_with("HTTP/1.1 200 ") && reply.contains("\ncuzk_build_info{"),
        "{reply}"
    );
    scene.end().unwrap();
    // The daemon listens there without a configuration, too.
    let mut init = Command::new(env!("CARGO_BIN_EXE_cuzk"));
    let output = init.args(["config", "init"]).output_bounded().unwrap();
    let file: Table = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    assert_eq!(file["server"]["http"].as_str(), Some(HTTP));
}

/// An output that no command of its page prints has the words of the source.
#[test]
fn shown_texts_have_the_words_of_their_sources() {
    let source = |path: &str| {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace("\\ ", "")
    };
    let shown = |document: &str, has: &str| {
        let text = block(document, "text", has).text;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let error = shown("docs/any-circuit.md", "this circuit is not");
    let words = source("cuzk-groth16/src/prover/error.rs");
    for part in [
        "this circuit is not ",
        " as it was compiled: ",
        "; rows must not depend on the witness",
    ] {
        assert!(error.contains(part) && words.contains(part), "{part}");
    }
    let table = block("docs/cluster.md", "text", "NODE").text;
    let header = table.lines().find(|line| line.starts_with("NODE")).unwrap();
    let header = header.split_whitespace().map(|word| format!("\"{word}\""));
    let words = source("cuzk/src/commands/fleet.rs");
    assert!(
        words.contains(&header.collect::<Vec<_>>().join(", ")),
        "{table}"
    );
    assert!(
        table.starts_with("cluster: connected to nats://") && table.contains("partitions are open")
    );
    assert!(words.contains("\"cluster: {state}; {open} partitions are open\""));
    assert!(words.contains("\"connected to {servers}\""));
}
