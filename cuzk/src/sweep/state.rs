//! The measurements of a sweep, kept in a file so that an interrupted sweep can go on.
//!
//! The file has one JSON object a line: first the sweep, then each measurement. The
//! invariant: a line that an interruption cut short is not a measurement. It is cut off
//! before anything else is written.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::arm::Setting;
use super::sample::Sample;
use crate::failure::{Failure, failed};
use crate::output;

/// The properties that all measurements of a file have in common.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) sector_size: String,
    pub(super) request: Option<PathBuf>,
    pub(super) partitions: Option<usize>,
    pub(super) cores: usize,
    pub(super) gpu_threads: Option<usize>,
    pub(super) double: Option<[u64; 2]>,
    /// The resolved configuration, as a file.
    pub(super) config: String,
}

/// A measurement, with its place in the sweep.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) setting: Setting,
    pub(super) round: u32,
    pub(super) sample: Sample,
}

/// The measurements so far.
#[derive(Debug)]
pub(super) struct State {
    file: Option<File>,
    measured: Vec<Measured>,
}

impl State {
    /// Opens the file and reads its measurements. Without a file nothing is kept.
    pub(super) fn open(path: Option<&Path>, subject: &Subject) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self {
                file: None,
                measured: Vec::new(),
            });
        };
        let at = |error: &std::io::Error| Failure::file(path, error);
        let options = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .clone();
        let mut file = options.open(path).map_err(|error| at(&error))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| at(&error))?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let measured = read(&text[..whole], subject, path)?;
        file.set_len(whole as u64).map_err(|error| at(&error))?;
        if whole == 0 {
            let line = serde_json::to_string(subject).map_err(failed)?;
            writeln!(file, "{line}").map_err(|error| at(&error))?;
        }
        Ok(Self {
            file: Some(file),
            measured,
        })
    }

    /// Returns true if this setting was measured in this round.
    pub(super) fn has(&self, setting: Setting, round: u32) -> bool {
        let mut measured = self.measured.iter();
        measured.any(|measured| measured.setting == setting && measured.round == round)
    }

    /// Returns the samples of a setting, with their rounds.
    pub(super) fn of(&self, setting: Setting) -> Vec<(u32, &Sample)> {
        let of_it = self
            .measured
            .iter()
            .filter(|measured| measured.setting == setting);
        of_it
            .map(|measured| (measured.round, &measured.sample))
            .collect()
    }

    /// Adds a measurement, and writes it into the file.
    pub(super) fn add(&mut self, measured: Measured) -> Result<(), Failure> {
        if let Some(file) = &mut self.file {
            let line = serde_json::to_string(&measured).map_err(failed)?;
            writeln!(file, "{line}").map_err(|error| failed(format!("--state: {error}")))?;
        }
        self.measured.push(measured);
        Ok(())
    }
}

/// Reads whole lines. All must be of `subject`.
fn read(text: &[u8], subject: &Subject, path: &Path) -> Result<Vec<Measured>, Failure> {
    let problem = |problem: &str| Failure::input(format!("{}: {problem}", output::shown(path)));
    let bad = |line: usize| problem(&format!("line {line} is not of a sweep; name another file"));
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let Some(first) = lines.next() else {
        return Ok(Vec::new());
    };
    let of: Subject = serde_json::from_slice(first).map_err(|_| bad(1))?;
    if of != *subject {
        return Err(problem(
            "it has another sweep: another kind, size, request, configuration, machine or \
             version; name another file with --state",
        ));
    }
    let measured = lines
        .enumerate()
        .map(|(at, line)| serde_json::from_slice(line).map_err(|_| bad(at + 2)));
    measured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::arm::{Arm, Pipeline};

    fn subject(kind: &str) -> Subject {
        Subject {
            version: "1".to_owned(),
            kind: kind.to_owned(),
            sector_size: "2KiB".to_owned(),
            request: None,
            partitions: None,
            cores: 2,
            gpu_threads: None,
            double: None,
            config: String::new(),
        }
    }

    #[test]
    fn a_cut_line_is_forgotten_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let setting = Setting {
            pipeline: Pipeline::Ours,
            arm: Arm::NONE,
            c: 2,
            j: 1,
        };
        let measured = |round| Measured {
            setting,
            round,
            sample: Sample::default(),
        };
        let mut state = State::open(Some(&path), &subject("porep")).unwrap();
        state.add(measured(1)).unwrap();
        drop(state);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"setting\":"].concat()).unwrap();
        let mut state = State::open(Some(&path), &subject("porep")).unwrap();
        assert!(state.has(setting, 1) && !state.has(setting, 2));
        state.add(measured(2)).unwrap();
        drop(state);
        let state = State::open(Some(&path), &subject("porep")).unwrap();
        assert_eq!(state.of(setting).len(), 2);
        let error = State::open(Some(&path), &subject("snap-deals")).unwrap_err();
        assert!(error.message().unwrap().contains("another sweep"));
        std::fs::write(&path, "nothing\n").unwrap();
        let error = State::open(Some(&path), &subject("porep")).unwrap_err();
        assert!(error.message().unwrap().contains("line 1"));
    }
}
