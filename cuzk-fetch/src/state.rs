//! The state of a run, under one lock: its files, its sources, and what each source has.
//!
//! No threads, no connections. The invariants:
//!
//! * No byte of a source that gave wrong bytes counts in a file that is not whole.
//! * A file has one length. Sources that tell another length are not asked for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::health::Health;
use crate::ranges::{ClaimId, Ranges, SourceId};
use crate::record::Record;
use crate::remote::Refusal;
use crate::{Event, FetchError, ListedFile, Outcome, Progress};

/// The answer of a source to the question for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It was not asked yet.
    Unknown,
    /// It has the file, of this length in bytes if it told one.
    Has(Option<u64>),
    /// It is not asked for this file again.
    Never(String),
}

/// The unfinished file on the disk.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) data: Arc<File>,
    pub(crate) ranges: Ranges,
    pub(crate) record: Record,
    /// The position up to which each claim is in the record.
    pub(crate) recorded: BTreeMap<ClaimId, u64>,
    /// The first byte that changed after it may have been hashed.
    pub(crate) rewind: Option<u64>,
}

impl Opened {
    /// Returns true if all bytes are there, and none was dropped since the last look at
    /// `rewind`. The digest is then of the bytes that are in the file now.
    pub(crate) fn is_as_hashed(&self) -> bool {
        self.rewind.is_none() && self.ranges.is_complete()
    }

    /// Makes the bytes of a source missing.
    pub(crate) fn drop_source(&mut self, source: SourceId) -> io::Result<()> {
        if let Some(first) = self.ranges.drop_source(source) {
            self.rewind = Some(self.rewind.map_or(first, |at| at.min(first)));
        }
        // The record must not tell later of bytes that its claims brought before.
        for (id, claim) in self.ranges.claims() {
            if claim.source == source {
                self.recorded.insert(id, claim.position);
            }
        }
        self.record.dropped(source)
    }

    /// Writes the bytes of a claim into the record that are not in it yet.
    pub(crate) fn record(&mut self, id: ClaimId, name: &str) -> io::Result<()> {
        let Some(claim) = self.ranges.get(id) else {
            return Ok(());
        };
        let from = self.recorded.insert(id, claim.position);
        let from = from.unwrap_or(claim.start);
        self.record.have(from..claim.position, claim.source, name)
    }
}

/// A file of a run.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) listed: ListedFile,
    /// Nothing stands for a file that is not there yet.
    pub(crate) outcome: Option<Outcome>,
    /// By source; those of earlier runs have no entry.
    pub(crate) standing: Vec<Standing>,
    /// Sources that send this file as a whole only.
    pub(crate) whole_only: BTreeSet<SourceId>,
    /// The length in bytes.
    pub(crate) length: Option<u64>,
    /// Of the file that was there before: the bytes that were hashed, and its length.
    pub(crate) looked_at: Option<(u64, u64)>,
    pub(crate) opened: Option<Opened>,
    /// All its bytes are there and right. It gets its name, and nothing is written to it.
    pub(crate) is_whole: bool,
    /// Sources that are not asked because they may have given wrong bytes.
    pub(crate) excluded: BTreeSet<SourceId>,
    /// The source whose bytes were fetched again from others to find wrong ones.
    pub(crate) on_trial: Option<SourceId>,
}

impl FileState {
    pub(crate) fn new(listed: ListedFile, sources: usize) -> Self {
        Self {
            listed,
            outcome: None,
            standing: vec![Standing::Unknown; sources],
            whole_only: BTreeSet::new(),
            length: None,
            looked_at: None,
            opened: None,
            is_whole: false,
            excluded: BTreeSet::new(),
            on_trial: None,
        }
    }
}

/// The state of a run.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) files: Vec<FileState>,
    pub(crate) sources: Vec<Health>,
    /// The lengths are known and the disk has room.
    pub(crate) is_ready: bool,
    pub(crate) is_stopped: bool,
    pub(crate) error: Option<FetchError>,
    pub(crate) events: Vec<Event>,
    failures_max: u32,
}

