//! Which bytes of a file are there, which are under way, and which are missing.
//!
//! No bytes and no files: only their positions. The invariants:
//!
//! * Each byte is missing, in one claim, or present from one source.
//! * A claim ends nowhere before the bytes that its owner writes at this moment, so two
//!   owners never write the same byte.
//!
//! A property test compares it with a list that has an entry for each byte.

use std::collections::BTreeMap;
use std::ops::Range;

/// The index of a source in the list of a run.
pub(crate) type SourceId = usize;

/// The name of a claim in one file.
pub(crate) type ClaimId = u64;

/// Bytes that one source was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The source that was asked.
    pub(crate) source: SourceId,
    /// The first byte of the claim when it was made.
    pub(crate) start: u64,
    /// The first byte that is not there yet.
    pub(crate) position: u64,
    /// The end of the bytes that are written now.
    writing_to: u64,
    /// True from a [`Ranges::write`] to its [`Ranges::wrote`].
    is_writing: bool,
    /// The end of the claim. Another source may move it forward.
    pub(crate) end: u64,
}

/// The state of the bytes of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    length: u64,
    /// Starts and ends.
    missing: BTreeMap<u64, u64>,
    /// Starts, ends and sources. Neighbours are of different sources.
    present: BTreeMap<u64, (u64, SourceId)>,
    claims: BTreeMap<ClaimId, Claim>,
    next_id: ClaimId,
}

impl Ranges {
    /// Returns the state of a file of which nothing is there.
    pub(crate) fn new(length: u64) -> Self {
        let mut ranges = Self {
            length,
            ..Self::default()
        };
        ranges.add_missing(0..length);
        ranges
    }

    /// Returns the length of the file in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns true if all bytes are there and none is written. A claim of which another
    /// source took all bytes may stay: its source may never answer.
    pub(crate) fn is_complete(&self) -> bool {
        let mut claims = self.claims.values();
        let is_idle = |claim: &Claim| claim.position == claim.end && !claim.is_writing;
        self.missing.is_empty() && claims.all(is_idle)
    }

    /// Returns the first missing byte.
    pub(crate) fn first_missing(&self) -> Option<u64> {
        self.missing.keys().next().copied()
    }

    /// Claims the first missing bytes for `source`, at most `bytes_max` of them.
    pub(crate) fn claim(&mut self, source: SourceId, bytes_max: u64) -> Option<ClaimId> {
        let (&start, &end) = self.missing.first_key_value()?;
        let claimed = end.min(start.saturating_add(bytes_max.max(1)));
        self.missing.remove(&start);
        self.add_missing(claimed..end);
        Some(self.add_claim(source, start..claimed))
    }

    /// Adds the missing bytes behind a claim to it.
    pub(crate) fn extend(&mut self, id: ClaimId) {
        if let Some(claim) = self.claims.get_mut(&id)
            && claim.position < claim.end
            && let Some(end) = self.missing.remove(&claim.end)
        {
            claim.end = end;
        }
    }

    fn add_claim(&mut self, source: SourceId, range: Range<u64>) -> ClaimId {
        let id = self.next_id;
        self.next_id += 1;
        let claim = Claim {
            source,
            start: range.start,
            position: range.start,
            writing_to: range.start,
            is_writing: false,
            end: range.end,
        };
        self.claims.insert(id, claim);
        id
    }

    /// Returns a claim.
    pub(crate) fn get(&self, id: ClaimId) -> Option<Claim> {
        self.claims.get(&id).copied()
    }

