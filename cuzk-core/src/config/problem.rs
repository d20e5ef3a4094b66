//! What can be wrong with a configuration, and how it is told.
//!
//! No checking happens here. The invariant: every problem says where it is,
//! what was expected, and what to write instead.

use std::fmt;
use std::io;
use std::path::PathBuf;

use cuzk_kernels::Isa;
use rayon::ThreadPoolBuildError;

use super::address::AddressError;
use super::cluster::ClusterServerError;
use super::size::exact_size;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration {path}: {source}; give the path of a readable file")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not text.
    #[error("configuration {path}, line {line}: not UTF-8; save the file as UTF-8 text")]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is not UTF-8, from 1.
        line: usize,
    },
    /// The text does not resolve. Every problem in it, in the file's order.
    #[error("configuration {origin} is not usable:{}", lines(problems))]
    Invalid {
        /// The file's path, or what else the text came from.
        origin: String,
        /// What is wrong, never empty.
        problems: Vec<Problem>,
    },
    /// The requests of a daemon leave no memory for the engine.
    #[error(
        "server.request_memory ({}) leaves nothing of memory.total_budget without safety_margin \
         ({}); lower it or raise total_budget",
        exact_size(*request_bytes), exact_size(*usable_bytes)
    )]
    RequestMemory {
        /// The budget of requests, bytes.
        request_bytes: u64,
        /// The budget without its margin, bytes.
        usable_bytes: u64,
    },
    /// The threads that the configuration asks for cannot be had.
    #[error(
        "cannot start {threads} thread{s}: {source}; lower synthesis.threads and \
         gpus.gpu_threads, or raise the limit of this user's processes (ulimit -u)",
        s = if *threads == 1 { "" } else { "s" }
    )]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// Why.
        source: ThreadPoolBuildError,
    },
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Section, or empty for what stands outside any.
    pub section: String,
    /// Key, or the name of an unknown section; empty where the syntax is wrong.
    pub key: String,
    /// What is wrong.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match (self.section.as_str(), self.key.as_str()) {
            ("", "") => {}
            ("", key) => write!(f, "{key}: ")?,
            (section, key) => write!(f, "[{section}] {key}: ")?,
        }
        self.kind.fmt(f)
    }
}

