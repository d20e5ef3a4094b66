//! Finds the source whose bytes make the digest of a file wrong.
//!
//! A digest tells of a whole file only. The search costs as few bytes as it can:
//!
//! 1. If all bytes are from one source, it is that source.
//! 2. Small pieces of each source's bytes are compared with another source. Where two
//!    sources differ, a third decides. This finds a source that is wrong throughout.
//! 3. The bytes of the source that gave the fewest are fetched again from others. If the
//!    digest is right then, it was that source. If it is not, the next one is tried.
//!
//! The invariant: each failure leaves a source less from which the file has bytes, or a
//! source less that is asked. So the search ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::Outcome;
use crate::ranges::SourceId;
use crate::shared::Shared;
use crate::state::{Opened, Standing, State};

/// The bytes of a piece that is compared.
const PIECE_BYTES: u64 = 16 << 10;

/// The pieces of one source that are compared.
const PIECES: u64 = 8;

/// Is called when the digest of a file is right. A source whose bytes were fetched again
/// from others had given wrong ones.
pub(crate) fn passed(state: &mut State, file: usize) {
    if let Some(source) = state.files[file].on_trial.take() {
        state.found_corrupt(file, source);
    }
}

/// Is called when the digest of a file is wrong. Makes bytes missing that may be the wrong
/// ones.
///
/// # Errors
/// The record of the file cannot be written.
pub(crate) fn failed(shared: &Shared, file: usize, data: &File) -> Result<(), String> {
    let mut state = shared.state();
    if !is_as_hashed(&state, file) {
        return Ok(());
    }
    let bytes = bytes_of_sources(&state, file);
    if bytes.len() <= 1 {
        match bytes.keys().next() {
            Some(source) => state.found_corrupt(file, *source),
            None => refuse_empty(&mut state, file),
        }
        return Ok(());
    }
    drop(state);
    let (wrong, disputed) = compare(shared, file, data, &bytes);
    let mut state = shared.state();
    if !is_as_hashed(&state, file) {
        return Ok(());
    }
    if let Some(source) = wrong {
        state.found_corrupt(file, source);
        return Ok(());
    }
    let tried = choose(&state, file, &bytes, &disputed);
    let Some(source) = tried else {
        let problem = "its digest is wrong, and no other source is left to compare with";
        state.end(file, Outcome::Failed(problem.to_owned()));
        return Ok(());
    };
    let state = &mut state.files[file];
    state.excluded.insert(source);
    state.on_trial = Some(source);
    let dropped = state
        .opened
        .as_mut()
        .map(|opened| opened.drop_source(source));
    dropped
        .unwrap_or(Ok(()))
        .map_err(|error| format!("its record cannot be written: {error}"))
}

/// Returns true if the wrong digest is of the bytes that are there now. Another file may have
/// shown meanwhile that a source is wrong. The bytes of that source are gone then.
fn is_as_hashed(state: &State, file: usize) -> bool {
    let opened = state.files[file].opened.as_ref();
    opened.is_some_and(Opened::is_as_hashed)
}

/// Returns how many bytes of a file are from each source.
fn bytes_of_sources(state: &State, file: usize) -> BTreeMap<SourceId, u64> {
    let mut bytes = BTreeMap::new();
    let opened = state.files[file].opened.iter();
    for (range, source) in opened.flat_map(|opened| opened.ranges.spans()) {
        *bytes.entry(source).or_default() += range.end - range.start;
    }
    bytes
}

/// Sets the sources aside that say that a file is empty, which it is not.
fn refuse_empty(state: &mut State, file: usize) {
    for source in 0..state.files[file].standing.len() {
        if state.files[file].standing[source] == Standing::Has(Some(0)) {
            let problem = "its file is empty, and the digest is of another".to_owned();
            state.told(file, source, Standing::Never(problem));
        }
    }
}

/// Returns the source whose bytes are fetched again: the one with the fewest bytes of those
/// that another source can replace. Sources that differ from another come first.
fn choose(
    state: &State,
    file: usize,
    bytes: &BTreeMap<SourceId, u64>,
    disputed: &[SourceId],
) -> Option<SourceId> {
    let can_replace = |source: SourceId| {
        let mut others = (0..state.sources.len()).filter(|other| *other != source);
        others.any(|other| state.is_usable(file, other))
    };
    let candidates = bytes.iter().filter(|(source, _)| can_replace(**source));
    let rank = |(source, bytes): &(&SourceId, &u64)| (!disputed.contains(source), **bytes);
    candidates.min_by_key(rank).map(|(source, _)| *source)
}

