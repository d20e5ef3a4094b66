//! Poseidon hashes with the variables of neptune's gadget.
//!
//! The gadget is `neptune::circuit::poseidon_hash`, the one without witness
//! generation of its own: each S-box past the first round has a variable for
//! its input.

use std::sync::OnceLock;

use crate::{Builder, Isa, ShapeError};
use blstrs::Scalar;
use cuzk_kernels::poseidon::{BATCH, PoseidonConstants, SparseMatrix};
use neptune::Arity;
use neptune::Strength;
use neptune::hash_type::{CType, HashType};
use typenum::{U2, U4, U8, U11};

/// Hashes that cost the least when computed together.
pub const HASHES_AT_ONCE: usize = BATCH;

/// A Poseidon hash of so many field elements.
#[derive(Debug)]
pub struct Poseidon(cuzk_kernels::poseidon::Poseidon);

/// The hashes that the circuits use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// Two nodes of a Merkle tree, or comm_c and comm_r_last.
    Nodes2,
    /// Four nodes.
    Nodes4,
    /// Eight nodes.
    Nodes8,
    /// A column of eleven layers.
    Column11,
    /// Two elements, for the randomness of a sector update.
    Randomness2,
}

impl Hash {
    /// The hash of `arity` nodes of a tree.
    ///
    /// # Errors
    /// If no circuit has such a tree.
    pub fn nodes(arity: usize) -> Result<Hash, ShapeError> {
        match arity {
            2 => Ok(Hash::Nodes2),
            4 => Ok(Hash::Nodes4),
            8 => Ok(Hash::Nodes8),
            _ => Err(ShapeError::new("tree's arity", "2, 4 or 8", arity)),
        }
    }

    /// The hash of a column of `layers` labels.
    ///
    /// # Errors
    /// If no circuit has so many layers.
    pub fn column(layers: usize) -> Result<Hash, ShapeError> {
        match layers {
            2 => Ok(Hash::Nodes2),
            11 => Ok(Hash::Column11),
            _ => Err(ShapeError::new("layers of a column", "2 or 11", layers)),
        }
    }

    /// The function; its constants are derived once.
    pub fn function(self) -> &'static Poseidon {
        static FUNCTIONS: [OnceLock<Poseidon>; 5] = [const { OnceLock::new() }; 5];
        let nodes = Strength::Standard;
        FUNCTIONS[self as usize].get_or_init(|| match self {
            Hash::Nodes2 => Poseidon::new::<U2>(nodes, HashType::MerkleTree),
            Hash::Nodes4 => Poseidon::new::<U4>(nodes, HashType::MerkleTree),
            Hash::Nodes8 => Poseidon::new::<U8>(nodes, HashType::MerkleTree),
            Hash::Column11 => Poseidon::new::<U11>(nodes, HashType::MerkleTree),
            Hash::Randomness2 => Poseidon::new::<U2>(nodes, HashType::Custom(CType::Arbitrary(1))),
        })
    }
}

impl Poseidon {
    fn new<A: Arity<Scalar>>(strength: Strength, hash_type: HashType<Scalar, A>) -> Poseidon {
        let theirs = neptune::poseidon::PoseidonConstants::<Scalar, A>::new_with_strength_and_type(
            strength, hash_type,
        );
        let sparse = theirs.sparse_matrixes.into_iter();
        let constants = PoseidonConstants {
            domain_tag: theirs.domain_tag,
            full_rounds: theirs.full_rounds,
            round_keys: theirs.compressed_round_constants,
            matrix: theirs.mds_matrices.m,
            pre_sparse: theirs.pre_sparse_matrix,
            sparse: sparse
                .map(|matrix| SparseMatrix {
                    column: matrix.w_hat,
                    row: matrix.v_rest,
                })
                .collect(),
        };
        #[expect(clippy::expect_used, reason = "the library's own constants")]
        let function = cuzk_kernels::poseidon::Poseidon::new(&constants)
            .expect("neptune's constants have the lengths that the schedule asks for");
        Poseidon(function)
    }

    /// Elements of a preimage.
    pub fn arity(&self) -> usize {
        self.0.arity()
    }

    /// Variables of one hash, its digest the last.
    pub fn variables(&self) -> usize {
        self.0.trace_len()
    }

    /// Hashes preimages that stand one after the other; what is left of them
    /// at the end and is not a whole one does not count.
    pub fn hash(&self, isa: Isa, preimages: &[Scalar]) -> Hashes {
        let (arity, variables) = (self.arity(), self.variables());
        let count = preimages.len() / arity;
        let mut values = vec![Scalar::default(); count * variables];
        #[expect(clippy::expect_used, reason = "both lengths are made here")]
        self.0
            .traces(isa, &preimages[..count * arity], &mut values)
            .expect("as many traces as preimages");
        Hashes { values, variables }
    }

    /// Writes the variables of one hash and gives its digest.
    pub fn write(&self, isa: Isa, preimage: &[Scalar], builder: &mut Builder) -> Scalar {
        let hashes = self.hash(isa, preimage);
        hashes.write(0, builder);
        hashes.digest(0)
    }
}

/// Hashes that were computed together, with their variables.
#[derive(Debug)]
pub struct Hashes {
    values: Vec<Scalar>,
    variables: usize,
}

impl Hashes {
    /// The digest of the `index`-th preimage.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn digest(&self, index: usize) -> Scalar {
        self.values[(index + 1) * self.variables - 1]
    }

    /// All digests, in the order of the preimages.
    pub fn digests(&self) -> impl Iterator<Item = Scalar> {
        let hashes = self.values.chunks_exact(self.variables);
        hashes.filter_map(|hash| hash.last().copied())
    }

    /// Writes the variables of the `index`-th hash.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn write(&self, index: usize, builder: &mut Builder) {
        builder.extend(&self.values[index * self.variables..][..self.variables]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_writes, scalars};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::num::AllocatedNum;
    use neptune::circuit::poseidon_hash;
    use neptune::poseidon::PoseidonConstants;

    fn check<A: Arity<Scalar>>(hash: Hash, hash_type: HashType<Scalar, A>) {
        let constants =
            PoseidonConstants::new_with_strength_and_type(Strength::Standard, hash_type);
        let function = hash.function();
        let preimages = scalars(19 * function.arity(), 8);
        for isa in Isa::all() {
            let hashes = function.hash(isa, &preimages);
            assert_eq!(hashes.digests().count(), 19);
            for (i, preimage) in preimages.chunks(function.arity()).enumerate() {
                assert_writes(
                    |cs| {
                        let alloc = |value: &Scalar| AllocatedNum::alloc(&mut *cs, || Ok(*value));
                        let nums: Vec<_> = preimage.iter().map(alloc).map(Result::unwrap).collect();
                        let digest =
                            poseidon_hash(cs.namespace(|| "hash"), nums, &constants).unwrap();
                        assert_eq!(digest.get_value(), Some(hashes.digest(i)));
                    },
                    |builder| {
                        builder.extend(preimage);
                        hashes.write(i, builder);
                    },
                );
            }
        }
    }

    #[test]
    fn writes_the_gadgets_variables() {
        check::<U2>(Hash::Nodes2, HashType::MerkleTree);
        check::<U4>(Hash::Nodes4, HashType::MerkleTree);
        check::<U8>(Hash::Nodes8, HashType::MerkleTree);
        check::<U11>(Hash::Column11, HashType::MerkleTree);
        let randomness = HashType::Custom(CType::Arbitrary(1));
        check::<U2>(Hash::Randomness2, randomness);
    }
}
