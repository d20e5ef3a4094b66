//! The shape of vanilla proofs, checked before the proofs library sees them.
//!
//! Not a decoder: these types mirror the library's serialised ones field by
//! field, keep only lengths and positions, and are dropped. They exist because
//! the library panics on a value that is not a field element, on a path with
//! the wrong number of siblings, on a missing column, and so on. The invariant:
//! a vanilla proof that passes has exactly the shape of its circuit's blank
//! instance, and every node in it is a field element.

use bincode::Options;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::tree::Branching;
use crate::request::field_element;

/// A node of a tree. That it was a field element is all that is kept.
pub(super) struct Node;

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if field_element(<[u8; 32]>::deserialize(deserializer)?) {
            Ok(Self)
        } else {
            Err(D::Error::custom("a node is not a field element"))
        }
    }
}

/// What does not match, from the outside in.
pub(super) type Mismatch = String;

/// Prefixes a mismatch with where it is.
fn within<T>(place: impl FnOnce() -> String, result: Result<T, Mismatch>) -> Result<T, Mismatch> {
    result.map_err(|mismatch| format!("{}: {mismatch}", place()))
}

fn expect_count(what: &str, expected: usize, got: usize) -> Result<(), Mismatch> {
    if expected == got {
        Ok(())
    } else {
        Err(format!("expected {expected} {what}, got {got}"))
    }
}

#[derive(Deserialize)]
struct PathElement {
    hashes: Vec<Node>,
    index: usize,
}

#[derive(Deserialize)]
struct InclusionPath {
    path: Vec<PathElement>,
}

