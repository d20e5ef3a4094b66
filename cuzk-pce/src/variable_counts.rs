//! How many variables of each sort the rows of a circuit have.
//!
//! Not which ones: [`Densities`] and [`Density`] say that. The memory of a proof is
//! computed from the counts. A file has them in its header, so nobody has to walk through the
//! rows for them. The invariant: counts that were made of rows are within the numbers of inputs
//! and auxiliary variables.

use crate::{
    density::{Densities, Density},
    disk::DiskFault,
};

/// How many counts there are.
const COUNTS: usize = 6;

/// How many variables of each sort the rows of a circuit have. A variable is a bit if the rows
/// prove that it is 0 or 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VariableCounts {
    /// Auxiliary variables in A.
    pub a_aux: u32,
    /// Public inputs in B, ONE among them.
    pub b_inputs: u32,
    /// Auxiliary variables in B.
    pub b_aux: u32,
    /// Auxiliary variables that are no bits.
    pub wide: u32,
    /// Those of them in A.
    pub wide_in_a: u32,
    /// Those of them in B.
    pub wide_in_b: u32,
}

impl VariableCounts {
    /// The bytes in a header.
    pub(crate) const BYTES: usize = COUNTS * size_of::<u32>();

    /// Returns the counts of rows with these densities, which prove `bits` of the auxiliary
    /// variables to be 0 or 1.
    #[must_use]
    pub fn of(densities: &Densities, bits: &Density) -> Self {
        // A system has at most as many variables as 32 bits can number.
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let outside = |query: &Density| {
            let words = query.words().iter().zip(bits.words());
            let outside = words.map(|(word, bits)| (word & !bits).count_ones() as usize);
            count(outside.sum())
        };
        Self {
            a_aux: count(densities.a_aux.count()),
            b_inputs: count(densities.b_input.count()),
            b_aux: count(densities.b_aux.count()),
            wide: count(bits.len() - bits.count()),
            wide_in_a: outside(&densities.a_aux),
            wide_in_b: outside(&densities.b_aux),
        }
    }

    /// Returns each count with its name, in the order of a header.
    fn named(&mut self) -> [(&'static str, &mut u32); COUNTS] {
        let Self {
            a_aux,
            b_inputs,
            b_aux,
            wide,
            wide_in_a,
            wide_in_b,
        } = self;
        [
            ("auxiliary variables in A", a_aux),
            ("public inputs in B", b_inputs),
            ("auxiliary variables in B", b_aux),
            ("auxiliary variables that are no bits", wide),
            ("auxiliary variables in A that are no bits", wide_in_a),
            ("auxiliary variables in B that are no bits", wide_in_b),
        ]
    }

    /// Returns the counts in the order of a header.
    pub(crate) fn words(mut self) -> [u32; COUNTS] {
        self.named().map(|(_, count)| *count)
    }

    /// Returns the counts that a header has in this order.
    pub(crate) fn of_words(words: [u32; COUNTS]) -> Self {
        let mut counts = Self::default();
        for ((_, count), word) in counts.named().into_iter().zip(words) {
            *count = word;
        }
        counts
    }

    /// Returns the name of each count, and the count in both.
    fn beside(mut self, other: Self) -> impl Iterator<Item = (&'static str, u32, u32)> {
        let named = self.named().map(|(what, count)| (what, *count));
        let pairs = named.into_iter().zip(other.words());
        pairs.map(|((what, count), other)| (what, count, other))
    }

    /// Returns an error unless a circuit with so many variables can have these counts.
    pub(crate) fn check_limits(self, num_inputs: u32, num_aux: u32) -> Result<(), DiskFault> {
        let limits = Self {
            a_aux: num_aux,
            b_inputs: num_inputs,
            b_aux: num_aux,
            wide: num_aux,
            wide_in_a: self.wide.min(self.a_aux),
            wide_in_b: self.wide.min(self.b_aux),
        };
        for (what, announced, limit) in self.beside(limits) {
            if announced > limit {
                return Err(DiskFault::VariableLimit {
                    what,
                    announced,
                    limit,
                });
            }
        }
        Ok(())
    }

    /// Returns an error unless the rows have these counts.
    pub(crate) fn check(self, counted: Self) -> Result<(), DiskFault> {
        for (what, announced, counted) in self.beside(counted) {
            if announced != counted {
                return Err(DiskFault::VariableCount {
                    what,
                    announced,
                    counted,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(members: &[bool]) -> Density {
        let mut set = Density::new(members.len());
        let indices = members.iter().enumerate();
        indices
            .filter(|(_, is_in)| **is_in)
            .for_each(|(index, _)| set.insert(index));
        set
    }

    proptest! {
        /// Counted word by word, as one by one.
        #[test]
        fn counts_are_those_of_the_sets(
            aux in prop::collection::vec(any::<[bool; 3]>(), 0..200),
            inputs in prop::collection::vec(any::<bool>(), 0..9),
        ) {
            let [in_a, in_b, bits] =
                [0, 1, 2].map(|at| aux.iter().map(|one| one[at]).collect::<Vec<_>>());
            let densities = Densities {
                a_aux: set(&in_a),
                b_input: set(&inputs),
                b_aux: set(&in_b),
            };
            let counts = VariableCounts::of(&densities, &set(&bits));
            let count = |is_one: &dyn Fn(&[bool; 3]) -> bool| {
                u32::try_from(aux.iter().filter(|one| is_one(one)).count()).unwrap()
            };
            let num_inputs = u32::try_from(inputs.len()).unwrap();
            let expected = VariableCounts {
                a_aux: count(&|one| one[0]),
                b_inputs: u32::try_from(inputs.iter().filter(|is_in| **is_in).count()).unwrap(),
                b_aux: count(&|one| one[1]),
                wide: count(&|one| !one[2]),
                wide_in_a: count(&|one| one[0] && !one[2]),
                wide_in_b: count(&|one| one[1] && !one[2]),
            };
            prop_assert_eq!(counts, expected);
            prop_assert_eq!(VariableCounts::of_words(counts.words()), counts);
            prop_assert!(counts.check(expected).is_ok());
            let num_aux = u32::try_from(aux.len()).unwrap();
            prop_assert!(counts.check_limits(num_inputs, num_aux).is_ok());
        }

        /// The first count that differs, or is too large, is named.
        #[test]
        fn each_wrong_count_is_named(words in any::<[u32; COUNTS]>(), at in 0..COUNTS) {
            let mut counts = VariableCounts::of_words(words);
            let mut other = words;
            other[at] ^= 1;
            let fault = counts.check(VariableCounts::of_words(other)).unwrap_err();
            let (name, _) = counts.named()[at];
            prop_assert!(fault.to_string().contains(name), "{}", fault);
            let checked = counts.check_limits(u32::MAX, u32::MAX);
            let fits = words[4] <= words[3].min(words[0]) && words[5] <= words[3].min(words[2]);
            prop_assert_eq!(checked.is_ok(), fits);
        }
    }
}