impl State {
    pub(crate) fn new(files: Vec<FileState>, sources: Vec<Health>, failures_max: u32) -> Self {
        Self {
            files,
            sources,
            is_ready: false,
            is_stopped: false,
            error: None,
            events: Vec::new(),
            failures_max: failures_max.max(1),
        }
    }

    /// Returns true if nothing more is to be done.
    pub(crate) fn is_over(&self) -> bool {
        let is_settled = |file: &FileState| file.outcome.is_some();
        self.is_stopped || self.error.is_some() || self.files.iter().all(is_settled)
    }

    /// Returns true if the bytes that a source gives of a file count.
    pub(crate) fn is_usable(&self, file: usize, source: SourceId) -> bool {
        let state = &self.files[file];
        let has_it = match state.standing.get(source) {
            Some(Standing::Has(Some(length))) => state.length == Some(*length),
            Some(Standing::Has(None)) => state.length.is_some(),
            _ => false,
        };
        let may = !state.excluded.contains(&source) && state.outcome.is_none();
        has_it && may && self.sources[source].out.is_none()
    }

    /// Returns true if a source has or may have a file.
    pub(crate) fn may_have(&self, file: usize, source: SourceId) -> bool {
        let state = &self.files[file];
        let is_unknown = state.standing.get(source) == Some(&Standing::Unknown);
        is_unknown && self.sources[source].out.is_none() || self.is_usable(file, source)
    }

    /// Records what a source said of a file.
    pub(crate) fn told(&mut self, file: usize, source: SourceId, standing: Standing) {
        if let Standing::Never(problem) = &standing {
            self.events.push(Event::SetAside {
                source: self.sources[source].name.clone(),
                file: self.files[file].listed.name.clone(),
                problem: problem.clone(),
            });
        }
        if let Some(told) = self.files[file].standing.get_mut(source) {
            *told = standing;
        }
        self.settle_length(file);
    }

    /// Records that a request failed that began at `began`.
    pub(crate) fn refused(&mut self, file: usize, source: SourceId, began: Instant, why: Refusal) {
        let health = &mut self.sources[source];
        match why {
            Refusal::Never(problem) => self.told(file, source, Standing::Never(problem)),
            Refusal::Later(problem, wait) => {
                if health.out.is_some() {
                    return;
                }
                health.failed(began, Instant::now(), &problem, wait, self.failures_max);
                let source_name = health.name.clone();
                self.events.push(match &health.out {
                    Some(problem) => Event::GivenUp {
                        source: source_name,
                        problem: problem.clone(),
                    },
                    None => Event::Retrying {
                        source: source_name,
                        problem,
                    },
                });
                self.settle_lengths();
            }
        }
    }

    /// Records that a source gave wrong bytes of a file. Its bytes in all files count no
    /// more.
    pub(crate) fn found_corrupt(&mut self, file: usize, source: SourceId) {
        let name = self.files[file].listed.name.clone();
        let health = &mut self.sources[source];
        health.is_corrupt = true;
        health.out = Some(format!("it gave wrong bytes of {name}"));
        self.events.push(Event::Corrupt {
            source: health.name.clone(),
            file: name,
        });
        for file in &mut self.files {
            // Others were excluded for a wrong digest that this source may have caused.
            file.excluded.clear();
            file.on_trial = None;
            if let Some(opened) = &mut file.opened
                && let Err(error) = opened.drop_source(source)
            {
                file.outcome = Some(Outcome::of_error(&error, format!("its record: {error}")));
            }
        }
        self.settle_lengths();
    }

    fn settle_lengths(&mut self) {
        for file in 0..self.files.len() {
            self.settle_length(file);
        }
    }

