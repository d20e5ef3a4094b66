//! Which mutants are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::packages;
use crate::process::output;
use crate::schema::Mutant;

/// The mutants that the caller asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Packages, and patterns of files as Git has them. None stands for all packages.
    pub places: Vec<String>,
    /// Only lines that have changed since this commit.
    pub changed: Option<String>,
    /// Only so many, the same each time for the same commit. Of lines that have changed, they are
    /// those of one package.
    pub sample: Option<usize>,
    /// Only those that survived when they were tried last.
    pub survivors: bool,
    /// With all tests of a package, those that take minutes included.
    pub every_test: bool,
}

impl Choice {
    /// Reads the arguments of the program.
    ///
    /// # Errors
    /// An argument is unknown, or its value is missing.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut choice = Self::default();
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--changed" => {
                    choice.changed = Some(arguments.next().context("--changed needs a commit")?)
                }
                "--sample" => {
                    let count = arguments.next().context("--sample needs a number")?;
                    choice.sample = Some(count.parse().context("--sample needs a number")?);
                }
                "--survivors" => choice.survivors = true,
                "--every-test" => choice.every_test = true,
                place if place.starts_with('-') => bail!("unknown option {place}"),
                _ => choice.places.push(argument),
            }
        }
        if choice.places.is_empty() && choice.changed.is_none() {
            bail!("name packages, or the commit of --changed");
        }
        Ok(choice)
    }

    /// Returns the packages that are asked for, each with its files if not all count.
    ///
    /// # Errors
    /// Git fails, or a pattern has no file.
    pub fn packages(&self, top: &Path) -> Result<BTreeMap<String, Option<BTreeSet<String>>>> {
        let mut packages = BTreeMap::new();
        if self.places.is_empty() {
            packages.extend(
                packages::names()
                    .into_iter()
                    .map(|name| (name.to_owned(), None)),
            );
        }
        for place in &self.places {
            let Some((package, _)) = place.split_once('/') else {
                packages.insert(place.clone(), None);
                continue;
            };
            let text = output(top, "git", &["ls-files", "--", &format!(":(glob){place}")])?;
            let files: BTreeSet<_> = text.lines().map(str::to_owned).collect();
            if files.is_empty() {
                bail!("no file is named {place}");
            }
            let known = packages
                .entry(package.to_owned())
                .or_insert_with(|| Some(BTreeSet::new()));
            if let Some(known) = known {
                known.extend(files);
            }
        }
        Ok(packages)
    }
}

impl Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(count) = self.sample {
            write!(f, "{count} of ")?;
        }
        match &*self.places.join(" ") {
            "" => write!(f, "all packages")?,
            places => write!(f, "{places}")?,
        }
        if let Some(since) = &self.changed {
            write!(f, ", lines changed since {since}")?;
        }
        if self.survivors {
            write!(f, ", survivors of the last run")
        } else {
            Ok(())
        }
    }
}

/// Lines of files: those that a commit has changed.
pub type Lines = BTreeMap<String, BTreeSet<usize>>;

/// Returns the lines of a package's sources that have changed since a commit.
///
/// # Errors
/// Git does not know the commit.
pub fn changed_lines(top: &Path, since: &str, package: &str) -> Result<Lines> {
    let folder = format!("{package}/src");
    let text = output(
        top,
        "git",
        &[
            "diff",
            "--no-ext-diff",
            "--no-prefix",
            "-U0",
            since,
            "--",
            &folder,
        ],
    )?;
    Ok(parse_diff(&text))
}

fn parse_diff(text: &str) -> Lines {
    let mut lines: Lines = BTreeMap::new();
    let mut file = String::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            path.clone_into(&mut file);
        } else if let Some(rest) = line.strip_prefix("@@ ") {
            let new = rest
                .split(' ')
                .find_map(|part| part.strip_prefix('+'))
                .unwrap_or_default();
            let (first, count) = new.split_once(',').unwrap_or((new, "1"));
            if let (Ok(first), Ok(count)) = (first.parse::<usize>(), count.parse::<usize>()) {
                lines
                    .entry(file.clone())
                    .or_default()
                    .extend(first..first + count);
            }
        }
    }
    lines
}

/// Returns true if one of a mutant's lines has changed.
#[must_use]
pub fn is_changed(lines: &Lines, mutant: &Mutant) -> bool {
    let of_file = lines.get(mutant.file());
    of_file.is_some_and(|lines| lines.range(mutant.lines.clone()).next().is_some())
}

/// Returns so many of the keys, in an order that only the keys and the seed decide.
pub fn sample<'k>(
    keys: impl Iterator<Item = &'k str>,
    count: usize,
    seed: &str,
) -> BTreeSet<String> {
    let place = |key: &&str| {
        let mut hasher = DefaultHasher::new();
        (seed, key).hash(&mut hasher);
        hasher.finish()
    };
    let mut keys: Vec<_> = keys.collect();
    keys.sort_by_cached_key(place);
    keys.into_iter().take(count).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Choice> {
        Choice::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let choice = parse("--changed main --sample 20").unwrap();
        assert_eq!(
            (choice.changed.as_deref(), choice.sample),
            (Some("main"), Some(20))
        );
        let choice = parse("--survivors cuzk-a").unwrap();
        assert!(choice.survivors && choice.places == ["cuzk-a"]);
        for wrong in ["", "--sample", "--sample x a", "--unknown a", "--changed"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_difference_has_its_new_lines() {
        let text = "+++ a/src/x.rs\n@@ -1 +2 @@\n+x\n@@ -5,2 +7,0 @@\n@@ -9 +10,2 @@ fn f\n";
        let lines = parse_diff(text);
        let expected = BTreeSet::from([2, 10, 11]);
        assert_eq!(lines, BTreeMap::from([("a/src/x.rs".to_owned(), expected)]));
        let mutant = |lines| Mutant {
            number: 1,
            key: "a/src/x.rs: replace".to_owned(),
            lines,
            function: 0,
            compiles: true,
        };
        assert!(is_changed(&lines, &mutant(8..=12)));
        assert!(!is_changed(&lines, &mutant(3..=9)));
    }

    #[test]
    fn a_sample_is_the_same_each_time() {
        let keys = ["a", "b", "c", "d", "e"];
        let taken = sample(keys.into_iter(), 2, "seed");
        assert_eq!(taken.len(), 2);
        assert_eq!(sample(keys.into_iter().rev(), 2, "seed"), taken);
        assert_ne!(sample(keys.into_iter(), 2, "another"), taken);
    }
}
