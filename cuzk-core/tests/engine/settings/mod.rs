//! Each key of the configuration that the engine reads, and its effect.
//!
//! A row of the table gives a key two values, and the engine tells them apart. It is asked for
//! what it does, and not for its configuration. `cuzk/tests/daemon/settings` has the other keys.

mod devices;
mod jobs;
mod memory;
mod stages;

use std::collections::BTreeSet;
use std::path::Path;

use cuzk_core::config::Host;
use cuzk_core::{Config, Engine};
use cuzk_filecoin::ProofKind;
use cuzk_groth16::params::GenerateOptions;
use cuzk_testing::KEYS_OF_THE_ENGINE;
use tempfile::TempDir;

use crate::common::device::Opened;
use crate::common::{tiny, wait_until};

/// The circuit of the jobs, unless a row needs another.
const KIND: ProofKind = ProofKind::Porep;

/// A configuration with one value of a key, and the folder that is its own. `FOLDER` in a
/// value is this folder.
struct Case {
    config: Config,
    folder: TempDir,
}

/// An engine at work, and the device that is let go before the engine ends.
struct Held {
    device: Option<Opened>,
    engine: Engine,
}

/// How the engine tells two values apart.
enum Effect {
    /// It does the one with the first value, and the other with the second.
    Does(fn(&Case) -> String, [&'static str; 2]),
    /// With the first value something happens in time, and with the second it has not
    /// happened by then. Both engines run at once, so that no time is set.
    Happens(fn(&Case) -> Held, fn(&Held) -> bool),
}

struct Row {
    /// `section.key`.
    key: &'static str,
    /// Two values, as a file has them.
    values: [&'static str; 2],
    effect: Effect,
}

impl Row {
    fn does(
        key: &'static str,
        values: [&'static str; 2],
        probe: fn(&Case) -> String,
        seen: [&'static str; 2],
    ) -> Self {
        assert_ne!(seen[0], seen[1], "{key}: the values are not told apart");
        let effect = Effect::Does(probe, seen);
        Self {
            key,
            values,
            effect,
        }
    }

    fn happens(
        key: &'static str,
        values: [&'static str; 2],
        begin: fn(&Case) -> Held,
        has_happened: fn(&Held) -> bool,
    ) -> Self {
        let effect = Effect::Happens(begin, has_happened);
        Self {
            key,
            values,
            effect,
        }
    }

    fn check(&self) {
        let cases = self.values.map(|value| Case::new(self.key, value));
        assert_ne!(cases[0].config, cases[1].config, "{}", self.key);
        match self.effect {
            Effect::Does(probe, seen) => {
                for ((case, seen), value) in cases.iter().zip(seen).zip(self.values) {
                    assert_eq!(probe(case), seen, "{} = {value}", self.key);
                }
            }
            Effect::Happens(begin, has_happened) => {
                let [early, late] = [begin(&cases[0]), begin(&cases[1])];
                let what = format!("{} = {}: it happens", self.key, self.values[0]);
                wait_until(&what, || has_happened(&early));
                let [_, value] = self.values;
                assert!(!has_happened(&late), "{} = {value}", self.key);
            }
        }
    }
}

impl Case {
    fn new(key: &str, value: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        std::fs::create_dir(folder.path().join("parameters")).unwrap();
        let (section, key) = key.split_once('.').unwrap();
        let mut file: toml::Table = BASE.replace("FOLDER", here).parse().unwrap();
        let line = format!("value = {}", value.replace("FOLDER", here));
        let mut line: toml::Table = line.parse().unwrap();
        let keys = file
            .entry(section)
            .or_insert_with(|| toml::Table::new().into());
        let keys = keys.as_table_mut().unwrap();
        keys.insert(key.to_owned(), line.remove("value").unwrap());
        let text = toml::to_string(&file).unwrap();
        let host = Host {
            cores: 2,
            memory_bytes: Some(4 << 30),
            cuda: true,
            ..Host::detect()
        };
        let config = Config::parse(&text, "the row's file", &host).unwrap();
        Self { config, folder }
    }

    /// The folder of the parameters, whatever the configuration says of it.
    fn params(&self) -> std::path::PathBuf {
        self.folder.path().join("parameters")
    }

    /// Puts the tiny circuit and its parameters into the folder, and returns the
    /// configuration.
    fn with_tiny(&self) -> Config {
        tiny::generate(KIND, &self.params(), GenerateOptions::default());
        self.config.clone()
    }
}

/// The rest of a file, beside the key of a row.
const BASE: &str = r#"
    [srs]
    param_cache = "FOLDER/parameters"
    multiples = []
    [gpus]
    devices = "cpu"
"#;

fn rows() -> Vec<Row> {
    let mut rows = devices::rows();
    rows.extend(jobs::rows());
    rows.extend(memory::rows());
    rows.extend(stages::rows());
    rows
}

/// With the table of the daemon, no key is left out: that one has all keys but these.
#[test]
fn each_key_of_the_engine_has_a_row() {
    let rows = rows();
    let keys: BTreeSet<_> = rows.iter().map(|row| row.key).collect();
    assert_eq!(keys.len(), rows.len(), "a key has two rows");
    assert_eq!(keys, BTreeSet::from(KEYS_OF_THE_ENGINE));
}

#[test]
fn each_key_of_devices_has_its_effect() {
    devices::rows().iter().for_each(Row::check);
}

#[test]
fn each_key_of_jobs_has_its_effect() {
    jobs::rows().iter().for_each(Row::check);
}

#[test]
fn each_key_of_memory_has_its_effect() {
    memory::rows().iter().for_each(Row::check);
}

#[test]
fn each_key_of_stages_has_its_effect() {
    stages::rows().iter().for_each(Row::check);
}

fn shown(is_so: bool, words: [&str; 2]) -> String {
    words[usize::from(!is_so)].to_owned()
}

/// Returns true if a folder has a file with this extension.
fn has_file(folder: &Path, extension: &str) -> bool {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.any(|path| path.extension().is_some_and(|found| found == extension))
}