impl InclusionPath {
    fn check(&self, levels: usize, arity: usize) -> Result<(), Mismatch> {
        expect_count("levels in the Merkle path", levels, self.path.len())?;
        for element in &self.path {
            expect_count(
                "siblings in the Merkle path",
                arity - 1,
                element.hashes.len(),
            )?;
            if element.index >= arity {
                return Err(format!(
                    "expected a position below {arity} in the Merkle path, got {}",
                    element.index
                ));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "root and leaf are read to be checked as nodes")]
enum ProofData {
    Single {
        root: Node,
        leaf: Node,
        path: InclusionPath,
    },
    Sub {
        base_proof: InclusionPath,
        sub_proof: InclusionPath,
        root: Node,
        leaf: Node,
    },
    Top {
        base_proof: InclusionPath,
        sub_proof: InclusionPath,
        top_proof: InclusionPath,
        root: Node,
        leaf: Node,
    },
}

#[derive(Deserialize)]
pub(super) struct MerkleProof {
    data: ProofData,
}

impl MerkleProof {
    fn check(&self, tree: Branching) -> Result<(), Mismatch> {
        match (&self.data, tree.sub, tree.top) {
            (ProofData::Single { path, .. }, 0, 0) => path.check(tree.base, tree.arity),
            (
                ProofData::Sub {
                    base_proof,
                    sub_proof,
                    ..
                },
                sub,
                0,
            ) if sub > 0 => {
                base_proof.check(tree.base, tree.arity)?;
                sub_proof.check(1, sub)
            }
            (
                ProofData::Top {
                    base_proof,
                    sub_proof,
                    top_proof,
                    ..
                },
                sub,
                top,
            ) if top > 0 => {
                base_proof.check(tree.base, tree.arity)?;
                sub_proof.check(1, sub)?;
                top_proof.check(1, top)
            }
            _ => Err("the Merkle proof is of a tree for another sector size".into()),
        }
    }
}

#[derive(Deserialize)]
struct Column {
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
}

/// A challenge of a PoRep.
#[derive(Deserialize)]
pub(super) struct PorepChallenge {
    comm_d_proofs: MerkleProof,
    comm_r_last_proof: MerkleProof,
    replica_column_proofs: ReplicaColumnProof,
    labeling_proofs: Vec<LabelingProof>,
    encoding_proof: LabelingProof,
}

/// Numbers that the shape of a PoRep's vanilla proof follows from.
#[derive(Clone, Copy)]
pub(super) struct PorepShape {
    pub(super) partitions: usize,
    pub(super) challenges: usize,
    pub(super) layers: usize,
    pub(super) drg_parents: usize,
    pub(super) exp_parents: usize,
    pub(super) label_parents: usize,
    pub(super) data: Branching,
    pub(super) replica: Branching,
}

impl PorepShape {
    pub(super) fn check(&self, partitions: &[Vec<PorepChallenge>]) -> Result<(), Mismatch> {
        expect_count("partitions", self.partitions, partitions.len())?;
        for (p, challenges) in partitions.iter().enumerate() {
            within(
                || format!("partition {p}"),
                expect_count("challenges", self.challenges, challenges.len()),
            )?;
            for (c, challenge) in challenges.iter().enumerate() {
                within(
                    || format!("partition {p}, challenge {c}"),
                    self.check_challenge(challenge),
                )?;
            }
        }
        Ok(())
    }

    fn check_challenge(&self, challenge: &PorepChallenge) -> Result<(), Mismatch> {
        within(
            || "comm_d_proofs".into(),
            challenge.comm_d_proofs.check(self.data),
        )?;
        within(
            || "comm_r_last_proof".into(),
            challenge.comm_r_last_proof.check(self.replica),
        )?;
        let columns = &challenge.replica_column_proofs;
        within(|| "c_x".into(), self.check_column(&columns.c_x))?;
        for (name, expected, parents) in [
            ("drg_parents", self.drg_parents, &columns.drg_parents),
            ("exp_parents", self.exp_parents, &columns.exp_parents),
        ] {
            within(
                || name.into(),
                expect_count("columns", expected, parents.len()),
            )?;
            for (i, parent) in parents.iter().enumerate() {
                within(|| format!("{name}[{i}]"), self.check_column(parent))?;
            }
        }
        expect_count(
            "labeling_proofs",
            self.layers,
            challenge.labeling_proofs.len(),
        )?;
        for (i, label) in challenge.labeling_proofs.iter().enumerate() {
            within(|| format!("labeling_proofs[{i}]"), self.check_label(label))?;
        }
        within(
            || "encoding_proof".into(),
            self.check_label(&challenge.encoding_proof),
        )
    }

    fn check_column(&self, proof: &ColumnProof) -> Result<(), Mismatch> {
        expect_count("rows in the column", self.layers, proof.column.rows.len())?;
        proof.inclusion_proof.check(self.replica)
    }

    fn check_label(&self, label: &LabelingProof) -> Result<(), Mismatch> {
        expect_count("parents", self.label_parents, label.parents.len())
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "commitments are read to be checked as nodes")]
struct SectorProof {
    inclusion_proofs: Vec<MerkleProof>,
    comm_c: Node,
    comm_r_last: Node,
}

#[derive(Deserialize)]
struct SectorProofs {
    sectors: Vec<SectorProof>,
}

/// A sector of a PoSt.
#[derive(Deserialize)]
#[expect(dead_code, reason = "sector_id and comm_r are read to get past them")]
pub(super) struct PostSector {
    sector_id: u64,
    comm_r: Node,
    vanilla_proof: SectorProofs,
}

impl PostSector {
    /// A sector's proof has one entry with a path for each challenge.
    pub(super) fn check(&self, challenges: usize, replica: Branching) -> Result<(), Mismatch> {
        let [sector] = self.vanilla_proof.sectors.as_slice() else {
            return expect_count("sectors in it", 1, self.vanilla_proof.sectors.len());
        };
        expect_count("challenges", challenges, sector.inclusion_proofs.len())?;
        for (c, proof) in sector.inclusion_proofs.iter().enumerate() {
            within(|| format!("challenge {c}"), proof.check(replica))?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct UpdateChallenge {
    proof_r_old: MerkleProof,
    proof_d_new: MerkleProof,
    proof_r_new: MerkleProof,
}

/// A partition of a sector update.
#[derive(Deserialize)]
#[expect(dead_code, reason = "comm_c is read to be checked as a node")]
pub(super) struct UpdatePartition {
    comm_c: Node,
    apex_leafs: Vec<Node>,
    challenge_proofs: Vec<UpdateChallenge>,
}

impl UpdatePartition {
    pub(super) fn check(
        &self,
        apex_leafs: usize,
        challenges: usize,
        data: Branching,
        replica: Branching,
    ) -> Result<(), Mismatch> {
        expect_count("apex_leafs", apex_leafs, self.apex_leafs.len())?;
        expect_count("challenge_proofs", challenges, self.challenge_proofs.len())?;
        for (c, challenge) in self.challenge_proofs.iter().enumerate() {
            for (name, proof, tree) in [
                ("proof_r_old", &challenge.proof_r_old, replica),
                ("proof_d_new", &challenge.proof_d_new, data),
                ("proof_r_new", &challenge.proof_r_new, replica),
            ] {
                within(|| format!("challenge {c}, {name}"), proof.check(tree))?;
            }
        }
        Ok(())
    }
}

/// Reads bincode as the proofs library writes it, all of it, with no length
/// taken on trust.
pub(super) fn from_bincode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Mismatch> {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_limit(bytes.len() as u64)
        .reject_trailing_bytes()
        .deserialize(bytes)
        .map_err(|problem| problem.to_string())
}
