//! Query densities: which variables the A and B queries range over.
//!
//! A Groth16 parameter file holds bases only for the variables that appear in A (the `a`
//! query) and in B (`b_g1`, `b_g2`). A prover must pick the same variables, in the same
//! order. Public inputs are always in the A query, because every one has a row `inputᵢ · 0
//! = 0`. No density is kept for them.
//!
//! Invariant: a variable is in a density exactly if some row has it with a
//! coefficient other than zero, which is what bellperson's prover counts.

use crate::csr::CsrMatrix;
use ff::PrimeField;

/// A set of variable indices below a fixed length, iterated in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Density {
    /// Bit i of word i / 64; bits at and past `len` are zero.
    words: Vec<u64>,
    len: usize,
    count: usize,
}

impl Density {
    /// The empty set over `len` variables.
    pub fn new(len: usize) -> Self {
        Density {
            words: vec![0; len.div_ceil(64)],
            len,
            count: 0,
        }
    }

    /// Adds a variable; one at or past `len` is not there to add.
    pub(crate) fn insert(&mut self, index: usize) {
        let mask = 1 << (index % 64);
        if let Some(word) = self.words.get_mut(index / 64).filter(|_| index < self.len) {
            self.count += usize::from(*word & mask == 0);
            *word |= mask;
        }
    }

    /// Adds `count` variables from `start` on, `stride` apart; 0 is one variable.
    /// Those at or past `len` are not there to add.
    pub(crate) fn insert_every(&mut self, start: usize, count: usize, stride: usize) {
        match stride {
            0 if count > 0 => self.insert(start),
            1 => self.insert_range(start, count),
            _ => (0..count).for_each(|k| self.insert(start + k * stride)),
        }
    }

    fn insert_range(&mut self, start: usize, count: usize) {
        let end = start.saturating_add(count).min(self.len);
        let mut from = start;
        while from < end {
            let to = end.min((from / 64 + 1) * 64);
            let mask = u64::MAX >> (64 - (to - from)) << (from % 64);
            if let Some(word) = self.words.get_mut(from / 64) {
                self.count += (mask & !*word).count_ones() as usize;
                *word |= mask;
            }
            from = to;
        }
    }

    /// Number of variables that could be in the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no variables at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of variables in the set: the length of the query.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns true if a variable is in the set.
    pub fn contains(&self, index: usize) -> bool {
        let word = self.words.get(index / 64).copied().unwrap_or(0);
        word >> (index % 64) & 1 == 1
    }

    /// Bit i of word i / 64: whether variable i is in the set.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The variables in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(at * 64 + bit)
            })
        })
    }
}

/// The three densities of a Groth16 prover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Densities {
    /// Auxiliary variables in A.
    pub a_aux: Density,
    /// Public inputs (ONE is 0) in B.
    pub b_input: Density,
    /// Auxiliary variables in B.
    pub b_aux: Density,
}

impl Densities {
    /// Returns the densities of a system with these matrices, over `inputs` public inputs
    /// and `aux` auxiliary variables.
    pub(crate) fn of<S: PrimeField>(
        [a, b]: [&CsrMatrix<S>; 2],
        (inputs, aux): (usize, usize),
    ) -> Self {
        let mut densities = Densities {
            a_aux: Density::new(aux),
            b_input: Density::new(inputs),
            b_aux: Density::new(aux),
        };
        for col in present(a) {
            if let Some(aux) = col.checked_sub(inputs) {
                densities.a_aux.insert(aux);
            }
        }
        for col in present(b) {
            match col.checked_sub(inputs) {
                Some(aux) => densities.b_aux.insert(aux),
                None => densities.b_input.insert(col),
            }
        }
        densities
    }
}

/// The columns of the nonzero terms, in storage order.
fn present<S: PrimeField>(matrix: &CsrMatrix<S>) -> impl Iterator<Item = usize> {
    let (_, cols, values) = matrix.parts();
    cols.iter()
        .zip(values)
        .filter(|(_, value)| !value.is_zero_vartime())
        .map(|(&col, _)| col as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record, testing::*};
    use bellpepper_core::Comparable;
    use bellperson::{Circuit, Index, LinearCombination, util_cs::test_cs::TestConstraintSystem};
    use blstrs::{Bls12, Scalar};
    use ff::Field;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    #[test]
    fn is_a_set_with_order() {
        let mut set = Density::new(130);
        for index in [129, 0, 64, 63, 0, 129, 130, 1_000] {
            set.insert(index);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!((set.count(), set.len()), (4, 130));
        assert!(set.contains(64) && !set.contains(65) && !set.contains(130));
        assert!(Density::new(0).is_empty());
    }

    proptest! {
        #[test]
        fn many_are_inserted_as_one_by_one(
            len in 0..300usize,
            inserts in prop::collection::vec((0..310usize, 0..200usize, 0..5usize), 0..9),
        ) {
            let (mut many, mut single) = (Density::new(len), Density::new(len));
            for (start, count, stride) in inserts {
                many.insert_every(start, count, stride);
                (0..count).for_each(|k| single.insert(start + k * stride));
            }
            prop_assert_eq!(many.count(), many.iter().count());
            prop_assert_eq!(many, single);
        }
    }

    /// Returns the densities that bellperson's prover counts in its own rows.
    fn theirs(
        rows: &[LinearCombination<Scalar>],
        index: impl Fn(Index) -> Option<usize>,
    ) -> Vec<usize> {
        let set: BTreeSet<usize> = rows
            .iter()
            .flat_map(LinearCombination::iter)
            .filter(|(_, value)| !value.is_zero_vartime())
            .filter_map(|(variable, _)| index(variable.get_unchecked()))
            .collect();
        set.into_iter().collect()
    }

    fn input(index: Index) -> Option<usize> {
        match index {
            Index::Input(i) => Some(i),
            Index::Aux(_) => None,
        }
    }

    fn aux(index: Index) -> Option<usize> {
        match index {
            Index::Input(_) => None,
            Index::Aux(i) => Some(i),
        }
    }

    proptest! {
        #[test]
        fn counts_what_bellperson_counts(circuit in random_circuit()) {
            let densities = record(circuit.blank()).unwrap().densities();
            let mut cs = TestConstraintSystem::new();
            circuit.synthesize(&mut cs).unwrap();
            let a: Vec<_> = cs.constraints().iter().map(|row| row.0.clone()).collect();
            let b: Vec<_> = cs.constraints().iter().map(|row| row.1.clone()).collect();
            for (ours, theirs) in [
                (&densities.a_aux, theirs(&a, aux)),
                (&densities.b_input, theirs(&b, input)),
                (&densities.b_aux, theirs(&b, aux)),
            ] {
                prop_assert_eq!(ours.count(), theirs.len());
                prop_assert_eq!(ours.iter().collect::<Vec<_>>(), theirs);
            }
        }
    }

    /// The queries of real parameters, which leave out absent variables, are
    /// as long as the densities say.
    #[test]
    fn queries_of_bellpersons_parameters_have_these_lengths() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let circuit = RandomCircuit::squares(20);
        let r1cs = record(circuit.blank()).unwrap();
        let densities = r1cs.densities();
        let params =
            bellperson::groth16::generate_random_parameters::<Bls12, _, _>(circuit, &mut rng)
                .unwrap();
        let b = densities.b_input.count() + densities.b_aux.count();
        assert_eq!(params.a.len(), r1cs.num_inputs() + densities.a_aux.count());
        assert_eq!((params.b_g1.len(), params.b_g2.len()), (b, b));
        assert_eq!(params.l.len(), r1cs.num_aux());
    }
}
