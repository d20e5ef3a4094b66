//! Each key of the configuration that the daemon or a command reads, and its effect.
//!
//! A row of the table gives a key two values and tells them apart by what the program does.
//! The other keys are the engine's: `cuzk-core/tests/engine/settings`.

mod case;
mod rows;

use std::collections::BTreeSet;

use cuzk_core::config::SECTIONS;
use cuzk_testing::KEYS_OF_THE_ENGINE;

use self::case::{Case, Served, until_shown};
use self::rows::rows;

/// The way in which two values are told apart.
enum Effect {
    /// A daemon shows the one with the first value, and the other with the second.
    Shows(fn(&Served) -> String),
    /// A command, to which the configuration is given, ends and says so. With the other value
    /// it does not.
    Says(&'static [&'static str]),
    /// The transport between machines is told so. Without a server nobody else is. With one, the tests of
    /// `cuzk-cluster/tests/nats/limits.rs` see that the server has it.
    Tells(fn(&Case) -> String),
}

struct Row {
    /// `section.key`.
    key: &'static str,
    /// Two values, as a file has them. `FOLDER` is a folder of the case.
    values: [&'static str; 2],
    /// The rest of the file.
    more: &'static str,
    effect: Effect,
    /// The sight with each value.
    seen: [&'static str; 2],
}

impl Row {
    fn check(&self) {
        assert_ne!(self.seen[0], self.seen[1], "{}", self.key);
        for (index, value) in self.values.iter().enumerate() {
            let case = Case::new(self.key, value, self.more);
            let (seen, other) = (self.seen[index], self.seen[1 - index]);
            let what = format!("{} = {value}", self.key);
            match self.effect {
                Effect::Shows(show) => until_shown(&what, &Served::start(case), show, seen),
                Effect::Says(arguments) => {
                    let said = case.says(arguments);
                    assert!(said.contains(seen), "{what}: {seen:?} is not in: {said}");
                    assert!(!said.contains(other), "{what}: {other:?} is in: {said}");
                }
                Effect::Tells(tell) => assert_eq!(tell(&case), seen, "{what}"),
            }
        }
    }
}

/// Runs the rows of these sections.
fn check(sections: &[&str]) {
    let rows = rows();
    let is_of = |row: &&Row| sections.iter().any(|section| row.section() == *section);
    let rows: Vec<_> = rows.iter().filter(is_of).collect();
    assert!(!rows.is_empty(), "{sections:?}");
    rows.into_iter().for_each(Row::check);
}

impl Row {
    fn section(&self) -> &str {
        self.key.split('.').next().unwrap()
    }
}

/// A key that is added without a row fails here. If it is put on the list of the engine's keys,
/// it fails in the table of the engine.
#[test]
fn each_key_has_a_row() {
    let all = SECTIONS.iter().flat_map(|(section, keys)| {
        let keys = keys.iter();
        keys.map(move |(key, _)| format!("{section}.{key}"))
    });
    let all: BTreeSet<_> = all.collect();
    let rows = rows();
    let here: BTreeSet<_> = rows.iter().map(|row| row.key.to_owned()).collect();
    let engine = BTreeSet::from(KEYS_OF_THE_ENGINE.map(str::to_owned));
    assert_eq!(here.len(), rows.len(), "a key has two rows");
    assert!(here.is_disjoint(&engine), "a key is in both tables");
    assert_eq!(&here | &engine, all);
}

#[test]
fn each_key_of_a_process_has_its_effect() {
    check(&["srs", "synthesis", "gpus", "cpu", "pipeline", "logging"]);
}

#[test]
fn each_key_of_the_server_has_its_effect() {
    check(&["server"]);
}

#[test]
fn each_key_of_the_cluster_has_its_effect() {
    check(&["cluster"]);
}
