//! The programs and configurations that the documents show. Each program in Rust stands here as a
//! function, is run, and is compared with its document.

use std::error::Error;
use std::path::{Path, PathBuf};

use cuzk_core::Config;
use cuzk_core::config::Host;
use cuzk_filecoin::{AggregateRequest, ProofKind};
use cuzk_testing::own_process::{given, run_in_own_process};

/// The text of this file.
const HERE: &str = include_str!("programs.rs");

/// The documentation of the engine, which shows the first program, too.
const ENGINE: &str = include_str!("../../src/engine/mod.rs");

/// The document whose programs are doc tests of cuzk-groth16.
const DOC_TESTS: &str = "docs/any-circuit.md";

fn first() -> Result<(), Box<dyn Error>> {
    use cuzk_core::{Config, Engine, ProofRequest};

    let engine = Engine::start(Config::default())?;
    let request = ProofRequest::from_json(&std::fs::read("porep.json")?)?;
    let proof = engine.submit(&request)?.wait()?;
    std::fs::write("proof.bin", proof.as_bytes())?;
    engine.shutdown();

    Ok(())
}

fn aggregate() -> Result<(), Box<dyn Error>> {
    use cuzk_core::{Config, Engine};
    use cuzk_filecoin::AggregateRequest;

    let engine = Engine::start(Config::default())?;
    let request = AggregateRequest::from_json(&std::fs::read("list.json")?)?;
    let aggregate = engine.aggregate(&request)?;
    std::fs::write("aggregate.bin", aggregate.as_bytes())?;

    Ok(())
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the documents for users: their names and texts.
fn documents() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(top().join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().display()));
    let mut names: Vec<_> = docs.filter(|name| name.ends_with(".md")).collect();
    names.push("README.md".to_owned());
    let read = |name: String| {
        let text = std::fs::read_to_string(top().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// Returns the blocks of a language: name of the document and text.
fn blocks(language: &str) -> Vec<(String, String)> {
    let begin = format!("\n```{language}\n");
    let mut found = Vec::new();
    for (name, text) in documents() {
        for rest in text.split(&begin).skip(1) {
            let (block, _) = rest.split_once("\n```").unwrap();
            found.push((name.clone(), block.to_owned()));
        }
    }
    found
}

/// Returns a program as the body of a function that ends with success.
fn body(program: &str) -> String {
    let indented = program.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("    {line}\n"),
    });
    let lines: String = indented.collect();
    format!("() -> Result<(), Box<dyn Error>> {{\n{lines}\n    Ok(())\n}}\n")
}

#[test]
fn each_program_of_a_document_is_run() {
    let programs = blocks("rust");
    let others: Vec<_> = programs
        .iter()
        .filter(|(name, _)| name != DOC_TESTS)
        .collect();
    for (name, program) in &others {
        assert!(
            HERE.contains(&body(program)),
            "{name} shows another:\n{program}"
        );
    }
    for name in ["README.md", "docs/aggregation.md", "docs/embedding.md"] {
        assert!(
            others.iter().any(|(other, _)| other == name),
            "{name} shows none"
        );
    }
}

/// The program there is compiled only, because it needs files.
#[test]
fn the_engine_shows_the_first_program() {
    let page = std::fs::read_to_string(top().join("README.md")).unwrap();
    let (_, program) = page.split_once("\n```rust\n").unwrap();
    let (program, _) = program.split_once("\n```").unwrap();
    let commented = program.lines().map(|line| format!("/// {line}"));
    let commented: Vec<_> = commented.collect();
    let shown = ENGINE.replace("///\n", "/// \n");
    let shown = shown.replace(
        "/// # fn main() -> Result<(), Box<dyn std::error::Error>> {\n",
        "",
    );
    assert!(shown.contains(&commented.join("\n")), "{program}");
}

#[test]
#[ignore = "it is run in a process of its own"]
fn programs_in_their_own_process() {
    let Some(folder) = given() else { return };
    std::env::set_current_dir(folder).unwrap();
    first().unwrap();
    assert_eq!(std::fs::read("proof.bin").unwrap().len(), 192);
    aggregate().unwrap();
    assert!(std::fs::read("aggregate.bin").unwrap().len() > 192);
}

/// The files that they read are those of small circuits.
#[test]
fn the_programs_prove_and_aggregate() {
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let folder = cuzk_testing::folder_with_porep_key(&cache);
    cuzk_testing::copy_params(ProofKind::WindowPost, &cache, folder.path());
    cuzk_testing::put_srs(folder.path(), 3, 2);
    let request = cuzk_testing::data(&format!("{}.json", ProofKind::WindowPost));
    std::fs::copy(request, folder.path().join("porep.json")).unwrap();
    let list: AggregateRequest = cuzk_testing::aggregate_request(2);
    std::fs::write(folder.path().join("list.json"), list.to_json()).unwrap();

    let variable = ("FIL_PROOFS_PARAMETER_CACHE", folder.path().as_os_str());
    let test = "programs::programs_in_their_own_process";
    run_in_own_process(test, folder.path(), &[variable]);
}

/// Blocks for Cargo and for Curio are not ours.
#[test]
fn each_configuration_of_a_document_can_be_used() {
    let ours = |text: &str| !text.starts_with("[dependencies]") && !text.starts_with("[Cuzk]");
    let blocks = blocks("toml");
    let ours: Vec<_> = blocks.iter().filter(|(_, text)| ours(text)).collect();
    assert!(ours.len() >= 3, "{ours:?}");
    for (name, text) in ours {
        let config = Config::parse(text, name, &Host::detect());
        assert!(config.is_ok(), "{name}: {config:?}");
    }
}
