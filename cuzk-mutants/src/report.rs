//! The counts of a run, beside the committed list of mutants that no test kills.

use std::collections::BTreeSet;

use crate::schema::Mutant;
use crate::trial::Verdict;

/// The committed list, relative to the top.
pub const LIST: &str = ".cargo/mutants-survivors";

/// Counts of mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// They do not compile.
    pub uncompiled: usize,
    /// A test failed.
    pub killed: usize,
    /// A test did not end.
    pub hung: usize,
    /// No test notices them, and the list has the reason.
    pub listed: usize,
    /// No test notices them. In the order of the sources.
    pub survivors: Vec<String>,
    /// They were not tried, since the time was up.
    pub untried: usize,
}

impl Report {
    /// Counts mutants. `list` is the text of the committed list.
    #[must_use]
    pub fn new<'m>(
        tried: impl Iterator<Item = (&'m Mutant, Option<&'m Verdict>)>,
        list: &str,
    ) -> Self {
        let listed: BTreeSet<_> = listed(list).collect();
        let mut report = Self::default();
        for (mutant, verdict) in tried {
            match verdict {
                _ if !mutant.compiles => report.uncompiled += 1,
                None => report.untried += 1,
                Some(Verdict::Killed(_)) => report.killed += 1,
                Some(Verdict::Hung(_)) => report.hung += 1,
                Some(_) if listed.contains(&*mutant.key) => report.listed += 1,
                Some(Verdict::Missed) => report.survivors.push(mutant.key.clone()),
                Some(Verdict::Unreached) => report
                    .survivors
                    .push(format!("{} (not reached)", mutant.key)),
            }
        }
        report
    }

    /// Adds the counts of another report.
    pub fn add(&mut self, other: Self) {
        self.uncompiled += other.uncompiled;
        self.killed += other.killed;
        self.hung += other.hung;
        self.listed += other.listed;
        self.survivors.extend(other.survivors);
        self.untried += other.untried;
    }

    /// Returns the last line of a run.
    #[must_use]
    pub fn line(&self, what: &str) -> String {
        if *self == Self::default() {
            return format!("== passed: {what}: no line has a mutant");
        }
        let found = self.killed + self.hung;
        let tried = found + self.survivors.len();
        let percent = (1000 * found).checked_div(tried).unwrap_or(1000);
        let passed = match (self.survivors.is_empty(), self.untried) {
            (false, _) => "failed",
            (true, 0) => "passed",
            (true, _) => "not ended",
        };
        let untried = match self.untried {
            0 => String::new(),
            untried => format!(", {untried} not tried in time"),
        };
        format!(
            "== {passed}: {what}: {found} of {tried} mutants killed ({}.{} %), {} of them hung; {} listed with a reason, {} did not compile{untried}",
            percent / 10,
            percent % 10,
            self.hung,
            self.listed,
            self.uncompiled
        )
    }
}

/// Returns the mutants of a list. A line that begins with a space is a reason.
pub fn listed(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter(|line| !line.starts_with(['#', ' ']) && !line.is_empty())
}

/// Returns the mutants of a list that are none of these, and whose files are. Their lines have changed.
#[must_use]
pub fn stale(list: &str, mutants: &[Mutant]) -> Vec<String> {
    let known: BTreeSet<_> = mutants.iter().map(|mutant| &*mutant.key).collect();
    let files: BTreeSet<_> = mutants.iter().map(Mutant::file).collect();
    let of_files = listed(list).filter(|key| {
        key.split_once(": ")
            .is_some_and(|(file, _)| files.contains(file))
    });
    of_files
        .filter(|key| !known.contains(key))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_is_listed_or_reported() {
        let mutant = |number, compiles| Mutant {
            number,
            key: format!("a/src/x.rs: change {number} @ x"),
            lines: 1..=1,
            function: 0,
            compiles,
        };
        let mutants: Vec<_> = (1..=6).map(|number| mutant(number, number != 1)).collect();
        let verdicts = [
            None,
            Some(Verdict::Killed("t".to_owned())),
            Some(Verdict::Hung("t".to_owned())),
            Some(Verdict::Missed),
            Some(Verdict::Unreached),
            None,
        ];
        let list = "# A list.\na/src/x.rs: change 4 @ x\n    It changes nothing.\na/src/x.rs: change 9 @ x\nb/src/y.rs: c @ z\n";
        let report = Report::new(
            mutants.iter().zip(verdicts.iter().map(Option::as_ref)),
            list,
        );
        assert_eq!(report.survivors, ["a/src/x.rs: change 5 @ x (not reached)"]);
        assert_eq!(
            report.line("a"),
            "== failed: a: 2 of 3 mutants killed (66.6 %), 1 of them hung; 1 listed with a reason, 1 did not compile, 1 not tried in time"
        );
        let cut = Report::new(mutants[1..2].iter().map(|mutant| (mutant, None)), list);
        assert_eq!(
            cut.line("a"),
            "== not ended: a: 0 of 0 mutants killed (100.0 %), 0 of them hung; 0 listed with a reason, 0 did not compile, 1 not tried in time"
        );
        assert_eq!(stale(list, &mutants), ["a/src/x.rs: change 9 @ x"]);
        let verdict = Verdict::Hung("t with a space".to_owned());
        assert_eq!(Verdict::parse(&verdict.line()), Some(verdict));
    }
}
