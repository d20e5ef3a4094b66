//! `cuzk doctor`: everything that keeps a machine from proving, or from proving well.
//!
//! Not a repair, and not a proof: it changes nothing and takes a few seconds. The invariants:
//!
//! * Each finding is about one thing, and has a remedy unless all is well.
//! * A thing that cannot be looked at is a finding, and no error.

mod clock;
mod control_group;
mod curio;
mod daemon;
mod disk;
mod finding;
mod gpus;
mod instructions;
mod memory;
mod params;
mod system;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use cuzk_core::Config;
use cuzk_core::config::{PlaceProblem, place_problems};
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::{ProofKind, SectorSize};
use serde::Serialize;

use self::finding::{Finding, Level};
use crate::failure::Failure;
use crate::output;

/// The root of the file system.
const ROOT: &str = "/";

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The kinds that are to be proved: porep, winning-post, window-post or snap-deals;
    /// several with commas. By default all, if a size is named, or else those of which the
    /// parameter cache has parameters.
    #[arg(long, value_delimiter = ',')]
    pub(crate) kind: Vec<ProofKind>,
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB, in any case, or as a number of bytes. By default
    /// 32GiB for the kinds that are named.
    #[arg(long)]
    pub(crate) sector_size: Option<SectorSize>,
    /// The configuration of the Curio that is to call the daemon of this configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) curio: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
pub(crate) struct DoctorReport {
    findings: Vec<Finding>,
    errors: usize,
    warnings: usize,
    elapsed_s: f64,
}

/// Looks at the machine. `file` is the configuration that `--config` names.
///
/// # Errors
/// [`ErrorCode::Doctor`] if a finding is an error. The findings have been printed by then.
pub(crate) fn run(args: &Doctor, file: Option<&Path>, json: bool) -> Result<(), Failure> {
    let report = examine(args, file);
    output::print(json, &report, text)?;
    match report.errors {
        0 => Ok(()),
        errors => {
            let message = format!("{errors} error(s); each line above says what to do");
            Err(Failure::new(ErrorCode::Doctor, message).reported())
        }
    }
}

/// Returns all findings, the most important subjects first.
pub(crate) fn examine(args: &Doctor, file: Option<&Path>) -> DoctorReport {
    let started = Instant::now();
    let (config, mut findings) = configuration(file);
    let kinds = params::kinds(&config, args);
    findings.extend(params::examine(&config, &kinds));
    findings.extend(memory::examine(&config, &kinds, Path::new(ROOT)));
    findings.push(instructions::examine(&config, Path::new(ROOT)));
    findings.extend(system::examine(&config, Path::new(ROOT)));
    findings.extend(control_group::examine(&config, Path::new(ROOT)));
    findings.push(disk::examine(&config.srs.param_cache, &kinds));
    findings.extend(clock::examine(&config.srs.param_cache));
    findings.extend(gpus::examine(&config));
    findings.extend(daemon::examine(&config));
    if let Some(curio) = &args.curio {
        findings.extend(curio::examine(curio, &config));
    }
    let count = |level| findings.iter().filter(|found| found.level == level).count();
    DoctorReport {
        errors: count(Level::Error),
        warnings: count(Level::Warning),
        elapsed_s: started.elapsed().as_secs_f64(),
        findings,
    }
}

/// Returns the configuration with what is wrong with it. One that does not resolve is
/// replaced by the defaults, so that the rest can be looked at.
fn configuration(file: Option<&Path>) -> (Config, Vec<Finding>) {
    const TOPIC: &str = "configuration";
    let Some(file) = file else {
        let config = Config::default();
        let mut findings = places(&config, TOPIC);
        let text = "the defaults; `--config FILE` names another".to_owned();
        findings.insert(0, Finding::ok(TOPIC, text));
        return (config, findings);
    };
    match Config::load(file) {
        Ok(config) => {
            let mut findings = places(&config, TOPIC);
            findings.insert(0, Finding::ok(TOPIC, output::shown(file)));
            (config, findings)
        }
        Err(error) => {
            let advice = "`cuzk config check` prints the values of a file; the rest of this \
                          report is about the defaults";
            let found = Finding::error(TOPIC, error.to_string(), advice);
            (Config::default(), vec![found])
        }
    }
}

fn places(config: &Config, topic: &'static str) -> Vec<Finding> {
    let problems = place_problems(config).into_iter();
    let found = |problem: PlaceProblem| {
        let advice = "change the key, or make what it names";
        Finding::error(topic, problem.to_string(), advice)
    };
    problems.map(found).collect()
}

/// The columns of the text.
const COLUMNS: usize = 100;

/// Where a finding begins in its line, behind its level and its topic.
const TEXT_AT: usize = 24;

/// The text before a remedy.
const REMEDY: &str = "-> ";

fn text(report: &DoctorReport) -> String {
    let mut lines = Vec::new();
    for found in &report.findings {
        let start = format!("{:<8} {:<14} ", found.level.as_str(), found.topic);
        lines.extend(indented(&start, &found.text));
        if let Some(advice) = &found.advice {
            let start = format!("{:TEXT_AT$}{REMEDY}", "");
            lines.extend(indented(&start, advice));
        }
    }
    lines.push(format!(
        "{} error(s), {} warning(s), in {:.1} s",
        report.errors, report.warnings, report.elapsed_s
    ));
    lines.join("\n")
}

/// Returns `text` behind `start`, in lines of [`COLUMNS`] that begin below each other. A word
/// that is longer has a longer line.
fn indented(start: &str, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = start.to_owned();
    let indent = start.chars().count();
    let mut columns = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if columns > indent && columns + 1 + length > COLUMNS {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            columns = indent;
        }
        if columns > indent {
            line.push(' ');
            columns += 1;
        }
        line.push_str(word);
        columns += length;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_findings_go_on_below_their_beginning() {
        let text_of = |found: &str, advice: &str| {
            let findings = vec![Finding::warning("memory", found, advice)];
            text(&DoctorReport {
                findings,
                errors: 0,
                warnings: 1,
                elapsed_s: 0.2,
            })
        };
        let short = "\
warning  memory         a text
                        -> a remedy
0 error(s), 1 warning(s), in 0.2 s";
        assert_eq!(text_of("a text", "a remedy"), short);

        let words = "word ".repeat(60);
        let long = text_of(words.trim_end(), words.trim_end());
        assert!(long.lines().all(|line| line.chars().count() <= COLUMNS));
        let mut starts = long.lines().map(|line| line.find("word"));
        assert!(
            starts.by_ref().take(4).all(|at| at == Some(TEXT_AT)),
            "{long}"
        );
        assert_eq!(long.matches("word").count(), 120);

        let path = "/".repeat(200);
        let lines = indented("start ", &format!("a {path} b"));
        let expected = ["start a", &format!("      {path}"), "      b"];
        assert_eq!(lines, expected);
        assert_eq!(indented("start ", ""), ["start "]);
    }
}
