//! A committed list of places that exceed a limit. The list can only shrink.
//!
//! A line has the form `key | most | reason`. A line that begins with `#` is a comment.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Error, Result};

/// The places that may exceed a limit, each with the most that it may have.
#[derive(Clone, Debug)]
pub struct Exceptions {
    file: String,
    listed: BTreeMap<String, usize>,
}

impl Exceptions {
    /// Parses the text of the list `file`.
    ///
    /// # Errors
    /// A line has another form, no reason, or the key of another line.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let mut listed = BTreeMap::new();
        for line in text
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'))
        {
            let error = || {
                Error::new(
                    Path::new(file),
                    format!("`{line}`: write `key | most | reason`"),
                )
            };
            let mut parts = line.splitn(3, " | ");
            let key = parts.next().ok_or_else(error)?;
            let most = parts.next().and_then(|most| most.parse().ok());
            let has_reason = parts.next().is_some_and(|reason| !reason.trim().is_empty());
            let most = most.filter(|_| has_reason).ok_or_else(error)?;
            if listed.insert(key.to_owned(), most).is_some() {
                return Err(Error::new(
                    Path::new(file),
                    format!("`{key}` is listed twice"),
                ));
            }
        }
        Ok(Self {
            file: file.to_owned(),
            listed,
        })
    }

    /// Returns a line for each place that is over `limit` and not listed, that grew
    /// beyond its listed figure, or that is listed without need.
    #[must_use]
    pub fn violations(&self, limit: usize, measured: &BTreeMap<String, usize>) -> Vec<String> {
        let file = &self.file;
        let mut violations = Vec::new();
        for (key, now) in measured.iter().filter(|(_, now)| **now > limit) {
            match self.listed.get(key) {
                None => violations.push(format!(
                    "{key}: {now}, more than {limit}; divide it, or add `{key} | {now} | REASON` to {file}"
                )),
                Some(most) if now > most => {
                    violations.push(format!("{key}: {now}, but {file} has {most}; divide it"));
                }
                Some(_) => {}
            }
        }
        for key in self.listed.keys() {
            if measured.get(key).is_none_or(|now| *now <= limit) {
                violations.push(format!(
                    "{key}: at most {limit}; remove its line from {file}"
                ));
            }
        }
        violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Comment.\na | 12 | it is a table\n";

    fn violations(measured: &[(&str, usize)]) -> Vec<String> {
        let measured = measured.iter().map(|(key, now)| ((*key).to_owned(), *now));
        let list = Exceptions::parse("list.txt", LIST).unwrap();
        list.violations(10, &measured.collect())
    }

    #[test]
    fn a_listed_place_may_be_as_long_as_noted() {
        assert_eq!(violations(&[("a", 12), ("b", 10)]), [""; 0]);
    }

    #[test]
    fn a_listed_place_may_not_grow() {
        let expected = ["a: 13, but list.txt has 12; divide it"];
        assert_eq!(violations(&[("a", 13)]), expected);
    }

    #[test]
    fn a_place_that_became_small_leaves_the_list() {
        let expected = ["a: at most 10; remove its line from list.txt"];
        assert_eq!(violations(&[("a", 10)]), expected);
        assert_eq!(violations(&[]), expected);
    }

    #[test]
    fn another_long_place_is_a_violation() {
        let expected = ["b: 11, more than 10; divide it, or add `b | 11 | REASON` to list.txt"];
        assert_eq!(violations(&[("a", 12), ("b", 11)]), expected);
    }

    #[test]
    fn a_line_needs_a_reason() {
        assert!(Exceptions::parse("list.txt", "a | 12\n").is_err());
        assert!(Exceptions::parse("list.txt", "a | 12 | \n").is_err());
    }
}
