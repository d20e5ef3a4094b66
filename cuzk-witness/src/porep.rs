//! PoRep: a sector was sealed as its commitments say.
//!
//! The circuit is `storage_proofs_porep::stacked::StackedCircuit`. Its challenges share
//! only the commitments and the replica's id, so they are written apart and joined in
//! order. Within a challenge, three pieces are written apart: the path of the data, eight
//! of the parents, and everything else. A challenge's sixteen paths in the replica's trees
//! fill the lanes of the hash twice.
//!
//! A writer does not check labels or roots: the circuit's rows do.

use crate::error::expect_len;
use crate::label;
use crate::num::write_bits;
use crate::por::{Climb, MerklePath, TreeShape};
use crate::poseidon::{HASHES_AT_ONCE, Hash, Hashes};
use crate::sha256::COMPRESSION_BITS_AT_MOST;
use crate::{
    ArrayMemory, Builder, Context, Isa, PackedWitness, ShapeError, WriteError, sha256_path,
};
use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

/// Parents of a node in the graph of its own layer.
const DRG_PARENTS: usize = 6;
/// Parents of a node in the layer before.
const EXP_PARENTS: usize = 8;
const PARENTS: usize = DRG_PARENTS + EXP_PARENTS;

/// The shape that all proofs of a sector size share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PorepShape {
    /// The binary tree over the data.
    pub data: TreeShape,
    /// The trees over the columns and over the replica.
    pub replica: TreeShape,
    /// Layers of labels: 2 or 11.
    pub layers: usize,
    /// Challenges of a partition.
    pub challenges: usize,
}

/// The statement of a partition, which all its challenges share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The identity of the replica, which is public.
    pub replica_id: Scalar,
    /// Root of the tree over the data; public.
    pub comm_d: Scalar,
    /// Commitment to both of the replica's trees; public.
    pub comm_r: Scalar,
    /// Root of the tree over the replica.
    pub comm_r_last: Scalar,
    /// Root of the tree over the columns.
    pub comm_c: Scalar,
}

/// A challenged node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The node's number; public.
    pub node: u64,
    /// From the node's data to `comm_d`.
    pub data: MerklePath,
    /// From the node's replica to `comm_r_last`. The circuit computes the
    /// leaf, so the path's own does not count.
    pub replica: MerklePath,
    /// From the hash of the node's column to `comm_c`. The circuit computes
    /// the leaf, so the path's own does not count.
    pub column: MerklePath,
    /// The columns of its parents: six in the graph of the layer, then eight
    /// in the layer before.
    pub parents: Vec<Column>,
}

/// The labels of a node, and that they are committed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// A label a layer.
    pub labels: Vec<Scalar>,
    /// From the labels' hash to `comm_c`. The circuit computes the leaf, so
    /// the path's own does not count.
    pub path: MerklePath,
}

/// Writes the witness of one partition.
///
/// # Errors
/// [`WriteError::Stopped`]. [`WriteError::Shape`] if there are more or fewer challenges,
/// parents, labels or nodes than the shape has, or if a leaf's index is out of range.
pub fn write(
    context: Context<'_>,
    shape: PorepShape,
    statement: &Statement,
    challenges: &[Challenge],
) -> Result<PackedWitness<Scalar>, WriteError> {
    check(shape, challenges)?;
    let mut witness = Room::statement_and_challenges(shape).builder(context.memory);
    write_statement(context.isa, statement, &mut witness);
    // No more challenges at once than keep the threads busy: their parts are
    // as large as the witness.
    for challenges in challenges.chunks(2 * rayon::current_num_threads()) {
        let parts: Vec<Parts> = challenges
            .par_iter()
            .map(|challenge| write_challenge(context, shape, statement, challenge))
            .collect::<Result<_, _>>()?;
        for parts in parts {
            context.check()?;
            witness.append_all(&parts);
        }
    }
    witness.finish().map_err(|error| {
        // ONE is the first public input.
        ShapeError::new("public inputs", "ONE", error).into()
    })
}

fn check(shape: PorepShape, challenges: &[Challenge]) -> Result<(), ShapeError> {
    expect_len("challenges", shape.challenges, challenges.len())?;
    Hash::column(shape.layers)?;
    for (number, challenge) in challenges.iter().enumerate() {
        check_challenge(shape, challenge)
            .map_err(|error| error.within(format!("challenge {number}")))?;
    }
    Ok(())
}

