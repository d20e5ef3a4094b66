//! SnapDeals: a sector's replica now encodes new data.
//!
//! The circuit is `storage_proofs_update::EmptySectorUpdateCircuit`. The partition's own
//! part is written beside its challenges: commitments, the apex tree over its data, and the
//! randomness. The challenges share nothing else, and are written in groups that fill the
//! lanes of the hash.

mod challenge;
mod inputs;
mod randomness;
#[cfg(test)]
mod tests;

pub use inputs::{Challenge, H_CHOICES, Update, UpdateShape};

use crate::por::MerklePath;
use crate::poseidon::{HASHES_AT_ONCE, Hash};
use crate::{Builder, Context, Isa, PackedWitness, ShapeError, WriteError, sha256_path};
use blstrs::Scalar;
use ff::Field;
use randomness::Randomness;
use rayon::prelude::*;

/// Each has a path in the old and one in the new replica's tree.
const GROUP_CHALLENGES: usize = HASHES_AT_ONCE / 2;

/// Writes the witness of one partition.
///
/// # Errors
/// If it is stopped, there are more or fewer leaves, challenges or nodes than the shape says,
/// or `k_and_h_select` is none.
pub fn write(
    context: Context<'_>,
    shape: &UpdateShape,
    update: &Update,
) -> Result<PackedWitness<Scalar>, WriteError> {
    inputs::check(shape, update)?;
    let randomness = Randomness::new(context.isa, shape, update);
    let (partition, challenges) = rayon::join(
        || write_partition(context, shape, (update, &randomness)),
        || write_challenges(context, shape, (update, &randomness)),
    );
    let mut witness = Builder::with_capacity_in(context.memory, 0, 0);
    witness.append_all(&partition?);
    witness.append_all(&challenges?);
    witness
        .finish()
        .map_err(|error| ShapeError::new("public inputs", "ONE", error).into())
}

fn write_challenges(
    context: Context<'_>,
    shape: &UpdateShape,
    (update, randomness): (&Update, &Randomness),
) -> Result<Vec<Builder>, WriteError> {
    let groups = update.challenges.par_chunks(GROUP_CHALLENGES).enumerate();
    groups
        .map(|(group, challenges)| {
            let first = group * GROUP_CHALLENGES;
            let statement = (update, randomness);
            challenge::write_group(context, shape, statement, first, challenges)
        })
        .collect()
}

/// Everything before the challenges.
fn write_partition(
    context: Context<'_>,
    shape: &UpdateShape,
    (update, randomness): (&Update, &Randomness),
) -> Result<Vec<Builder>, WriteError> {
    let Context { isa, memory, .. } = context;
    let mut first = Builder::with_capacity_in(memory, 0, 0);
    write_public(shape, update, &mut first);
    randomness.write_phi(&mut first);
    write_private(isa, shape, update, &mut first)?;
    let (rows, root) = apex_tree(context, &update.apex_leafs)?;
    let mut last = Builder::with_capacity_in(memory, 0, 0);
    let path = MerklePath {
        leaf: root,
        index: shape.partition(update),
        siblings: shape.partition_path(update).to_vec(),
    };
    sha256_path::write_below_siblings(shape.partition_tree()?, &path, &mut last)?;
    randomness.write_challenges(&mut last);
    Ok([vec![first], rows, vec![last]].concat())
}

/// The public inputs, each a variable too, and the bits of the first.
fn write_public(shape: &UpdateShape, update: &Update, builder: &mut Builder) {
    builder.push_input(Scalar::ONE);
    let first = Scalar::from(update.k_and_h_select);
    builder.push(first);
    builder.push_input(first);
    let bits = shape.partition_bits + H_CHOICES;
    builder.push_bits(update.k_and_h_select, bits);
    builder.push(Scalar::from(shape.partition(update)));
    for commitment in [update.comm_r_old, update.comm_d_new, update.comm_r_new] {
        builder.push(commitment);
        builder.push_input(commitment);
    }
}

/// Writes the part that all challenges share, and comm_r of the old and the new replica.
fn write_private(
    isa: Isa,
    shape: &UpdateShape,
    update: &Update,
    builder: &mut Builder,
) -> Result<(), ShapeError> {
    builder.extend(&[update.comm_c, update.root_r_old, update.root_r_new]);
    builder.extend(&update.apex_leafs);
    for siblings in shape.partition_path(update) {
        builder.extend(siblings);
    }
    let preimages = [
        update.comm_c,
        update.root_r_old,
        update.comm_c,
        update.root_r_new,
    ];
    let hashes = Hash::nodes(2)?.function().hash(isa, &preimages);
    hashes.write(0, builder);
    hashes.write(1, builder);
    Ok(())
}

/// The hashes of the tree over the apex leaves, row by row, and its root.
fn apex_tree(
    context: Context<'_>,
    leaves: &[Scalar],
) -> Result<(Vec<Builder>, Scalar), WriteError> {
    let (mut hashes, mut row) = (Vec::new(), leaves.to_vec());
    while row.len() > 1 {
        let next: Vec<(Builder, Scalar)> = row
            .par_chunks_exact(2)
            .map(|children| {
                context.check()?;
                let mut builder = Builder::default();
                let node = sha256_path::write_hash(children, &mut builder);
                Ok((builder, node))
            })
            .collect::<Result<_, WriteError>>()?;
        let (builders, nodes): (Vec<_>, Vec<_>) = next.into_iter().unzip();
        hashes.extend(builders);
        row = nodes;
    }
    Ok((hashes, row.first().copied().unwrap_or_default()))
}
