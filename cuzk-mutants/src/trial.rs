//! A mutant is tried: the tests that reach it run, until one fails.
//!
//! Short tests come first. Several run in one process, the more the longer the mutant lives, so that the
//! start of processes costs little. The test that killed a mutant of the same function is asked first.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::process::{Ended, run};
use crate::runtime::CHOSEN;
use crate::schema::Mutant;
use crate::suite::{Bench, Test};

/// The time of the tests in the first process. Each further one has twice as much.
const FIRST: Duration = Duration::from_millis(50);

/// The least time after which a process counts as hanging. Tests are far shorter, so that a loaded machine
/// does not make them hang.
const HANGS_AFTER: Duration = Duration::from_secs(20);

/// How many times as long as without a mutant tests may take.
const SLOWER_MAX: u32 = 10;

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The test of this name failed, or the process that it was in.
    Killed(String),
    /// A test did not end, or took all memory.
    Hung(String),
    /// All tests that reach it passed.
    Missed,
    /// No test reaches it.
    Unreached,
}

impl Verdict {
    /// Returns a verdict in one line.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Killed(by) => format!("killed {by}"),
            Self::Hung(by) => format!("hung {by}"),
            Self::Missed => "missed ".to_owned(),
            Self::Unreached => "unreached ".to_owned(),
        }
    }

    /// Reads a verdict from its line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (kind, by) = line.split_once(' ')?;
        match kind {
            "killed" => Some(Self::Killed(by.to_owned())),
            "hung" => Some(Self::Hung(by.to_owned())),
            "missed" => Some(Self::Missed),
            "unreached" => Some(Self::Unreached),
            _ => None,
        }
    }

    /// Returns true if a test has noticed the mutant.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        matches!(self, Self::Killed(_) | Self::Hung(_))
    }
}

/// Tries a mutant. `first` is the name of a test that runs before all others, if it reaches the mutant.
/// `job` is a number that no other trial has at the same time.
///
/// # Errors
/// A program cannot be run.
pub fn attempt(
    bench: &Bench,
    tests: &[Test],
    mutant: &Mutant,
    first: Option<&str>,
    job: usize,
) -> Result<Verdict> {
    let mut reaching: Vec<_> = tests
        .iter()
        .filter(|test| test.reached.contains(&mutant.number))
        .collect();
    if reaching.is_empty() {
        return Ok(Verdict::Unreached);
    }
    reaching.sort_by_key(|test| Some(&*test.name) != first);
    let out = bench.folder.join(format!("tried-{job}"));
    for (program, batch) in batches(&reaching) {
        let names: Vec<_> = batch.iter().map(|test| &*test.name).collect();
        let time: Duration = batch.iter().map(|test| test.took).sum();
        let mut command = bench.command(program, &names);
        command.env(CHOSEN, mutant.number.to_string());
        let ended = run(&mut command, HANGS_AFTER.max(time * SLOWER_MAX), &out)?;
        let by = || {
            failed(&out)
                .or_else(|| names.first().map(|name| (*name).to_owned()))
                .unwrap_or_default()
        };
        match ended {
            Ended::Well => {}
            Ended::Badly => return Ok(Verdict::Killed(by())),
            Ended::Killed => return Ok(Verdict::Hung(by())),
        }
    }
    Ok(Verdict::Missed)
}

/// Divides tests into processes: each has tests of one program. The first test is alone.
fn batches<'t>(tests: &[&'t Test]) -> Vec<(&'t Path, Vec<&'t Test>)> {
    let mut all = Vec::new();
    let mut limit = Duration::ZERO;
    let mut rest = tests;
    while !rest.is_empty() {
        let mut time = Duration::ZERO;
        let fits = |test: &&&Test| {
            time += test.took;
            time <= limit
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at(count);
        let mut of_program: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for test in now {
            of_program.entry(&*test.program).or_default().push(*test);
        }
        all.extend(of_program);
        limit = (limit * 2).max(FIRST);
        rest = later;
    }
    all
}

/// Returns the first test that failed, by what the program printed.
fn failed(out: &Path) -> Option<String> {
    let text = fs::read(out).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    lines.find_map(|line| {
        Some(
            line.strip_prefix("test ")?
                .strip_suffix(" ... FAILED")?
                .to_owned(),
        )
    })
}
