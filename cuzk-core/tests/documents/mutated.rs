//! Mutants of configuration files: each resolves, or every problem names its line.

use std::fs;
use std::path::Path;

use cuzk_core::config::{Config, ConfigError, Host, import};
use cuzk_testing::fuzz::Corpus;

/// The shipped configurations.
fn corpus() -> Corpus {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shipped = fs::read_dir(top.join("../configs")).unwrap();
    let mut paths: Vec<_> = shipped.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    // The order decides which file is mutated when.
    paths.sort();
    let corpus = Corpus::read(top.join("tests/corpus/configs"));
    paths
        .into_iter()
        .fold(corpus, |corpus, path| corpus.with(fs::read(path).unwrap()))
}

#[test]
fn mutated_configurations_resolve_or_have_problems_in_a_line() {
    const WORDS: [&[u8]; 8] = [
        b"= -1",
        b"= 1e99",
        b"= \"99999999TiB\"",
        b"= [[",
        b"\"\"\"",
        b"\n[jobs]\n",
        b"= true",
        b"= \"auto\"",
    ];
    let host = Host::detect();
    let decode = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        // The same bytes as a file of the daemon that is replaced.
        drop(import(&text, "test"));
        let parsed = Config::parse(&text, "test", &host);
        if let Err(ConfigError::Invalid { problems, .. }) = &parsed {
            let lines = text.lines().count().max(1);
            assert!(!problems.is_empty());
            for problem in problems {
                assert!((1..=lines + 1).contains(&problem.line), "{problem:?}");
            }
        }
        parsed.map(|config| {
            // The result can be written, and the text resolves to the same.
            let written = config.to_toml();
            let again = Config::parse(&written, "test", &host).unwrap();
            assert_eq!(again.to_toml(), written);
        })
    };
    let is_expected = |error: &ConfigError| matches!(error, ConfigError::Invalid { .. });
    let corpus = corpus().with_words(&WORDS);
    corpus.fuzz_decoder("configurations", 2_000, decode, is_expected);
}