    /// Returns all claims.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (ClaimId, Claim)> {
        self.claims.iter().map(|(&id, &claim)| (id, claim))
    }

    /// Returns how many of `bytes` bytes the owner of a claim may write at its position. It
    /// calls [`Self::wrote`] after that.
    pub(crate) fn write(&mut self, id: ClaimId, bytes: u64) -> u64 {
        let Some(claim) = self.claims.get_mut(&id) else {
            return 0;
        };
        let allowed = bytes.min(claim.end - claim.position);
        claim.writing_to = claim.position + allowed;
        claim.is_writing = allowed > 0;
        allowed
    }

    /// Records that the bytes of the last [`Self::write`] are in the file.
    pub(crate) fn wrote(&mut self, id: ClaimId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let written = claim.position..claim.writing_to;
        claim.position = claim.writing_to;
        claim.is_writing = false;
        let source = claim.source;
        self.add_present(written, source);
    }

    /// Ends a claim. The bytes that did not come are missing again.
    pub(crate) fn release(&mut self, id: ClaimId) {
        if let Some(claim) = self.claims.remove(&id) {
            self.add_missing(claim.position..claim.end);
        }
    }

    /// Gives the bytes of a claim from `at` on to `source`, but not those that its owner
    /// writes now.
    pub(crate) fn split(&mut self, id: ClaimId, at: u64, source: SourceId) -> Option<ClaimId> {
        let claim = self.claims.get_mut(&id)?;
        let at = at.max(claim.writing_to);
        if at >= claim.end {
            return None;
        }
        let taken = at..claim.end;
        claim.end = at;
        Some(self.add_claim(source, taken))
    }

    /// Makes all present bytes of a source missing. Returns the first of them.
    pub(crate) fn drop_source(&mut self, source: SourceId) -> Option<u64> {
        let of_source = self.spans().filter(|(_, owner)| *owner == source);
        let dropped: Vec<_> = of_source.map(|(range, _)| range).collect();
        for range in &dropped {
            self.present.remove(&range.start);
            self.add_missing(range.clone());
        }
        dropped.first().map(|range| range.start)
    }

    /// Records bytes as present, as a record on the disk tells. Bytes in a claim stay in it.
    pub(crate) fn put(&mut self, range: Range<u64>, source: SourceId) {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() {
            return;
        }
        let overlaps = |start: u64, end: u64| start.max(range.start)..end.min(range.end);
        // A record can have many lines, so only entries that may overlap are looked at.
        let first_missing = entry_at(&self.missing, range.start);
        let missing = self.missing.range(first_missing..range.end);
        let missing = missing.map(|(&start, &end)| (start, end));
        let first_present = entry_at(&self.present, range.start);
        let present = self.present.range(first_present..range.end);
        let present = present.map(|(&start, &(end, _))| (start, end));
        let found = missing.chain(present);
        let found: Vec<_> = found
            .map(|(start, end)| overlaps(start, end))
            .filter(|overlap| !overlap.is_empty())
            .collect();
        for part in found {
            self.cut(part.clone());
            self.add_present(part, source);
        }
    }

    /// Removes bytes that one entry has from that entry.
    fn cut(&mut self, part: Range<u64>) {
        let missing = self.missing.range(..=part.start).next_back();
        if let Some((&start, &end)) = missing.filter(|(_, end)| **end >= part.end) {
            self.missing.remove(&start);
            self.add_missing(start..part.start);
            self.add_missing(part.end..end);
            return;
        }
        let present = self.present.range(..=part.start).next_back();
        if let Some((&start, &(end, owner))) = present {
            self.present.remove(&start);
            self.add_present(start..part.start, owner);
            self.add_present(part.end..end, owner);
        }
    }

    /// Changes the length of the file. New bytes are missing. Claims end at the new end.
    pub(crate) fn resize(&mut self, length: u64) {
        let old = std::mem::replace(self, Self::new(0));
        self.length = length;
        self.next_id = old.next_id;
        for (start, end) in old.missing {
            self.add_missing(start..end.min(length));
        }
        for (start, (end, owner)) in old.present {
            self.add_present(start..end.min(length), owner);
        }
        for (id, mut claim) in old.claims {
            let limit = |position: u64| position.min(length);
            claim.start = limit(claim.start);
            claim.position = limit(claim.position);
            claim.writing_to = limit(claim.writing_to);
            claim.end = limit(claim.end);
            self.claims.insert(id, claim);
        }
        self.add_missing(old.length..length);
    }

    /// Returns the end of the bytes that are there without a gap from the first on.
    pub(crate) fn prefix(&self) -> u64 {
        let mut prefix = 0;
        for (&start, &(end, _)) in &self.present {
            if start != prefix {
                break;
            }
            prefix = end;
        }
        prefix
    }

    /// Returns the present bytes in their order, with their sources.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (Range<u64>, SourceId)> {
        let present = self.present.iter();
        present.map(|(&start, &(end, source))| (start..end, source))
    }

    /// Returns the number of bytes that are there.
    pub(crate) fn present_bytes(&self) -> u64 {
        self.spans().map(|(range, _)| range.end - range.start).sum()
    }

    fn add_missing(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        if let Some((&before, &at)) = self.missing.range(..start).next_back()
            && at == start
        {
            start = before;
        }
        if let Some(after) = self.missing.remove(&end) {
            end = after;
        }
        self.missing.insert(start, end);
    }

    fn add_present(&mut self, range: Range<u64>, source: SourceId) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        if let Some((&before, &(at, owner))) = self.present.range(..start).next_back()
            && (at, owner) == (start, source)
        {
            start = before;
        }
        if let Some(&(after, owner)) = self.present.get(&end)
            && owner == source
        {
            self.present.remove(&end);
            end = after;
        }
        self.present.insert(start, (end, source));
    }
}

/// Returns the start of the last entry that begins at `position` or before it; `position` if
/// there is none.
fn entry_at<V>(entries: &BTreeMap<u64, V>, position: u64) -> u64 {
    let before = entries.range(..=position).next_back();
    before.map_or(position, |(&start, _)| start)
}

#[cfg(test)]
mod tests;
