//! Tries the mutants of packages: `.ci/mutants` calls it.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use cuzk_mutants::choice::Choice;
use cuzk_mutants::report::LIST;
use cuzk_mutants::run::{Settings, run};
use cuzk_mutants::wrapper::{ORDER, answer};

fn main() -> ExitCode {
    let result = match std::env::var(ORDER) {
        Ok(order) => answer(&order, std::env::args_os().skip(1)),
        Err(_) => tried(),
    };
    result.unwrap_or_else(|error| {
        eprintln!("mutants: {error:#}");
        ExitCode::from(2)
    })
}

fn number(name: &str, otherwise: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{name} is no number: {text}")),
        Err(_) => Ok(otherwise),
    }
}

fn tried() -> Result<ExitCode> {
    let choice = Choice::parse(std::env::args().skip(1))?;
    let seconds = number("CUZK_MUTANTS_SECONDS", 3600)?;
    let settings = Settings {
        top: std::env::current_dir()
            .and_then(|top| top.canonicalize())
            .context("the current folder")?,
        jobs: usize::try_from(number("CUZK_MUTANTS_JOBS", 2)?)?,
        slow: Duration::from_secs(number("CUZK_MUTANTS_TEST_SECONDS", 60)?),
        until: Instant::now().checked_add(Duration::from_secs(seconds)),
    };
    let report = run(&settings, &choice)?;
    for survivor in &report.survivors {
        eprintln!("survivor: {survivor}");
    }
    if !report.survivors.is_empty() {
        eprintln!(
            "Write a test that fails for the mutant. If it changes no result, add its line and the reason to {LIST}."
        );
    }
    if report.untried > 0 {
        eprintln!("The time is over. The next run goes on with what was not tried.");
    }
    let what = choice.to_string();
    println!("{}", report.line(&what));
    Ok(if report.survivors.is_empty() && report.untried == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
