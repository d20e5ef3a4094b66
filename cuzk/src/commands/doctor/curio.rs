//! Curio's configuration, as far as it concerns the daemon: the address that it calls, its
//! limits, and which tasks share them.
//!
//! Not the rest of that file, which is Curio's. Keys that are not there have Curio's own
//! values.

use std::path::Path;
use std::time::Duration;

use cuzk_core::Config;
use cuzk_core::config::Address;
use cuzk_files::read_bounded;
use toml::{Table, Value};

use super::finding::Finding;

const TOPIC: &str = "curio";

/// No configuration is as large.
const FILE_MAX_BYTES: u64 = 4 << 20;

/// Curio's own value of `ProveTimeout`.
const TIMEOUT_DEFAULT: &str = "30m";

/// A shorter time ends calls whose proofs only wait.
const TIMEOUT_MIN: Duration = Duration::from_secs(20 * 60);

/// Tasks that prove PoSts, and tasks that prove sectors.
const POSTS: [&str; 2] = ["EnableWindowPost", "EnableWinningPost"];
const SECTORS: [&str; 3] = [
    "EnablePoRepProof",
    "EnableUpdateProve",
    "EnableRemoteProofs",
];

pub(super) fn examine(path: &Path, config: &Config) -> Vec<Finding> {
    let read = read_bounded(path, FILE_MAX_BYTES).map_err(|error| error.to_string());
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
    let table = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
    match table {
        Ok(table) => judge(&table, config),
        Err(problem) => {
            let text = format!("{}: {}", path.display(), problem.trim());
            let advice = "give the TOML file that Curio reads, or the output of `curio config get`";
            vec![Finding::error(TOPIC, text, advice)]
        }
    }
}

fn judge(curio: &Table, config: &Config) -> Vec<Finding> {
    let section = curio.get("Cuzk").and_then(Value::as_table);
    let value = |key: &str| section.and_then(|section| section.get(key));
    let is_on = |task: &&str| {
        let tasks = curio.get("Subsystems").and_then(Value::as_table);
        tasks
            .and_then(|tasks| tasks.get(*task))
            .and_then(Value::as_bool)
            == Some(true)
    };
    let called = value("Address").and_then(Value::as_str);
    let Some(called) = called.filter(|address| !address.is_empty()) else {
        let text = "[Cuzk] Address is not set, so Curio calls no daemon";
        let advice = format!("set it to {:?}", curio_address(config));
        return vec![Finding::error(TOPIC, text, advice)];
    };
    let mut findings = vec![of_address(called, config)];
    let max_pending = value("MaxPending")
        .and_then(Value::as_integer)
        .unwrap_or(10);
    let posts = POSTS.iter().any(is_on);
    let sectors = SECTORS.iter().any(is_on);
    findings.push(of_tasks(posts && sectors, max_pending));
    let timeout = value("ProveTimeout").and_then(Value::as_str);
    findings.push(of_timeout(timeout.unwrap_or(TIMEOUT_DEFAULT)));
    findings
}

/// Returns the address as Curio writes it.
fn curio_address(config: &Config) -> String {
    let first = config.server.listen.first();
    let address = first.map(Address::to_string).unwrap_or_default();
    address.trim_start_matches("tcp://").to_owned()
}

fn of_address(called: &str, config: &Config) -> Finding {
    let address = called.trim_start_matches("dns:///").parse::<Address>();
    let listen = &config.server.listen;
    match address {
        Ok(address) if listen.contains(&address) => {
            Finding::ok(TOPIC, format!("calls {called}, where this daemon listens"))
        }
        Ok(_) => {
            let listen: Vec<_> = listen.iter().map(ToString::to_string).collect();
            let text = format!(
                "calls {called}, and this daemon listens on {}",
                listen.join(", ")
            );
            let advice = format!(
                "set [Cuzk] Address to {:?}, or add the address to [server] listen",
                curio_address(config)
            );
            Finding::error(TOPIC, text, advice)
        }
        Err(error) => {
            let advice = format!("set [Cuzk] Address to {:?}", curio_address(config));
            Finding::error(TOPIC, error.to_string(), advice)
        }
    }
}

fn of_tasks(is_shared: bool, max_pending: i64) -> Finding {
    let text = match max_pending {
        0 => "MaxPending is unlimited".to_owned(),
        _ => format!("MaxPending is {max_pending}"),
    };
    if is_shared && max_pending != 0 {
        let text = format!("{text}, and PoSts share it with PoReps or SnapDeals");
        let advice = "a WinningPoSt can wait behind them: run PoSts in a Curio process of their \
                      own, or set MaxPending = 0";
        return Finding::warning(TOPIC, text, advice);
    }
    Finding::ok(TOPIC, text)
}

fn of_timeout(text: &str) -> Finding {
    match duration(text) {
        None => {
            let found = format!("ProveTimeout {text:?} is no time");
            Finding::error(TOPIC, found, "write a time such as \"30m\"")
        }
        Some(time) if time < TIMEOUT_MIN => {
            let found = format!("ProveTimeout is {text}");
            let advice = "calls end while their jobs wait; the jobs go on, and the next try gets \
                          the proof. 30m or more spares the tries";
            Finding::warning(TOPIC, found, advice)
        }
        Some(_) => Finding::ok(TOPIC, format!("ProveTimeout is {text}")),
    }
}