fn check_challenge(shape: PorepShape, challenge: &Challenge) -> Result<(), ShapeError> {
    let paths = [
        ("comm_d", shape.data, &challenge.data),
        ("comm_r_last", shape.replica, &challenge.replica),
        ("comm_c", shape.replica, &challenge.column),
    ];
    for (root, tree, path) in paths {
        path.check(tree)
            .map_err(|error| error.within(format!("path to {root}")))?;
    }
    expect_len("parents", PARENTS, challenge.parents.len())?;
    for (number, parent) in challenge.parents.iter().enumerate() {
        expect_len("labels", shape.layers, parent.labels.len())
            .and_then(|()| parent.path.check(shape.replica))
            .map_err(|error| error.within(format!("parent {number}")))?;
    }
    Ok(())
}

/// The commitments, and that the replica's are those of its trees.
fn write_statement(isa: Isa, statement: &Statement, builder: &mut Builder) {
    builder.push_input(Scalar::ONE);
    builder.push(statement.replica_id);
    builder.push_input(statement.replica_id);
    write_bits(&statement.replica_id, builder);
    for public in [statement.comm_d, statement.comm_r] {
        builder.push(public);
        builder.push_input(public);
    }
    builder.extend(&[statement.comm_r_last, statement.comm_c]);
    let roots = [statement.comm_c, statement.comm_r_last];
    Hash::Nodes2.function().write(isa, &roots, builder);
}

/// The parts of a challenge, in order: the data, its first parents, the other
/// parents, and the node itself.
type Parts = [Builder; 4];

fn write_challenge(
    context: Context<'_>,
    shape: PorepShape,
    statement: &Statement,
    challenge: &Challenge,
) -> Result<Parts, WriteError> {
    let (first, others) = challenge.parents.split_at(HASHES_AT_ONCE.min(PARENTS));
    let (data, (first, rest)) = rayon::join(
        || write_data(context, shape, challenge),
        || {
            rayon::join(
                || write_parents(context, shape, first),
                || write_node_and_parents(context, shape, statement, challenge, others),
            )
        },
    );
    let [others, node] = rest?;
    Ok([data?, first?, others, node])
}

/// The node's data, in the tree over all of it.
fn write_data(
    context: Context<'_>,
    shape: PorepShape,
    challenge: &Challenge,
) -> Result<Builder, WriteError> {
    context.check()?;
    let mut builder = Room::data(shape).builder(context.memory);
    builder.push(challenge.data.leaf);
    sha256_path::write(shape.data, &challenge.data, &mut builder)?;
    builder.push_input(Scalar::from(challenge.data.index));
    Ok(builder)
}

fn write_parents(
    context: Context<'_>,
    shape: PorepShape,
    parents: &[Column],
) -> Result<Builder, WriteError> {
    context.check()?;
    let isa = context.isa;
    let columns = hash_columns(isa, shape, parents.iter().map(|parent| &parent.labels[..]))?;
    let paths = parents.iter().map(|parent| &parent.path).collect();
    let climb = Climb::from_leaves(isa, shape.replica, columns.digests().collect(), paths)?;
    let mut builder = Room::columns(shape, parents.len()).builder(context.memory);
    for (i, parent) in parents.iter().enumerate() {
        context.check()?;
        write_parent(parent, i, &columns, &climb, &mut builder)?;
    }
    Ok(builder)
}

/// Two parts: `parents`, and everything about the node but its data. Its
/// labels come first, since its own two paths are climbed with the parents'.
fn write_node_and_parents(
    context: Context<'_>,
    shape: PorepShape,
    statement: &Statement,
    challenge: &Challenge,
    parents: &[Column],
) -> Result<[Builder; 2], WriteError> {
    context.check()?;
    let Context { isa, memory, .. } = context;
    let mut node = Room::node(shape).builder(memory);
    node.push_bits(challenge.node, 64);
    node.push_input(Scalar::from(challenge.node));
    let labels = write_labels(context, shape, statement, challenge, &mut node)?;
    let key = labels.last().copied().unwrap_or_default();
    let encoded = key + challenge.data.leaf;

    context.check()?;
    let rows = parents.iter().map(|parent| &parent.labels[..]);
    let columns = hash_columns(isa, shape, rows.chain([&labels[..]]))?;
    let leaves = columns.digests().chain([encoded]).collect();
    let paths = parents.iter().map(|parent| &parent.path);
    let paths = paths
        .chain([&challenge.column, &challenge.replica])
        .collect();
    let climb = Climb::from_leaves(isa, shape.replica, leaves, paths)?;

    let mut others = Room::columns(shape, parents.len()).builder(memory);
    for (i, parent) in parents.iter().enumerate() {
        context.check()?;
        write_parent(parent, i, &columns, &climb, &mut others)?;
    }
    let (column, replica) = (parents.len(), parents.len() + 1);
    node.push(encoded);
    climb.write(replica, &mut node)?;
    node.push_input(Scalar::from(challenge.replica.index));
    columns.write(column, &mut node);
    climb.write(column, &mut node)?;
    node.push_input(Scalar::from(challenge.column.index));
    Ok([others, node])
}

