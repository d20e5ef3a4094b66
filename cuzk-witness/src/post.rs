//! WinningPoSt and WindowPoSt: sectors are still stored.
//!
//! The circuit is `storage_proofs_post::fallback::FallbackPoStCircuit`. Its sectors share
//! nothing, so they are written apart, in groups that fill the lanes of the hash. They are
//! joined in order, on all threads: the values of a partition of full size are gigabytes.

use crate::error::expect_len;
use crate::por::{Climb, MerklePath, TreeShape};
use crate::poseidon::{HASHES_AT_ONCE, Hash, Hashes};
use crate::{ArrayMemory, Builder, Context, Isa, PackedWitness, ShapeError, WriteError};
use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

/// Paths whose hashes are held at once on a thread.
const GROUP_PATHS: usize = 5 * HASHES_AT_ONCE;

/// Groups that are written before they are joined, for each thread.
const GROUPS_A_THREAD: usize = 2;

/// The shape that all proofs of a kind and a sector size share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostShape {
    /// The tree over a sector's replica.
    pub tree: TreeShape,
    /// Sectors of a partition.
    pub sectors: usize,
    /// Challenges of each.
    pub challenges: usize,
}

impl PostShape {
    /// Returns the most auxiliary variables that [`write()`] has apart for each thread, before
    /// it joins them.
    #[must_use]
    pub fn variables_apart(&self) -> usize {
        GROUPS_A_THREAD * self.group() * self.sector_variables()
    }

    /// Sectors that a thread writes at once.
    fn group(&self) -> usize {
        GROUP_PATHS.div_ceil(self.challenges.max(1))
    }

    fn sector_variables(&self) -> usize {
        let inclusion = self.tree.variables() + 1;
        Hash::Nodes2.function().variables() + 3 + self.challenges * inclusion
    }
}

/// A sector of the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sector {
    /// Commitment to both trees; public.
    pub comm_r: Scalar,
    /// Root of the tree over the columns.
    pub comm_c: Scalar,
    /// Root of the tree over the replica.
    pub comm_r_last: Scalar,
    /// From each challenged leaf to `comm_r_last`; the leaf's index is public.
    pub paths: Vec<MerklePath>,
}

/// Writes the witness of one partition.
///
/// # Errors
/// If it is stopped, there are more or fewer sectors, challenges or nodes than the shape
/// says, or a leaf's index is out of range.
pub fn write(
    context: Context<'_>,
    shape: PostShape,
    sectors: &[Sector],
) -> Result<PackedWitness<Scalar>, WriteError> {
    expect_len("sectors", shape.sectors, sectors.len())?;
    for (number, sector) in sectors.iter().enumerate() {
        check(sector, shape).map_err(|error| error.within(format!("sector {number}")))?;
    }
    let mut witness = reserve(context.memory, shape, sectors.len());
    witness.push_input(Scalar::ONE);
    let group = shape.group();
    // No more groups at once than keep the threads busy: a partition of full
    // size is gigabytes.
    for sectors in sectors.chunks(group * GROUPS_A_THREAD * rayon::current_num_threads()) {
        let groups: Vec<Builder> = sectors
            .par_chunks(group)
            .map(|sectors| write_group(context, shape, sectors))
            .collect::<Result<_, _>>()?;
        witness.append_in_parallel(&groups, context.checkpoint)?;
    }
    witness.finish().map_err(|error| {
        // ONE is the first public input.
        ShapeError::new("public inputs", "ONE", error).into()
    })
}

fn check(sector: &Sector, shape: PostShape) -> Result<(), ShapeError> {
    expect_len("challenges", shape.challenges, sector.paths.len())?;
    for (number, path) in sector.paths.iter().enumerate() {
        path.check(shape.tree)
            .map_err(|error| error.within(format!("challenge {number}")))?;
    }
    Ok(())
}

fn write_group(
    context: Context<'_>,
    shape: PostShape,
    sectors: &[Sector],
) -> Result<Builder, WriteError> {
    let paths: Vec<&MerklePath> = sectors.iter().flat_map(|sector| &sector.paths).collect();
    let (commitments, climbs) = rayon::join(
        || commitments(context.isa, sectors),
        || climb(context, shape.tree, &paths),
    );
    let climbs = climbs?;
    context.check()?;
    let mut builder = reserve(context.memory, shape, sectors.len());
    let mut path = 0;
    for (i, sector) in sectors.iter().enumerate() {
        builder.extend(&[sector.comm_r_last, sector.comm_c, sector.comm_r]);
        builder.push_input(sector.comm_r);
        commitments.write(i, &mut builder);
        for inclusion in &sector.paths {
            builder.push(inclusion.leaf);
            climbs[path / HASHES_AT_ONCE].write(path % HASHES_AT_ONCE, &mut builder)?;
            builder.push_input(Scalar::from(inclusion.index));
            path += 1;
        }
    }
    Ok(builder)
}

/// comm_r of every sector, from comm_c and comm_r_last.
fn commitments(isa: Isa, sectors: &[Sector]) -> Hashes {
    let preimages: Vec<Scalar> = sectors
        .iter()
        .flat_map(|sector| [sector.comm_c, sector.comm_r_last])
        .collect();
    Hash::Nodes2.function().hash(isa, &preimages)
}

fn climb<'a>(
    context: Context<'_>,
    tree: TreeShape,
    paths: &[&'a MerklePath],
) -> Result<Vec<Climb<'a>>, WriteError> {
    paths
        .par_chunks(HASHES_AT_ONCE)
        .map(|paths| {
            context.check()?;
            Ok(Climb::new(context.isa, tree, paths.to_vec())?)
        })
        .collect()
}

fn reserve(memory: &ArrayMemory, shape: PostShape, sectors: usize) -> Builder {
    let variables = sectors * shape.sector_variables();
    Builder::with_capacity_in(memory, variables, variables)
}

#[cfg(test)]
mod tests;
