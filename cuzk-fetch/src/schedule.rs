//! Which source is asked next, and for which bytes.
//!
//! No threads, no connections. The invariants: missing bytes are asked for in their order,
//! so that a file can be hashed while it comes. Bytes that a source is asked for are taken
//! from it only for another source that gives them earlier.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::health::{Health, rate};
use crate::ranges::{Claim, ClaimId, SourceId};
use crate::state::State;

/// The bytes that a source of unknown rate is asked for.
const FIRST_BYTES: u64 = 4 << 20;

/// The fewest bytes that a source is asked for.
const LEAST_BYTES: u64 = 1 << 20;

/// The time that a range should take. It bounds what a kill costs.
const RANGE_TIME_S: f64 = 2.0;

/// The rate of a source that is not known yet, in bytes a second.
const UNKNOWN_RATE_BYTES_S: f64 = 1e6;

/// The age of a claim before which nothing is taken from it.
const GRACE: Duration = Duration::from_secs(1);

/// The fewest bytes that are worth a request.
const WORTH_BYTES: u64 = 64 << 10;

/// The time between two looks for bytes that can be taken from another source.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes that a source is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) file: usize,
    pub(crate) source: SourceId,
    pub(crate) claim: ClaimId,
    pub(crate) range: Range<u64>,
    /// The length of the file in bytes.
    pub(crate) length: u64,
}

/// The next work of a worker.
#[derive(Debug)]
pub(crate) enum Next {
    /// It asks a source.
    Job(Job),
    /// It waits so long, or until something changes.
    Wait(Duration),
    /// It ends.
    End,
}

/// When each claim was made.
pub(crate) type Began = std::collections::HashMap<(usize, ClaimId), Instant>;

/// Returns the next work. Claims its bytes. `range_bytes_max` is the most that a source is
/// asked for at once.
pub(crate) fn next(
    state: &mut State,
    began: &mut Began,
    range_bytes_max: u64,
    now: Instant,
) -> Next {
    if state.is_over() {
        return Next::End;
    }
    let mut ready: Vec<_> = (0..state.sources.len())
        .filter(|source| state.sources[*source].is_ready(now))
        .collect();
    // Sources with the fewest claims first. The sort keeps their order otherwise.
    ready.sort_by_key(|source| state.sources[*source].active);
    let job = ready
        .iter()
        .find_map(|source| claim(state, *source, range_bytes_max));
    let job = job.or_else(|| {
        // The fastest source has the most to gain.
        ready.sort_by(|a, b| own_rate(&state.sources[*b]).total_cmp(&own_rate(&state.sources[*a])));
        let mut sources = ready.iter();
        sources.find_map(|source| take(state, began, *source, now))
    });
    match job {
        Some(job) => {
            state.sources[job.source].active += 1;
            began.insert((job.file, job.claim), now);
            Next::Job(job)
        }
        None => Next::Wait(LOOK),
    }
}

/// Claims the first missing bytes of the first file that a source can give.
fn claim(state: &mut State, source: SourceId, range_bytes_max: u64) -> Option<Job> {
    let wanted = wanted_bytes(&state.sources[source], range_bytes_max);
    for file in 0..state.files.len() {
        if !state.is_usable(file, source) {
            continue;
        }
        let is_whole_only = state.files[file].whole_only.contains(&source);
        if is_whole_only && !may_send_whole(state, file, source) {
            continue;
        }
        let bytes = if is_whole_only { u64::MAX } else { wanted };
        let Some(opened) = &mut state.files[file].opened else {
            continue;
        };
        if let Some(claim) = opened.ranges.claim(source, bytes) {
            return job(state, file, source, claim);
        }
    }
    None
}

/// Returns true if a source that sends a whole file only should send it. Then nothing of the
/// file is there yet, or no other source can give the missing bytes. It sends a file once at
/// a time.
fn may_send_whole(state: &State, file: usize, source: SourceId) -> bool {
    let is_only = is_only_source(state, file, source);
    state.files[file].opened.as_ref().is_some_and(|opened| {
        let mut claims = opened.ranges.claims();
        let sends_it = claims.any(|(_, claim)| claim.source == source);
        let is_from_start = opened.ranges.first_missing() == Some(0);
        !sends_it && (is_from_start || is_only)
    })
}

/// Returns true if no other source can give ranges of a file.
pub(crate) fn is_only_source(state: &State, file: usize, source: SourceId) -> bool {
    let others = (0..state.sources.len()).filter(|other| *other != source);
    let mut others = others.filter(|other| !state.files[file].whole_only.contains(other));
    !others.any(|other| state.is_usable(file, other))
}

fn job(state: &State, file: usize, source: SourceId, claim: ClaimId) -> Option<Job> {
    let ranges = &state.files[file].opened.as_ref()?.ranges;
    let claimed = ranges.get(claim)?;
    Some(Job {
        file,
        source,
        claim,
        range: claimed.position..claimed.end,
        length: ranges.length(),
    })
}