    /// Chooses the length that most sources tell. The present one stays if no other has
    /// more of them.
    fn settle_length(&mut self, index: usize) {
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        let file = &self.files[index];
        if file.outcome.is_some() || file.is_whole {
            return;
        }
        for (standing, health) in file.standing.iter().zip(&self.sources) {
            if let (Standing::Has(Some(length)), None) = (standing, &health.out) {
                *votes.entry(*length).or_default() += 1;
            }
        }
        let Some(&most) = votes.values().max() else {
            return;
        };
        if file.length.and_then(|length| votes.get(&length)) == Some(&most) {
            return;
        }
        // Of two lengths with as many sources, that of the source that was named first.
        let first = file.standing.iter().find_map(|standing| match standing {
            Standing::Has(Some(length)) if votes.get(length) == Some(&most) => Some(*length),
            _ => None,
        });
        let file = &mut self.files[index];
        file.length = first;
        if let (Some(opened), Some(length)) = (&mut file.opened, first) {
            opened.ranges.resize(length);
            opened.rewind = Some(0);
            if let Err(error) = opened.record.length(length) {
                file.outcome = Some(Outcome::of_error(&error, format!("its record: {error}")));
            }
        }
    }

    /// Ends a file, unless it has ended.
    pub(crate) fn end(&mut self, file: usize, outcome: Outcome) {
        let state = &mut self.files[file];
        if state.outcome.is_some() {
            return;
        }
        let file = state.listed.name.clone();
        match &outcome {
            Outcome::Fetched => self.events.push(Event::Done { file }),
            Outcome::AlreadyThere => self.events.push(Event::AlreadyThere { file }),
            Outcome::Failed(problem) | Outcome::Disk(problem) => self.events.push(Event::Failed {
                file,
                problem: problem.clone(),
            }),
            Outcome::Stopped => {}
        }
        state.outcome = Some(outcome);
    }

    /// Fails the files that no source can give any more.
    pub(crate) fn end_hopeless(&mut self) {
        for file in 0..self.files.len() {
            let state = &self.files[file];
            let is_under_way = |opened: &Opened| {
                let mut claims = opened.ranges.claims();
                opened.ranges.is_complete() || claims.any(|(_, claim)| claim.position < claim.end)
            };
            let is_fetched = state.is_whole || state.opened.as_ref().is_some_and(is_under_way);
            let has_hope = (0..self.sources.len()).any(|source| self.may_have(file, source));
            if state.outcome.is_none() && !is_fetched && !has_hope {
                let problem = self.reasons(file);
                self.end(file, Outcome::Failed(problem));
            }
        }
    }

    /// Returns the reason of each source for which it does not give a file.
    fn reasons(&self, file: usize) -> String {
        let state = &self.files[file];
        let reason =
            |source: SourceId, standing: &Standing| match (standing, &self.sources[source].out) {
                (_, Some(out)) => out.clone(),
                (Standing::Never(problem), _) => problem.clone(),
                (Standing::Has(Some(length)), _) if state.length != Some(*length) => {
                    format!("its file has {length} bytes, and others have another length")
                }
                _ => "it may have given wrong bytes of it".to_owned(),
            };
        let reasons = state.standing.iter().enumerate().map(|(source, standing)| {
            format!(
                "{}: {}",
                self.sources[source].name,
                reason(source, standing)
            )
        });
        let reasons: Vec<_> = reasons.collect();
        format!("no source has it ({})", reasons.join("; "))
    }

    /// Returns the bytes that have to be fetched, as far as lengths are known.
    pub(crate) fn needed_bytes(&self, kept_bytes: impl Fn(&FileState) -> u64) -> u64 {
        let open = self.files.iter().filter(|file| file.outcome.is_none());
        open.map(|file| file.length.unwrap_or(0).saturating_sub(kept_bytes(file)))
            .fold(0, u64::saturating_add)
    }

    /// Returns the progress of all files.
    pub(crate) fn progress(&self) -> Progress {
        let mut progress = Progress {
            files: self.files.len(),
            ..Progress::default()
        };
        for file in &self.files {
            let (hashed, of) = file.looked_at.unwrap_or_default();
            let length = file.length.unwrap_or(of);
            let is_there = matches!(file.outcome, Some(Outcome::AlreadyThere | Outcome::Fetched));
            let is_whole = is_there || file.is_whole;
            let opened = file.opened.as_ref();
            progress.total_bytes = progress.total_bytes.saturating_add(length);
            progress.files_done += usize::from(is_there);
            progress.present_bytes += if is_whole {
                length
            } else {
                opened.map_or(hashed, |opened| opened.ranges.present_bytes())
            };
        }
        progress
    }
}