/// The node's labels, each with the bits of the labels that it comes from.
fn write_labels(
    context: Context<'_>,
    shape: PorepShape,
    statement: &Statement,
    challenge: &Challenge,
    builder: &mut Builder,
) -> Result<Vec<Scalar>, WriteError> {
    let (drg, exp) = challenge.parents.split_at(DRG_PARENTS);
    let row = |columns: &[Column], layer: usize| -> Vec<Scalar> {
        let labels = columns.iter().map(|column| column.labels.get(layer));
        labels.flatten().copied().collect()
    };
    let mut labels = Vec::with_capacity(shape.layers);
    for (layer, number) in (0..shape.layers).zip(1..) {
        context.check()?;
        let mut parents = row(drg, layer);
        if let Some(before) = layer.checked_sub(1) {
            parents.extend(row(exp, before));
        }
        for parent in &parents {
            write_bits(parent, builder);
        }
        let (replica_id, node) = (&statement.replica_id, challenge.node);
        labels.push(label::write(replica_id, number, node, &parents, builder));
    }
    Ok(labels)
}

fn hash_columns<'a>(
    isa: Isa,
    shape: PorepShape,
    columns: impl Iterator<Item = &'a [Scalar]>,
) -> Result<Hashes, ShapeError> {
    let preimages: Vec<Scalar> = columns.flatten().copied().collect();
    Ok(Hash::column(shape.layers)?.function().hash(isa, &preimages))
}

/// A parent's labels, their hash, and that they are committed to.
fn write_parent(
    parent: &Column,
    index: usize,
    columns: &Hashes,
    climb: &Climb<'_>,
    builder: &mut Builder,
) -> Result<(), ShapeError> {
    builder.extend(&parent.labels);
    columns.write(index, builder);
    climb.write(index, builder)?;
    builder.push_input(Scalar::from(parent.path.index));
    Ok(())
}

/// Variables to reserve for: those that are bits, and any others.
#[derive(Clone, Copy)]
struct Room {
    bits: usize,
    others: usize,
}

impl Room {
    fn data(shape: PorepShape) -> Room {
        let levels = shape.data.arities().count();
        Room {
            bits: levels * 2 * COMPRESSION_BITS_AT_MOST,
            others: shape.data.variables(),
        }
    }

    /// For columns or nodes of the replica, with their paths.
    fn columns(shape: PorepShape, count: usize) -> Room {
        let hash = Hash::column(shape.layers).map_or(0, |hash| hash.function().variables());
        Room {
            bits: 0,
            others: count * (shape.layers + hash + shape.replica.variables()),
        }
    }

    /// For a node's labels, and the two paths from it.
    fn node(shape: PorepShape) -> Room {
        let Room { bits, others } = Room::columns(shape, 2);
        Room {
            bits: bits + shape.layers * (label::VARIABLES_AT_MOST + PARENTS * 256),
            others: others + shape.layers,
        }
    }

    fn statement_and_challenges(shape: PorepShape) -> Room {
        let parts = [
            Room::data(shape),
            Room::columns(shape, PARENTS),
            Room::node(shape),
        ];
        let sum = |part: fn(&Room) -> usize| parts.iter().map(part).sum::<usize>();
        Room {
            bits: shape.challenges * sum(|room| room.bits) + 256,
            others: shape.challenges * sum(|room| room.others) + 512,
        }
    }

    fn builder(self, memory: &ArrayMemory) -> Builder {
        Builder::with_capacity_in(memory, self.bits + self.others, self.others)
    }
}

#[cfg(test)]
mod tests;
