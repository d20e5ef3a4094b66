//! The places of a source that have mutants, and their names.
//!
//! Invariant: a site stands before those within it.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use crate::operators::Use;

/// A place of a source, in bytes from its beginning.
pub type Bytes = Range<usize>;

/// The kind of a site, with the bytes that its mutants need.
#[derive(Clone, Debug)]
pub enum Shape {
    /// The body of a function begins here, behind its brace.
    Body(usize),
    /// An operator between two operands.
    Operator {
        /// How the operands are used.
        of: Use,
        /// The first operand.
        left: Bytes,
        /// The operator itself.
        token: Bytes,
        /// The second operand.
        right: Bytes,
    },
    /// An operator before its operand.
    Unary {
        /// The operator itself.
        token: Bytes,
        /// The end of the operand.
        end: usize,
    },
    /// The condition behind the `if` of a match arm.
    Guard(Bytes),
    /// A match arm, with the bytes of its guard, or the end of its pattern.
    Arm(Result<Bytes, usize>),
}

/// A place with at least one mutant.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its kind.
    pub shape: Shape,
    /// The function that it is in, with its signature.
    pub function: Bytes,
    /// The line that names it, counted from 1.
    pub line: usize,
    /// The lines that it consists of.
    pub lines: RangeInclusive<usize>,
    /// Its mutants: a name, and what takes the place of the code.
    pub changes: Vec<(String, String)>,
}

/// Returns the names of a source's mutants as `NAME @ TEXT`, site by site. The text is that of the
/// line. A name that stands there once more has a number behind it.
#[must_use]
pub fn keys(text: &str, sites: &[Site]) -> Vec<Vec<String>> {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let mut seen = BTreeMap::new();
    let mut key = |site: &Site, name: &str| {
        let line = lines.get(site.line.saturating_sub(1)).unwrap_or(&"");
        let key = format!("{name} @ {line}");
        let count: &mut usize = seen.entry(key.clone()).or_default();
        *count += 1;
        if *count == 1 {
            key
        } else {
            format!("{key} #{count}")
        }
    };
    let of = |site: &Site| {
        site.changes
            .iter()
            .map(|(name, _)| key(site, name))
            .collect()
    };
    sites.iter().map(of).collect()
}
