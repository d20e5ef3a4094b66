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
    /// several with commas. By default all of which the parameter cache has parameters.
    #[arg(long, value_delimiter = ',')]
    pub(crate) kind: Vec<ProofKind>,
    /// 2KiB, 8MiB, 512MiB, 32GiB or 64GiB, in any case, or as a number of bytes.
    #[arg(long, default_value_t = SectorSize::GiB32)]
    pub(crate) sector_size: SectorSize,
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
        let text = "the defaults; --config names a file".to_owned();
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

fn text(report: &DoctorReport) -> String {
    let mut lines = Vec::new();
    for found in &report.findings {
        let level = found.level.as_str();
        lines.push(format!("{level:<8} {:<14} {}", found.topic, found.text));
        if let Some(advice) = &found.advice {
            lines.push(format!("{:<23} -> {advice}", ""));
        }
    }
    lines.push(format!(
        "{} error(s), {} warning(s), in {:.1} s",
        report.errors, report.warnings, report.elapsed_s
    ));
    lines.join("\n")
}