/// Compares pieces of each source's bytes with another source, the first pieces of all
/// sources first. Returns a source that is wrong, or those that differ from another where no
/// third could decide.
fn compare(
    shared: &Shared,
    file: usize,
    data: &File,
    bytes: &BTreeMap<SourceId, u64>,
) -> (Option<SourceId>, Vec<SourceId>) {
    let mut disputed = Vec::new();
    for number in 0..PIECES {
        for &source in bytes.keys() {
            let state = shared.state();
            if state.is_over() {
                return (None, disputed);
            }
            let piece = piece(&state, file, source, number);
            let others = judges(&state, file, source, number);
            drop(state);
            match piece.map(|piece| judge(shared, file, data, source, &piece, &others)) {
                Some(Verdict::Wrong(found)) => return (Some(found), disputed),
                Some(Verdict::Disputed(other)) => disputed.extend([source, other]),
                Some(Verdict::Same) | None => {}
            }
        }
        if !disputed.is_empty() {
            break;
        }
    }
    (None, disputed)
}

/// The result of comparing a piece with other sources.
enum Verdict {
    Same,
    /// Two sources agree, and this one differs.
    Wrong(SourceId),
    /// The source and this one differ, and no third could decide.
    Disputed(SourceId),
}

fn judge(
    shared: &Shared,
    file: usize,
    data: &File,
    source: SourceId,
    piece: &Range<u64>,
    others: &[SourceId],
) -> Verdict {
    let mut own = vec![0; usize::try_from(piece.end - piece.start).unwrap_or(0)];
    if data.read_exact_at(&mut own, piece.start).is_err() {
        return Verdict::Same;
    }
    let mut seen: Option<(SourceId, Vec<u8>)> = None;
    for &other in others {
        let Some(theirs) = read(shared, file, other, piece) else {
            continue;
        };
        match &seen {
            None if theirs == own => return Verdict::Same,
            None => seen = Some((other, theirs)),
            Some((second, _)) if theirs == own => return Verdict::Wrong(*second),
            Some((_, second)) if theirs == *second => return Verdict::Wrong(source),
            Some(_) => {}
        }
    }
    match seen {
        Some((other, _)) => Verdict::Disputed(other),
        None => Verdict::Same,
    }
}

/// Returns the sources that can be asked for a piece of another's bytes. Each piece begins
/// with another one, so that no single source is believed for all.
fn judges(state: &State, file: usize, source: SourceId, number: u64) -> Vec<SourceId> {
    let may = |other: &SourceId| {
        let sends_ranges = !state.files[file].whole_only.contains(other);
        *other != source && sends_ranges && state.is_usable(file, *other)
    };
    let mut others: Vec<_> = (0..state.sources.len()).filter(may).collect();
    let first = usize::try_from(number).unwrap_or(0) % others.len().max(1);
    others.rotate_left(first);
    others
}

/// Reads a piece of a file from a source, if it gives it.
fn read(shared: &Shared, file: usize, source: SourceId, piece: &Range<u64>) -> Option<Vec<u8>> {
    let state = shared.state();
    let (listed, length) = (state.files[file].listed.clone(), state.files[file].length?);
    let place = state.sources[source].source.clone()?;
    drop(state);
    let stream = shared.client.stream(&place, &listed, piece.clone(), length);
    let mut stream = stream.ok().filter(|stream| stream.range == *piece)?;
    let mut bytes = vec![0; usize::try_from(piece.end - piece.start).ok()?];
    stream.reader.read_exact(&mut bytes).ok()?;
    // The end of the body frees the connection for the next request.
    let _ = stream.reader.read(&mut [0]);
    Some(bytes)
}

/// Returns a piece of a source's bytes. The pieces are as far from each other as they can be:
/// the first and the last are at the ends.
fn piece(state: &State, file: usize, source: SourceId, number: u64) -> Option<Range<u64>> {
    let opened = state.files[file].opened.as_ref()?;
    let spans = opened.ranges.spans().filter(|(_, owner)| *owner == source);
    let spans: Vec<_> = spans.map(|(range, _)| range).collect();
    let total: u64 = spans.iter().map(|range| range.end - range.start).sum();
    // A position in the source's bytes, set one after the other.
    let at = u128::from(total.checked_sub(1)?) * u128::from(number) / u128::from(PIECES - 1);
    let mut at = u64::try_from(at).ok()?;
    for range in spans {
        let bytes = range.end - range.start;
        if at < bytes {
            let latest = range.end.saturating_sub(PIECE_BYTES).max(range.start);
            let start = (range.start + at).min(latest);
            return Some(start..range.end.min(start.saturating_add(PIECE_BYTES)));
        }
        at -= bytes;
    }
    None
}
