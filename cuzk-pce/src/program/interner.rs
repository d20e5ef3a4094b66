//! A dictionary of short word sequences: each distinct one is kept once and
//! named by the order of its first appearance.
//!
//! Invariant: two sequences have the same name exactly if they are equal.
//! Names do not depend on the hash, so a circuit always compiles to the same
//! bytes.

use crate::csr::CsrError;

/// Distinct word sequences, each named by a number from 0.
#[derive(Debug, Default)]
pub(super) struct Interner {
    /// All sequences, one after the other.
    words: Vec<u32>,
    /// Where each ends.
    ends: Vec<u32>,
    /// Open addressing by linear probing: a name plus one, or 0 for none. The
    /// length is a power of two and at most half of it is taken.
    slots: Vec<u32>,
}

const SLOTS_MIN: usize = 64;

/// Names leave the top bit and the greatest word free for their users.
const NAME_MAX: u32 = (1 << 31) - 2;

impl Interner {
    /// The name of `key`, and whether it is new.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] if names or words no longer fit 31 bits.
    pub(super) fn intern(&mut self, key: &[u32]) -> Result<(u32, bool), CsrError> {
        if self.slots.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let mut slot = self.first_slot(key);
        while let Some(name) = self.slots[slot].checked_sub(1) {
            if self.get(name) == Some(key) {
                return Ok((name, false));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let name = to_u31(self.ends.len())?;
        let end = to_u31(self.words.len() + key.len())?;
        self.words.extend_from_slice(key);
        self.ends.push(end);
        self.slots[slot] = name + 1;
        Ok((name, true))
    }

    /// The sequence of that name.
    pub(super) fn get(&self, name: u32) -> Option<&[u32]> {
        let name = name as usize;
        let end = *self.ends.get(name)? as usize;
        let start = name
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        self.words.get(start..end)
    }

    /// Number of distinct sequences.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The sequences in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..).map_while(|name| self.get(name))
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(SLOTS_MIN);
        self.slots = vec![0; len];
        for name in 0..self.ends.len() {
            // Names are below 2^31: `intern` refuses more.
            let name = u32::try_from(name).unwrap_or(u32::MAX - 1);
            let mut slot = self.get(name).map_or(0, |key| self.first_slot(key));
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (len - 1);
            }
            self.slots[slot] = name + 1;
        }
    }

    fn first_slot(&self, key: &[u32]) -> usize {
        let hash = key.iter().fold(0, |hash: u64, &word| mix(hash, word));
        // The high bits of a product are its well-mixed ones.
        usize::try_from(hash >> 32).unwrap_or(0) & (self.slots.len() - 1)
    }
}

/// Folds one more word into a hash.
pub(super) fn mix(hash: u64, word: u32) -> u64 {
    // 2^64 divided by the golden ratio, made odd: Knuth's multiplier.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = (hash.rotate_left(29) ^ u64::from(word)).wrapping_mul(GOLDEN);
    product ^ (product >> 29)
}

fn to_u31(got: usize) -> Result<u32, CsrError> {
    match u32::try_from(got) {
        Ok(fits) if fits <= NAME_MAX => Ok(fits),
        _ => Err(CsrError::TooLarge {
            what: "dictionary",
            got,
            limit: NAME_MAX as usize,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn names_are_a_hash_maps(
            keys in prop::collection::vec(prop::collection::vec(0..4u32, 0..4), 0..300)
        ) {
            let mut ours = Interner::default();
            let mut theirs: HashMap<Vec<u32>, u32> = HashMap::new();
            for key in keys {
                let next = u32::try_from(theirs.len()).unwrap();
                let new = !theirs.contains_key(&key);
                let name = *theirs.entry(key.clone()).or_insert(next);
                prop_assert_eq!(ours.intern(&key).unwrap(), (name, new));
                prop_assert_eq!(ours.get(name), Some(&key[..]));
            }
            prop_assert_eq!(ours.len(), theirs.len());
            prop_assert_eq!(ours.iter().count(), theirs.len());
            prop_assert_eq!(ours.get(u32::try_from(theirs.len()).unwrap()), None);
        }
    }
}
