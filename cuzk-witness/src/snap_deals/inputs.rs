//! A partition's values, and the shape they must have.

use crate::ShapeError;
use crate::error::expect_len;
use crate::por::TreeShape;
use blstrs::Scalar;

/// Choices of how many high bits of a challenge the randomness takes.
pub const H_CHOICES: u32 = 6;

/// Digests have this many bits to draw challenges from.
pub(super) const DIGEST_BITS: u32 = 254;

/// The shape that all partitions of a sector size share. A challenge has as many bits as an
/// index of `tree_r`. The highest bits are the partition, and those below them are the apex
/// leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateShape {
    /// The tree over a replica, old or new.
    pub tree_r: TreeShape,
    /// Challenges of a partition.
    pub challenges: usize,
    /// Binary logarithm of the number of partitions.
    pub partition_bits: u32,
    /// Binary logarithm of the number of apex leaves of a partition.
    pub apex_bits: u32,
    /// The choices of how many high bits there are.
    pub high_bits: [u32; H_CHOICES as usize],
}

/// A partition of a sector update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The partition, and above it a bit for the one choice of high bits that
    /// is made; public.
    pub k_and_h_select: u64,
    /// Commitment to the sector before the update; public.
    pub comm_r_old: Scalar,
    /// Root of the tree over the new data; public.
    pub comm_d_new: Scalar,
    /// Commitment to the sector after the update; public.
    pub comm_r_new: Scalar,
    /// Root of the tree over the columns.
    pub comm_c: Scalar,
    /// Root of the tree over the old replica.
    pub root_r_old: Scalar,
    /// Root of the tree over the new replica.
    pub root_r_new: Scalar,
    /// Nodes of the tree over the new data, this partition's of one level.
    pub apex_leafs: Vec<Scalar>,
    /// In the order in which the randomness gives them.
    pub challenges: Vec<Challenge>,
}

/// A challenge's values. Which one it is follows from the randomness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The old replica's node.
    pub leaf_r_old: Scalar,
    /// Its siblings, by level.
    pub path_r_old: Vec<Vec<Scalar>>,
    /// The new data's node.
    pub leaf_d_new: Scalar,
    /// Its siblings, by level; the last are the same for all challenges.
    pub path_d_new: Vec<Vec<Scalar>>,
    /// The siblings of the new replica's node, by level. The node itself is
    /// computed.
    pub path_r_new: Vec<Vec<Scalar>>,
}

impl UpdateShape {
    /// Bits of a challenge.
    pub(super) fn challenge_bits(&self) -> u32 {
        self.tree_r.index_bits()
    }

    /// Levels of the new data's tree below the apex leaves.
    pub(super) fn levels_to_apex(&self) -> u32 {
        self.challenge_bits() - self.partition_bits - self.apex_bits
    }

    /// Bits of a challenge that are random.
    pub(super) fn random_bits(&self) -> u32 {
        self.challenge_bits() - self.partition_bits
    }

    /// The new data's tree below the apex leaves.
    pub(super) fn apex_tree(&self) -> Result<TreeShape, ShapeError> {
        TreeShape::new(2, self.levels_to_apex() as usize, 0, 0)
    }

    /// Returns the shape of the tree above the roots of the partitions.
    pub(super) fn partition_tree(&self) -> Result<TreeShape, ShapeError> {
        TreeShape::new(2, self.partition_bits as usize, 0, 0)
    }

    /// The number of the update's partition.
    pub(super) fn partition(&self, update: &Update) -> u64 {
        update.k_and_h_select & ((1 << self.partition_bits) - 1)
    }

    /// Of the update's choices: whether it is the one.
    pub(super) fn chosen(&self, update: &Update) -> [bool; H_CHOICES as usize] {
        std::array::from_fn(|choice| {
            update.k_and_h_select >> self.partition_bits >> choice & 1 == 1
        })
    }

    /// The siblings from the partition's root on.
    pub(super) fn partition_path<'a>(&self, update: &'a Update) -> &'a [Vec<Scalar>] {
        let path = update.challenges.first().map(|first| &first.path_d_new[..]);
        path.and_then(|path| path.get(self.random_bits() as usize..))
            .unwrap_or_default()
    }
}

/// Checks that the circuit has variables for all values and would synthesise.
pub(super) fn check(shape: &UpdateShape, update: &Update) -> Result<(), ShapeError> {
    check_shape(shape)?;
    let selected = update.k_and_h_select >> shape.partition_bits;
    if !selected.is_power_of_two() || selected >> H_CHOICES != 0 {
        let got = format!("{selected:#b}");
        return Err(ShapeError::new("h_select", "one of six bits", got));
    }
    expect_len("apex leaves", 1 << shape.apex_bits, update.apex_leafs.len())?;
    expect_len("challenges", shape.challenges, update.challenges.len())?;
    for (number, challenge) in update.challenges.iter().enumerate() {
        check_challenge(shape, update, challenge)
            .map_err(|error| error.within(format!("challenge {number}")))?;
    }
    Ok(())
}

fn check_shape(shape: &UpdateShape) -> Result<(), ShapeError> {
    let bits = shape.challenge_bits();
    let parts = shape.partition_bits.saturating_add(shape.apex_bits);
    if parts > bits || shape.random_bits() == 0 || shape.partition_bits > 32 {
        let part = "bits of a partition and of an apex leaf";
        return Err(ShapeError::new(part, format!("at most {bits}"), parts));
    }
    if shape.challenges == 0 {
        return Err(ShapeError::new("challenges of a partition", "some", 0));
    }
    match shape.high_bits.iter().find(|high| **high > bits) {
        Some(high) => {
            let expected = format!("at most {bits}");
            Err(ShapeError::new("high bits of a challenge", expected, high))
        }
        None => Ok(()),
    }
}

fn check_challenge(
    shape: &UpdateShape,
    update: &Update,
    challenge: &Challenge,
) -> Result<(), ShapeError> {
    shape
        .tree_r
        .check_siblings(&challenge.path_r_old)
        .map_err(|error| error.within("path_r_old"))?;
    shape
        .tree_r
        .check_siblings(&challenge.path_r_new)
        .map_err(|error| error.within("path_r_new"))?;
    TreeShape::new(2, shape.challenge_bits() as usize, 0, 0)?
        .check_siblings(&challenge.path_d_new)
        .map_err(|error| error.within("path_d_new"))?;
    if challenge.path_d_new[shape.random_bits() as usize..] != *shape.partition_path(update) {
        let expected = "that of the partition's first challenge";
        return Err(ShapeError::new("path_d_new, its end", expected, "another"));
    }
    Ok(())
}
