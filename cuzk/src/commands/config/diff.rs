//! `cuzk config diff [FILE]`

use std::path::Path;

use cuzk_core::Config;
use cuzk_core::config::SECTIONS;
use serde::Serialize;
use serde_json::Value;

use crate::failure::{Failure, failed};
use crate::output;

/// A key whose value is not the default.
#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    section: &'static str,
    key: &'static str,
    value: Value,
    default: Value,
}

pub(super) fn run(file: Option<&Path>, json: bool) -> Result<(), Failure> {
    let differences = differences(&super::load(file)?, &Config::default())?;
    output::print(json, &differences, |differences| text(differences))
}

/// Returns the keys of which two configurations have different values, in the file's order.
fn differences(config: &Config, default: &Config) -> Result<Vec<Difference>, Failure> {
    let [values, defaults] = [config, default].map(serde_json::to_value);
    let (values, defaults) = (values.map_err(failed)?, defaults.map_err(failed)?);
    let mut differences = Vec::new();
    for &(section, keys) in SECTIONS {
        for &(key, _) in keys {
            let [value, default] = [&values, &defaults].map(|all| all[section][key].clone());
            if value != default {
                differences.push(Difference {
                    section,
                    key,
                    value,
                    default,
                });
            }
        }
    }
    Ok(differences)
}

/// Returns the differences as a configuration file. JSON's values are TOML's.
fn text(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "# nothing differs from the defaults".to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut section = "";
    for difference in differences {
        if difference.section != section {
            section = difference.section;
            lines.push(format!("[{section}]"));
        }
        let Difference {
            key,
            value,
            default,
            ..
        } = difference;
        lines.push(format!("{key} = {value}  # default {default}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use cuzk_core::config::Host;

    use super::*;

    #[test]
    fn the_differences_are_a_file_that_makes_them() {
        let host = Host::detect();
        let default = Config::default_for(&host);
        let changed = "[gpus]\nfaults_max = 11\nstall_s = 7\n[jobs]\njournal = \"a \\\"b\\\"\"\n";
        let config = Config::parse(changed, "changed", &host).unwrap();
        let differences = differences(&config, &default).unwrap();
        let keys: Vec<_> = differences.iter().map(|found| found.key).collect();
        assert_eq!(keys, ["faults_max", "stall_s", "journal"]);
        let text = text(&differences);
        assert!(text.contains("faults_max = 11  # default 3"), "{text}");
        assert_eq!(Config::parse(&text, "text", &host).unwrap(), config);
        assert!(self::differences(&default, &default).unwrap().is_empty());
    }
}