/// Takes bytes from the claim of another source that would have them latest.
fn take(state: &mut State, began: &Began, source: SourceId, now: Instant) -> Option<Job> {
    let own = own_rate(&state.sources[source]);
    let mut found: Option<(f64, usize, ClaimId, u64)> = None;
    for file in 0..state.files.len() {
        let is_usable =
            state.is_usable(file, source) && !state.files[file].whole_only.contains(&source);
        let Some(opened) = state.files[file].opened.as_ref().filter(|_| is_usable) else {
            continue;
        };
        for (id, claim) in opened.ranges.claims() {
            let age = began
                .get(&(file, id))
                .map(|at| now.saturating_duration_since(*at));
            let Some(age) = age.filter(|age| claim.source != source && *age >= GRACE) else {
                continue;
            };
            let Some((gain_s, at)) = gain(claim, age, own) else {
                continue;
            };
            if found.is_none_or(|(best_s, ..)| gain_s > best_s) {
                found = Some((gain_s, file, id, at));
            }
        }
    }
    let (_, file, id, at) = found?;
    let ranges = &mut state.files[file].opened.as_mut()?.ranges;
    let claim = ranges.split(id, at, source)?;
    job(state, file, source, claim)
}

/// Returns the first byte that a source of rate `own` should take from a claim of this age.
/// The seconds that are gained come first.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is an estimate, and a share of the bytes is not negative"
)]
fn gain(claim: Claim, age: Duration, own: f64) -> Option<(f64, u64)> {
    let left = claim.end - claim.position;
    let theirs = rate(claim.position - claim.start, age);
    let kept = left as f64 * (theirs / (theirs + own));
    let kept = (kept as u64).min(left);
    // A small rest is worth no request. Their connection may give nothing any more.
    let kept = if kept < WORTH_BYTES { 0 } else { kept };
    let is_worth = left - kept >= WORTH_BYTES || theirs < own / 4.0;
    let gain_s = left as f64 / theirs.max(1.0) - (left - kept) as f64 / own;
    (is_worth && left > 0 && gain_s > 0.0).then_some((gain_s, claim.position + kept))
}

fn own_rate(health: &Health) -> f64 {
    health.rate_bytes_s.unwrap_or(UNKNOWN_RATE_BYTES_S)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is not negative, and a large one is limited below"
)]
fn wanted_bytes(health: &Health, range_bytes_max: u64) -> u64 {
    let wanted = health.rate_bytes_s.map(|rate| (rate * RANGE_TIME_S) as u64);
    let wanted = wanted.unwrap_or(FIRST_BYTES).max(LEAST_BYTES);
    wanted.min(range_bytes_max.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::Ranges;

    /// The claim of a source that brought `bytes` of the first 1,000 KiB of a file.
    fn claim_with(bytes: u64) -> Claim {
        let mut ranges = Ranges::new(1000 << 10);
        let id = ranges.claim(0, u64::MAX).unwrap();
        ranges.write(id, bytes);
        ranges.wrote(id);
        ranges.get(id).unwrap()
    }

    #[test]
    fn bytes_are_divided_so_that_both_end_at_once() {
        // Both have 100 KiB a second, and 900 KiB are left.
        let (gain_s, at) = gain(claim_with(100 << 10), GRACE, 102_400.0).unwrap();
        assert_eq!((gain_s.round(), at), (5.0, 550 << 10));
    }

    #[test]
    fn all_is_taken_from_a_source_that_gives_nothing() {
        let (_, at) = gain(claim_with(0), GRACE, 1e6).unwrap();
        assert_eq!(at, 0);
        // Even a rest that is worth no request otherwise.
        let (_, at) = gain(claim_with(999 << 10), Duration::from_secs(3600), 1e6).unwrap();
        assert_eq!(at, 999 << 10);
    }

    #[test]
    fn nothing_is_taken_where_nothing_is_gained() {
        assert_eq!(gain(claim_with(1000 << 10), GRACE, 1e6), None);
        assert_eq!(gain(claim_with(999 << 10), GRACE, 1e6), None);
    }

    #[test]
    fn a_source_is_asked_for_what_it_gives_in_a_short_time() {
        let mut health = Health::new("a".to_owned(), None);
        assert_eq!(wanted_bytes(&health, u64::MAX), FIRST_BYTES);
        assert_eq!(wanted_bytes(&health, 1000), 1000);
        for (rate, expected) in [(0.0, LEAST_BYTES), (8e6, 16_000_000), (1e30, 64 << 20)] {
            health.rate_bytes_s = Some(rate);
            assert_eq!(wanted_bytes(&health, 64 << 20), expected);
        }
    }
}
