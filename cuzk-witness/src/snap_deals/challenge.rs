//! The challenges of a partition: old node, new node, and their places in
//! three trees.

use super::inputs::{Challenge, Update, UpdateShape};
use super::randomness::Randomness;
use crate::insertion::write_selection;
use crate::por::{Climb, MerklePath};
use crate::{Builder, Context, ShapeError, WriteError, sha256_path};
use blstrs::Scalar;

/// Writes a group of challenges, of which the first is number `first`.
pub(super) fn write_group(
    context: Context<'_>,
    shape: &UpdateShape,
    (update, randomness): (&Update, &Randomness),
    first: usize,
    challenges: &[Challenge],
) -> Result<Builder, WriteError> {
    context.check()?;
    let encoded = |i: usize| Encoded::new(&challenges[i], randomness.rho(first + i));
    let encoded: Vec<Encoded> = (0..challenges.len()).map(encoded).collect();
    let path = |i: usize, leaf: Scalar, siblings: &[Vec<Scalar>]| MerklePath {
        leaf,
        index: randomness.challenges[first + i],
        siblings: siblings.to_vec(),
    };
    let paths: Vec<MerklePath> = challenges
        .iter()
        .zip(&encoded)
        .enumerate()
        .flat_map(|(i, (challenge, encoded))| {
            [
                path(i, challenge.leaf_r_old, &challenge.path_r_old),
                path(i, encoded.leaf_r_new, &challenge.path_r_new),
            ]
        })
        .collect();
    let replicas = Climb::new(context.isa, shape.tree_r, paths.iter().collect())?;
    let mut builder = Builder::with_capacity_in(context.memory, 0, 0);
    for (i, (challenge, encoded)) in challenges.iter().zip(&encoded).enumerate() {
        context.check()?;
        randomness.write_rho(first + i, &mut builder);
        builder.extend(&[challenge.leaf_r_old, challenge.leaf_d_new]);
        builder.extend(&[encoded.product, encoded.leaf_r_new]);
        replicas.write_without_index(2 * i, &mut builder)?;
        replicas.write_without_index(2 * i + 1, &mut builder)?;
        let number = randomness.challenges[first + i];
        write_data_path(shape, update, challenge, number, &mut builder)?;
    }
    Ok(builder)
}

/// The new node: `leaf_r_old + leaf_d_new · rho`.
struct Encoded {
    product: Scalar,
    leaf_r_new: Scalar,
}

impl Encoded {
    fn new(challenge: &Challenge, rho: Scalar) -> Encoded {
        let product = challenge.leaf_d_new * rho;
        Encoded {
            product,
            leaf_r_new: challenge.leaf_r_old + product,
        }
    }
}

/// The new data's node up to its apex leaf, which is selected first.
fn write_data_path(
    shape: &UpdateShape,
    update: &Update,
    challenge: &Challenge,
    number: u64,
    builder: &mut Builder,
) -> Result<(), ShapeError> {
    let levels = shape.levels_to_apex();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below the number of leaves"
    )]
    let apex = (number >> levels & ((1 << shape.apex_bits) - 1)) as usize;
    write_selection(&update.apex_leafs, apex, builder);
    let path = MerklePath {
        leaf: challenge.leaf_d_new,
        index: number & ((1 << levels) - 1),
        siblings: challenge.path_d_new[..levels as usize].to_vec(),
    };
    sha256_path::write_without_index(shape.apex_tree()?, &path, builder)?;
    Ok(())
}
