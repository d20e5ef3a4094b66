//! A challenge of a PoRep.

use cuzk_witness::por::MerklePath;
use cuzk_witness::porep as writer;
use filecoin_hashers::poseidon::PoseidonDomain;
use filecoin_proofs::constants::{DefaultPieceHasher, DefaultTreeHasher};
use serde::Deserialize;
use storage_proofs_core::merkle::{MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_porep::stacked;

use super::merkle::MerkleProof;
use super::{Mismatch, Node, each, elements, expect_count, expect_node, within};
use crate::kinds::native::merkle_path;
use crate::tree::{Branching, ReplicaTree};

type TreeProof<Tree> = storage_proofs_core::merkle::MerkleProof<
    DefaultTreeHasher,
    <Tree as MerkleTreeTrait>::Arity,
    <Tree as MerkleTreeTrait>::SubTreeArity,
    <Tree as MerkleTreeTrait>::TopTreeArity,
>;
type VanillaProof<Tree> = stacked::Proof<Tree, DefaultPieceHasher>;

#[derive(Deserialize)]
struct Column {
    index: u32,
    rows: Vec<Node>,
}

#[derive(Deserialize)]
struct ColumnProof {
    column: Column,
    inclusion_proof: MerkleProof,
}

#[derive(Deserialize)]
struct ReplicaColumnProof {
    c_x: ColumnProof,
    drg_parents: Vec<ColumnProof>,
    exp_parents: Vec<ColumnProof>,
}

#[derive(Deserialize)]
struct LabelingProof {
    parents: Vec<Node>,
    layer_index: u32,
    node: u64,
}

/// The vanilla proof of one challenged node.
#[derive(Deserialize)]
pub(in crate::kinds) struct PorepChallenge {
    comm_d_proofs: MerkleProof,
    comm_r_last_proof: MerkleProof,
    replica_column_proofs: ReplicaColumnProof,
    labeling_proofs: Vec<LabelingProof>,
    encoding_proof: LabelingProof,
}

/// Numbers that the shape of a PoRep's vanilla proof follows from.
#[derive(Clone, Copy)]
pub(in crate::kinds) struct PorepShape {
    pub(in crate::kinds) partitions: usize,
    pub(in crate::kinds) challenges: usize,
    pub(in crate::kinds) layers: usize,
    pub(in crate::kinds) drg_parents: usize,
    pub(in crate::kinds) exp_parents: usize,
    pub(in crate::kinds) label_parents: usize,
    pub(in crate::kinds) data: Branching,
    pub(in crate::kinds) replica: Branching,
}

impl PorepShape {
    /// The vanilla proofs of all partitions, if they have this shape: each
    /// challenge as the library has it, and as a witness is written from.
    #[expect(clippy::type_complexity, reason = "a pair for every challenge")]
    pub(in crate::kinds) fn check<Tree: ReplicaTree>(
        &self,
        partitions: Vec<Vec<PorepChallenge>>,
    ) -> Result<Vec<(Vec<VanillaProof<Tree>>, Vec<writer::Challenge>)>, Mismatch> {
        expect_count("partitions", self.partitions, partitions.len())?;
        each("partition", partitions, |challenges| {
            self.check_partition(challenges)
        })
    }

    /// The vanilla proof of one partition, if it has this shape.
    pub(in crate::kinds) fn check_partition<Tree: ReplicaTree>(
        &self,
        challenges: Vec<PorepChallenge>,
    ) -> Result<(Vec<VanillaProof<Tree>>, Vec<writer::Challenge>), Mismatch> {
        expect_count("challenges", self.challenges, challenges.len())?;
        let challenges = each("challenge", challenges, |challenge| {
            self.check_challenge(challenge)
        });
        Ok(challenges?.into_iter().unzip())
    }

    fn check_challenge<Tree: ReplicaTree>(
        &self,
        challenge: PorepChallenge,
    ) -> Result<(VanillaProof<Tree>, writer::Challenge), Mismatch> {
        self.check_counts(&challenge)?;
        self.check_labels(&challenge)?;
        let node = challenge.encoding_proof.node;
        let (comm_d_proofs, data) = within(
            || "comm_d_proofs".into(),
            twice(challenge.comm_d_proofs.open(self.data, node)),
        )?;
        let (comm_r_last_proof, replica) = within(
            || "comm_r_last_proof".into(),
            twice(challenge.comm_r_last_proof.open(self.replica, node)),
        )?;
        let columns = challenge.replica_column_proofs;
        let (replica_column_proofs, column, parents) = self.open_columns::<Tree>(columns, node)?;
        let native = writer::Challenge {
            node,
            data,
            replica,
            column,
            parents,
        };
        let vanilla = stacked::Proof {
            comm_d_proofs,
            comm_r_last_proof,
            replica_column_proofs,
            labeling_proofs: each("labeling_proofs", challenge.labeling_proofs, |label| {
                let parents = elements(label.parents, "a parent's label")?;
                Ok(stacked::LabelingProof::new(
                    label.layer_index,
                    node,
                    parents,
                ))
            })?,
            encoding_proof: stacked::EncodingProof::new(
                challenge.encoding_proof.layer_index,
                node,
                within(
                    || "encoding_proof".into(),
                    elements(challenge.encoding_proof.parents, "a parent's label"),
                )?,
            ),
        };
        Ok((vanilla, native))
    }

    /// The columns as the library has them, and for the writer the node's path
    /// and its parents.
    #[expect(clippy::type_complexity, reason = "the library's type")]
    fn open_columns<Tree: ReplicaTree>(
        &self,
        columns: ReplicaColumnProof,
        node: u64,
    ) -> Result<
        (
            stacked::ReplicaColumnProof<TreeProof<Tree>>,
            MerklePath,
            Vec<writer::Column>,
        ),
        Mismatch,
    > {
        let parents = |name, proofs: Vec<ColumnProof>| {
            let opened = each(name, proofs, |proof| {
                let node = proof.column.index.into();
                self.open_column::<Tree>(proof, node)
            });
            opened.map(|columns| columns.into_iter().unzip::<_, _, Vec<_>, Vec<_>>())
        };
        let (c_x, column) = within(|| "c_x".into(), self.open_column::<Tree>(columns.c_x, node))?;
        let (drg_parents, drg) = parents("drg_parents", columns.drg_parents)?;
        let (exp_parents, exp) = parents("exp_parents", columns.exp_parents)?;
        let columns = stacked::ReplicaColumnProof {
            c_x,
            drg_parents,
            exp_parents,
        };
        Ok((columns, column.path, [drg, exp].concat()))
    }

    fn open_column<Tree: ReplicaTree>(
        &self,
        proof: ColumnProof,
        node: u64,
    ) -> Result<(stacked::ColumnProof<TreeProof<Tree>>, writer::Column), Mismatch> {
        expect_node(node, proof.column.index.into())?;
        let rows: Vec<PoseidonDomain> = elements(proof.column.rows, "a label in the column")?;
        let labels = rows.iter().map(|label| (*label).into()).collect();
        let (inclusion, path) = twice(proof.inclusion_proof.open(self.replica, node))?;
        Ok((
            stacked::ColumnProof::new(proof.column.index, rows, inclusion),
            writer::Column { labels, path },
        ))
    }

    fn check_counts(&self, challenge: &PorepChallenge) -> Result<(), Mismatch> {
        let columns = &challenge.replica_column_proofs;
        let layers = |column: &ColumnProof| {
            expect_count("rows in the column", self.layers, column.column.rows.len())
        };
        within(|| "c_x".into(), layers(&columns.c_x))?;
        for (name, expected, parents) in [
            ("drg_parents", self.drg_parents, &columns.drg_parents),
            ("exp_parents", self.exp_parents, &columns.exp_parents),
        ] {
            within(
                || name.into(),
                expect_count("columns", expected, parents.len()),
            )?;
            for (i, parent) in parents.iter().enumerate() {
                within(|| format!("{name} {i}"), layers(parent))?;
            }
        }
        let labels = &challenge.labeling_proofs;
        expect_count("labeling_proofs", self.layers, labels.len())?;
        for (i, label) in labels.iter().enumerate() {
            within(
                || format!("labeling_proofs {i}"),
                expect_count("parents", self.label_parents, label.parents.len()),
            )?;
        }
        Ok(())
    }

    /// The circuit takes a label's parents from their columns, the library's
    /// verifier from the labeling proofs: they must be the same.
    fn check_labels(&self, challenge: &PorepChallenge) -> Result<(), Mismatch> {
        let columns = &challenge.replica_column_proofs;
        let encoding = &challenge.encoding_proof;
        for (below, label) in challenge.labeling_proofs.iter().enumerate() {
            let check = || {
                expect_node(encoding.node, label.node)?;
                if u32::try_from(below + 1) != Ok(label.layer_index) {
                    return Err(format!(
                        "expected layer {}, got {}",
                        below + 1,
                        label.layer_index
                    ));
                }
                let labels = parents_labels(columns, below);
                match label.parents.iter().zip(labels).position(|(a, b)| *a != b) {
                    Some(i) => Err(format!("parent {i} is not labeled as in its column")),
                    None => Ok(()),
                }
            };
            within(|| format!("labeling_proofs {below}"), check())?;
        }
        match challenge.labeling_proofs.last() {
            Some(last)
                if last.parents == encoding.parents && last.layer_index == encoding.layer_index =>
            {
                Ok(())
            }
            _ => Err("encoding_proof: is not the label of the last layer".into()),
        }
    }
}

/// A path as the library has it, and as a witness is written from.
fn twice<P: MerkleProofTrait>(proof: Result<P, Mismatch>) -> Result<(P, MerklePath), Mismatch> {
    let proof = proof?;
    let path = merkle_path(&proof).map_err(|problem| format!("{problem:#}"))?;
    Ok((proof, path))
}

/// Returns the labels that the label of a layer, counted from 0, is the hash of, over and
/// over. They are of the parents in the same layer, and of those in the layer below.
fn parents_labels(columns: &ReplicaColumnProof, layer: usize) -> impl Iterator<Item = Node> {
    let row = |proof: &ColumnProof, layer: usize| proof.column.rows.get(layer).copied();
    let same = columns.drg_parents.iter().filter_map(|p| row(p, layer));
    let below = columns
        .exp_parents
        .iter()
        .filter_map(|p| row(p, layer.checked_sub(1)?));
    let labels: Vec<Node> = same.chain(below).collect();
    labels.into_iter().cycle()
}
