//! Vanilla proofs as the native writers take them.
//!
//! Not a check of what is proved: nodes and places are carried over as they
//! are. The invariant: a path's leaf index is what the circuit packs from the
//! places on its levels.

use anyhow::{Context as _, ensure};
use blstrs::Scalar;
use cuzk_witness::por::{MerklePath, TreeShape};
use storage_proofs_core::merkle::MerkleProofTrait;

use crate::tree::Branching;

/// A tree's shape.
pub(super) fn tree_shape(branching: Branching) -> anyhow::Result<TreeShape> {
    let Branching {
        arity,
        base,
        sub,
        top,
    } = branching;
    Ok(TreeShape::new(arity, base, sub, top)?)
}

/// A path from a leaf to the root.
pub(super) fn merkle_path<P: MerkleProofTrait>(proof: &P) -> anyhow::Result<MerklePath> {
    let (mut index, mut bits) = (0, 0);
    let mut siblings = Vec::new();
    for (level, (nodes, place)) in proof.path().into_iter().enumerate() {
        let arity = nodes.len() + 1;
        ensure!(
            arity.is_power_of_two() && place < arity,
            "level {level} of a Merkle path: no place {place} among {arity} nodes"
        );
        let place = u64::try_from(place)?;
        let shifted = place.checked_shl(bits);
        index |= shifted.context("a Merkle path with more than 2^64 leaves")?;
        bits += arity.trailing_zeros();
        siblings.push(nodes.into_iter().map(Into::into).collect());
    }
    Ok(MerklePath {
        leaf: proof.leaf().into(),
        index,
        siblings,
    })
}

/// The siblings alone, by level.
pub(super) fn siblings<P: MerkleProofTrait>(proof: &P) -> Vec<Vec<Scalar>> {
    let levels = proof.path().into_iter();
    levels
        .map(|(nodes, _)| nodes.into_iter().map(Into::into).collect())
        .collect()
}