/// What is wrong with one value, key or section.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Not TOML.
    #[error("{0}; correct this line")]
    Syntax(String),
    /// A section that does not exist.
    #[error("unknown section; {advice}")]
    UnknownSection {
        /// The nearest one, or all of them.
        advice: String,
    },
    /// A key that does not exist in its section.
    #[error("unknown key; {advice}")]
    UnknownKey {
        /// The nearest one, or all of them.
        advice: String,
    },
    /// A value of another type.
    #[error("expected {expected}, got {got}")]
    WrongType {
        /// The values that the key takes.
        expected: &'static str,
        /// The TOML type found.
        got: &'static str,
    },
    /// A word that is none of the key's values.
    #[error("expected {expected}, got {got:?}")]
    UnknownValue {
        /// The values that the key takes.
        expected: &'static str,
        /// The word found.
        got: String,
    },
    /// A size that cannot be read.
    #[error("expected {expected}, got {got:?}")]
    BadSize {
        /// The values that the key takes.
        expected: &'static str,
        /// The text found.
        got: String,
    },
    /// A zero where zero means nothing.
    #[error("expected {expected}, got 0")]
    Zero {
        /// The values that the key takes.
        expected: &'static str,
    },
    /// A negative number.
    #[error("expected {expected}, got {got}")]
    Negative {
        /// The values that the key takes.
        expected: &'static str,
        /// The number found.
        got: i64,
    },
    /// A number beyond any machine.
    #[error("expected at most {max}, got {got}")]
    TooLarge {
        /// The largest value taken.
        max: u64,
        /// The number found.
        got: u64,
    },
    /// A size beyond any machine.
    #[error("expected at most {}", exact_size(*max))]
    SizeTooLarge {
        /// The largest size taken.
        max: u64,
    },
    /// More threads than the machine's cores can have.
    #[error("expected at most {max} threads on {cores} core(s), got {got}")]
    TooManyThreads {
        /// The largest value taken.
        max: usize,
        /// The machine's cores.
        cores: usize,
        /// The number found.
        got: usize,
    },
    /// A path with an abbreviation.
    #[error("only a shell expands the `~` of {got:?}; write the whole path")]
    Tilde {
        /// The path found.
        got: String,
    },
    /// A size that is too small to be of use.
    #[error("expected at least {}, got {}", exact_size(*min), exact_size(*got))]
    TooSmall {
        /// The smallest value taken, bytes.
        min: u64,
        /// The number found, bytes.
        got: u64,
    },
    /// A text that is no address.
    #[error(transparent)]
    BadAddress(AddressError),
    /// A text that is no address of a NATS server.
    #[error(transparent)]
    BadServer(ClusterServerError),
    /// A key that has no effect without another one.
    #[error("it has no effect without `{needs}`; set both keys or neither")]
    Needs {
        /// The other key.
        needs: &'static str,
    },
    /// An empty text.
    #[error("expected {expected}, got an empty text; leave the key out for its default")]
    Empty {
        /// The values that the key takes.
        expected: &'static str,
    },
    /// A margin that leaves nothing of the budget.
    #[error(
        "expected less than total_budget ({}), got {}; lower it or raise total_budget",
        exact_size(*budget_bytes), exact_size(*margin_bytes)
    )]
    MarginExceedsBudget {
        /// The margin, bytes.
        margin_bytes: u64,
        /// The budget, bytes.
        budget_bytes: u64,
    },
    /// A reserve that leaves nothing for other jobs.
    #[error(
        "expected less than total_budget without safety_margin ({}), got {}; lower it or raise \
         total_budget",
        exact_size(*usable_bytes), exact_size(*reserve_bytes)
    )]
    ReserveExceedsBudget {
        /// The reserve, bytes.
        reserve_bytes: u64,
        /// What it is a part of, bytes.
        usable_bytes: u64,
    },
    /// GPU ordinals in a program that drives none.
    #[error(
        "this build proves on the CPU only, so it has no devices to name; write \"cpu\" or \"auto\""
    )]
    NoCuda,
    /// Instructions that this machine does not have.
    #[error("this machine has no {missing}; use one of {choices}", choices = Isa::choices())]
    NoInstructions {
        /// Their name.
        missing: &'static str,
    },
    /// A device twice in the list.
    #[error("device {ordinal} stands in the list twice")]
    DuplicateDevice {
        /// The device.
        ordinal: u32,
    },
    /// An empty list of devices.
    #[error("the list is empty; write \"cpu\" to use no GPU")]
    NoDevice,
}

/// A problem as found: at a byte offset, before lines are counted.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) at: usize,
    pub(super) section: String,
    pub(super) key: String,
    pub(super) kind: ProblemKind,
}

/// Findings as problems, in the order of the text.
pub(super) fn locate(text: &str, mut findings: Vec<Finding>) -> Vec<Problem> {
    findings.sort_by_key(|finding| finding.at);
    let problem = |finding: Finding| Problem {
        line: line_of(text.as_bytes(), finding.at),
        section: finding.section,
        key: finding.key,
        kind: finding.kind,
    };
    findings.into_iter().map(problem).collect()
}

/// The line, from 1, in which the byte at `offset` stands.
pub(super) fn line_of(text: &[u8], offset: usize) -> usize {
    1 + text
        .iter()
        .take(offset)
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// The candidate that `name` most likely misspells.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // Below this similarity a suggestion confuses more than it helps.
    const SIMILARITY_MIN: f64 = 0.6;
    candidates
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(name, candidate),
                candidate,
            )
        })
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect()
}
