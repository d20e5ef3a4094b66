use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The state of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    Missing,
    Claimed(ClaimId),
    Present(SourceId),
}

/// The plain twin: an entry for each byte. A claim has its source, the number of bytes that
/// are written, and true while they are.
#[derive(Clone, Debug, Default)]
struct Twin {
    bytes: Vec<Byte>,
    claims: BTreeMap<ClaimId, (SourceId, usize, bool)>,
    next_id: ClaimId,
}

impl Twin {
    fn of_claim(&self, id: ClaimId) -> Vec<usize> {
        let is_of = |at: &usize| self.bytes[*at] == Byte::Claimed(id);
        (0..self.bytes.len()).filter(is_of).collect()
    }

    fn claim(&mut self, source: SourceId, bytes_max: usize) -> Option<ClaimId> {
        let first = self.bytes.iter().position(|byte| *byte == Byte::Missing)?;
        let id = self.next_id;
        for byte in self.bytes[first..].iter_mut().take(bytes_max.max(1)) {
            if *byte != Byte::Missing {
                break;
            }
            *byte = Byte::Claimed(id);
        }
        self.next_id += 1;
        self.claims.insert(id, (source, 0, false));
        Some(id)
    }

    fn extend(&mut self, id: ClaimId, end: usize) {
        for byte in &mut self.bytes[end..] {
            if *byte != Byte::Missing {
                break;
            }
            *byte = Byte::Claimed(id);
        }
    }

    fn write(&mut self, id: ClaimId, bytes: usize) -> usize {
        let allowed = bytes.min(self.of_claim(id).len());
        self.claims.get_mut(&id).map_or(0, |claim| {
            (claim.1, claim.2) = (allowed, allowed > 0);
            allowed
        })
    }

    fn wrote(&mut self, id: ClaimId) {
        let Some((source, writing, _)) = self.claims.get(&id).copied() else {
            return;
        };
        for at in self.of_claim(id).into_iter().take(writing) {
            self.bytes[at] = Byte::Present(source);
        }
        self.claims.insert(id, (source, 0, false));
    }

    fn release(&mut self, id: ClaimId) {
        for at in self.of_claim(id) {
            self.bytes[at] = Byte::Missing;
        }
        self.claims.remove(&id);
    }

    fn split(&mut self, id: ClaimId, at: usize, source: SourceId) -> Option<ClaimId> {
        let (_, writing, _) = *self.claims.get(&id)?;
        let kept = self.of_claim(id).into_iter().enumerate();
        let given = kept.filter(|(index, byte)| *index >= writing && *byte >= at);
        let given: Vec<_> = given.map(|(_, byte)| byte).collect();
        if given.is_empty() {
            return None;
        }
        let new = self.next_id;
        self.next_id += 1;
        self.claims.insert(new, (source, 0, false));
        for byte in given {
            self.bytes[byte] = Byte::Claimed(new);
        }
        Some(new)
    }

    fn drop_source(&mut self, source: SourceId) -> Option<u64> {
        let first = self
            .bytes
            .iter()
            .position(|byte| *byte == Byte::Present(source));
        for byte in &mut self.bytes {
            if *byte == Byte::Present(source) {
                *byte = Byte::Missing;
            }
        }
        first.map(|first| first as u64)
    }

    fn put(&mut self, range: Range<usize>, source: SourceId) {
        let end = range.end.min(self.bytes.len());
        for byte in self.bytes.iter_mut().take(end).skip(range.start) {
            if !matches!(byte, Byte::Claimed(_)) {
                *byte = Byte::Present(source);
            }
        }
    }

    fn resize(&mut self, length: usize) {
        for id in self.claims.keys().copied().collect::<Vec<_>>() {
            let writing = self.claims[&id].1;
            let left = self.of_claim(id).into_iter().take(writing);
            let left = left.filter(|byte| *byte < length).count();
            if let Some(claim) = self.claims.get_mut(&id) {
                claim.1 = left;
            }
        }
        self.bytes.resize(length, Byte::Missing);
    }
}

/// A change: its number, and three numbers for it.
type Change = (u8, usize, usize, usize);

/// Makes a change in both. Returns false if they answer differently.
fn change(ranges: &mut Ranges, twin: &mut Twin, (which, a, b, c): Change) -> bool {
    let ids: Vec<_> = twin.claims.keys().copied().collect();
    let id = if ids.is_empty() {
        99
    } else {
        ids[a % ids.len()]
    };
    let source = c % 3;
    match which {
        0 | 1 => ranges.claim(source, b as u64) == twin.claim(source, b),
        2 | 3 => ranges.write(id, b as u64) == twin.write(id, b) as u64,
        4 | 5 => (ranges.wrote(id), twin.wrote(id)) == ((), ()),
        6 => (ranges.release(id), twin.release(id)) == ((), ()),
        7 => ranges.split(id, b as u64, source) == twin.split(id, b, source),
        8 => ranges.drop_source(source) == twin.drop_source(source),
        9 => {
            (
                ranges.put(a as u64..b as u64, source),
                twin.put(a..b, source),
            ) == ((), ())
        }
        10 => {
            if let Some(claim) = ranges.get(id).filter(|_| !twin.of_claim(id).is_empty()) {
                ranges.extend(id);
                twin.extend(id, usize::try_from(claim.end).unwrap());
            }
            true
        }
        _ => (ranges.resize(b as u64), twin.resize(b)) == ((), ()),
    }
}

fn bytes_of(ranges: &Ranges) -> Vec<Byte> {
    let mut bytes = vec![None; usize::try_from(ranges.length()).unwrap()];
    let mut fill = |range: Range<u64>, byte| {
        for at in range {
            let old = bytes[usize::try_from(at).unwrap()].replace(byte);
            assert_eq!(old, None, "byte {at} has two states");
        }
    };
    for (&start, &end) in &ranges.missing {
        fill(start..end, Byte::Missing);
    }
    for (range, source) in ranges.spans() {
        fill(range, Byte::Present(source));
    }
    for (id, claim) in ranges.claims() {
        fill(claim.position..claim.end, Byte::Claimed(id));
    }
    bytes.into_iter().map(Option::unwrap).collect()
}

proptest! {
    #[test]
    fn it_equals_a_list_with_an_entry_for_each_byte(
        length in 0_usize..40,
        changes in vec((0_u8..12, 0_usize..40, 0_usize..40, 0_usize..40), 0..60),
    ) {
        let mut ranges = Ranges::new(length as u64);
        let mut twin = Twin { bytes: vec![Byte::Missing; length], ..Twin::default() };
        for made in changes {
            prop_assert!(change(&mut ranges, &mut twin, made), "{made:?}");
            prop_assert_eq!(bytes_of(&ranges), twin.bytes.clone(), "{:?}", made);
            let is_present = |byte: &&Byte| matches!(byte, Byte::Present(_));
            let prefix = twin.bytes.iter().take_while(is_present).count();
            prop_assert_eq!(ranges.prefix(), prefix as u64);
            let present = twin.bytes.iter().filter(is_present).count();
            prop_assert_eq!(ranges.present_bytes(), present as u64);
            let missing = twin.bytes.iter().position(|byte| *byte == Byte::Missing);
            prop_assert_eq!(ranges.first_missing(), missing.map(|first| first as u64));
            let is_idle = twin.claims.values().all(|claim| !claim.2);
            let is_complete = present == twin.bytes.len() && is_idle;
            prop_assert_eq!(ranges.is_complete(), is_complete);
        }
    }
}