/// Reads a time as Go writes it, such as `1h30m0s`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| letter != '.' && !letter.is_ascii_digit())?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let units = [("ms", 1e-3), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let (unit, unit_s) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        seconds += number * unit_s;
        rest = &rest[unit.len()..];
    }
    (!text.is_empty()).then_some(())?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use cuzk_testing::fuzz::Corpus;

    use super::super::finding::Level::{self, Error, Ok, Warning};
    use super::*;

    fn levels(curio: &str) -> Vec<Level> {
        let config = Config::default();
        let findings = judge(&toml::from_str(curio).unwrap(), &config);
        findings.iter().map(|found| found.level).collect()
    }

    #[test]
    fn each_setting_of_curio_has_its_line() {
        const CALLS: &str = "[Cuzk]\nAddress = \"127.0.0.1:9820\"\n";
        let with = |more: &str| levels(&format!("{CALLS}{more}"));
        assert_eq!(with(""), [Ok, Ok, Ok]);
        assert_eq!(levels(""), [Error]);
        assert_eq!(levels("[Cuzk]\nAddress = \"\"\n"), [Error]);
        assert_eq!(levels("[Cuzk]\nAddress = \"10.0.0.9:9820\"\n")[0], Error);
        assert_eq!(levels("[Cuzk]\nAddress = \"127.0.0.1\"\n")[0], Error);
        let shared = "[Subsystems]\nEnableWinningPost = true\nEnablePoRepProof = true\n";
        assert_eq!(with(shared), [Ok, Warning, Ok]);
        assert_eq!(with(&format!("MaxPending = 0\n{shared}")), [Ok, Ok, Ok]);
        let alone = "[Subsystems]\nEnableWinningPost = true\nEnablePoRepProof = false\n";
        assert_eq!(with(alone), [Ok, Ok, Ok]);
        assert_eq!(with("ProveTimeout = \"5m0s\"\n"), [Ok, Ok, Warning]);
        assert_eq!(with("ProveTimeout = \"soon\"\n"), [Ok, Ok, Error]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curio.toml");
        let level = || examine(&path, &Config::default())[0].level;
        assert_eq!(level(), Error);
        std::fs::write(&path, "[Cuzk\n").unwrap();
        assert_eq!(level(), Error);
    }

    #[test]
    fn times_are_read_as_go_writes_them() {
        let seconds = |text: &str| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("1h30m0s"), Some(5400.0));
        assert_eq!(seconds("1.5m"), Some(90.0));
        assert_eq!(seconds("250ms"), Some(0.25));
        for bad in ["", "5", "m", "1d", "1m x"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    /// A file of Curio's has its three lines, or one error that says how to mend it.
    #[test]
    fn mutated_configurations_of_curio_are_judged_or_errors() {
        const WORDS: [&[u8]; 8] = [
            b"[Subsystems]\nEnablePoRepProof = true\n",
            b"MaxPending = -9223372036854775808\n",
            b"MaxPending = 0\n",
            b"ProveTimeout = \"9999999999999999999999h\"\n",
            b"1.5m0.0s",
            b"dns:///",
            b"[[",
            b"\"\"\"",
        ];
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/curio");
        let corpus = Corpus::read(corpus)
            .with(
                *b"[Subsystems]\nEnableWinningPost = true\nEnablePoRepProof = true\n\
                   [Cuzk]\nAddress = \"127.0.0.1:9820\"\nMaxPending = 10\n\
                   ProveTimeout = \"1h30m0s\"\n",
            )
            .with(*b"[Cuzk]\nAddress = \"dns:///10.0.0.9:9820\"\nProveTimeout = \"250ms\"\n")
            // No number, and more seconds than a duration has.
            .with(*b"[Cuzk]\nAddress = \"127.0.0.1:9820\"\nProveTimeout = \"h\"\n")
            .with(*b"[Cuzk]\nAddress = \"127.0.0.1:9820\"\nProveTimeout = \"99999999999999999h\"\n")
            .with_words(&WORDS);
        let folder = tempfile::tempdir().unwrap();
        let (path, config) = (folder.path().join("curio.toml"), Config::default());
        let decode = |input: &[u8]| {
            std::fs::write(&path, input).unwrap();
            let findings = examine(&path, &config);
            for found in &findings {
                assert!(!found.text.is_empty());
                assert_eq!(found.advice.is_none(), found.level == Ok, "{found:?}");
            }
            match &findings[..] {
                [_, _, _] => Result::Ok(()),
                [one] => Err(format!("{one:?}")),
                other => unreachable!("{other:?}"),
            }
        };
        let is_expected = |told: &String| told.contains("level: Error");
        corpus.fuzz_decoder("configurations of Curio", 1_000, decode, is_expected);
    }
}
