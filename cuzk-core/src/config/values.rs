//! Single values of a configuration file, checked.
//!
//! Not the sections: these are [`super::resolve`]'s. The invariant: a value that fails its
//! check is noted, and its key has the default, so that the rest is checked, too.

use std::time::Duration;

use bytesize::ByteSize;
use toml::Spanned;

use super::file::{Field, SizeText};
use super::host::Host;
use super::keys::expected;
use super::problem::{Finding, ProblemKind};

/// The largest number of threads, workers or waiting partitions. A larger one is a typing
/// error.
pub const COUNT_MAX: u64 = 4096;

/// Threads that a core may have. Each has memory and none makes the others faster.
const THREADS_PER_CORE_MAX: usize = 16;

/// Threads that any machine may have, so that a configuration for a larger machine can be
/// tried on a small one.
const THREADS_MAX_MIN: usize = 256;

/// The longest time, ten years. A longer one is a typing error.
pub const SECONDS_MAX: u64 = 10 * 366 * 24 * 3600;

/// The largest size, 1 EiB. A larger one is a typing error: the unit was wrong.
pub const SIZE_MAX_BYTES: u64 = 1 << 60;

/// Checks values, and notes those that fail.
pub(super) struct Check<'a> {
    pub(super) host: &'a Host,
    pub(super) findings: &'a mut Vec<Finding>,
}

impl Check<'_> {
    /// Notes a problem of the value `at`.
    pub(super) fn note<T>(&mut self, section: &str, key: &str, at: &Spanned<T>, kind: ProblemKind) {
        self.findings.push(Finding {
            at: at.span().start,
            section: section.to_owned(),
            key: key.to_owned(),
            kind,
        });
    }

    /// Returns a number of threads: 0, and no number, mean all cores. Threads beyond
    /// [`threads_max`] are a typing error.
    pub(super) fn threads(&mut self, section: &str, key: &str, field: &Field<i64>) -> usize {
        let cores = self.host.cores.max(1);
        let Some(value) = field.as_ref().filter(|value| *value.get_ref() != 0) else {
            return cores;
        };
        let (count, max) = (self.count(section, key, field, cores), threads_max(cores));
        if count <= max {
            return count;
        }
        let got = count;
        let kind = ProblemKind::TooManyThreads { max, cores, got };
        self.note(section, key, value, kind);
        cores
    }

    /// Notes a path that only a shell would understand.
    pub(super) fn check_path(&mut self, section: &str, key: &str, field: &Field<String>) {
        if let Some(path) = field
            .as_ref()
            .filter(|path| path.get_ref().starts_with('~'))
        {
            let got = path.get_ref().clone();
            self.note(section, key, path, ProblemKind::Tilde { got });
        }
    }

    /// Returns a number from 1 to [`COUNT_MAX`].
    pub(super) fn count(
        &mut self,
        section: &str,
        key: &str,
        field: &Field<i64>,
        default: usize,
    ) -> usize {
        self.positive(section, key, field, COUNT_MAX)
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(default)
    }

    /// Returns a time of 1 to [`SECONDS_MAX`] seconds.
    pub(super) fn seconds(
        &mut self,
        section: &str,
        key: &str,
        field: &Field<i64>,
        default: u64,
    ) -> Duration {
        let seconds = self.positive(section, key, field, SECONDS_MAX);
        Duration::from_secs(seconds.unwrap_or(default))
    }

    /// Returns a number from 1 to `max`; `None` for no value, and for a bad one.
    pub(super) fn positive(
        &mut self,
        section: &str,
        key: &str,
        field: &Field<i64>,
        max: u64,
    ) -> Option<u64> {
        let value = field.as_ref()?;
        let expected = expected(section, key);
        let problem = match (*value.get_ref(), u64::try_from(*value.get_ref())) {
            (got, Err(_)) => ProblemKind::Negative { expected, got },
            (_, Ok(0)) => ProblemKind::Zero { expected },
            (_, Ok(got)) if got <= max => return Some(got),
            (_, Ok(got)) => ProblemKind::TooLarge { max, got },
        };
        self.note(section, key, value, problem);
        None
    }

    /// Returns a size in bytes; `None` for `"auto"`, for no value, and for a bad one.
    pub(super) fn size(
        &mut self,
        section: &str,
        key: &str,
        field: &Field<SizeText>,
    ) -> Option<u64> {
        let value = field.as_ref()?;
        let expected = expected(section, key);
        let bytes = match value.get_ref() {
            SizeText::Text(text) if text == "auto" => return None,
            SizeText::Text(text) => size_with_unit(text).ok_or_else(|| ProblemKind::BadSize {
                expected,
                got: text.clone(),
            }),
            SizeText::Bytes(got) => u64::try_from(*got).map_err(|_| ProblemKind::Negative {
                expected,
                got: *got,
            }),
        };
        let problem = match bytes {
            Ok(0) => ProblemKind::Zero { expected },
            Ok(got) if got > SIZE_MAX_BYTES => ProblemKind::SizeTooLarge {
                max: SIZE_MAX_BYTES,
            },
            Ok(bytes) => return Some(bytes),
            Err(kind) => kind,
        };
        self.note(section, key, value, problem);
        None
    }

    /// Returns one of `values`; `None` for no value, and for a bad one.
    pub(super) fn word<T: Copy>(
        &mut self,
        section: &str,
        key: &str,
        field: &Field<String>,
        values: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let value = field.as_ref()?;
        let found = values
            .iter()
            .find(|&&candidate| name(candidate) == value.get_ref());
        if found.is_none() {
            let expected = expected(section, key);
            let kind = ProblemKind::UnknownValue {
                expected,
                got: value.get_ref().clone(),
            };
            self.note(section, key, value, kind);
        }
        found.copied()
    }
}

/// Returns the most threads that a machine's pools may have.
fn threads_max(cores: usize) -> usize {
    let max = cores.saturating_mul(THREADS_PER_CORE_MAX);
    max.max(THREADS_MAX_MIN)
}

/// Returns true if a size is zero, in whatever unit.
pub(super) fn is_zero(size: &SizeText) -> bool {
    match size {
        SizeText::Bytes(bytes) => *bytes == 0,
        SizeText::Text(text) => size_with_unit(text) == Some(0),
    }
}

/// Reads a size such as `"16GiB"`. A number without a unit is refused: as text it is as
/// likely meant in GiB as in bytes.
fn size_with_unit(text: &str) -> Option<u64> {
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    let size: ByteSize = text.parse().ok().filter(|_| has_unit)?;
    Some(size.as_u64())
}
