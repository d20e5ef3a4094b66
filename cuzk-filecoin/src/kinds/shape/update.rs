//! A partition of a sector update.

use serde::Deserialize;
use storage_proofs_update::{ChallengeProof, PartitionProof, PublicParams};

use super::merkle::MerkleProof;
use super::{Mismatch, Node, each, elements, expect_count, within};
use crate::tree::{Branching, ReplicaTree};

#[derive(Deserialize)]
struct UpdateChallenge {
    proof_r_old: MerkleProof,
    proof_d_new: MerkleProof,
    proof_r_new: MerkleProof,
}

/// The vanilla proof of one partition.
#[derive(Deserialize)]
pub(in crate::kinds) struct UpdatePartition {
    comm_c: Node,
    apex_leafs: Vec<Node>,
    challenge_proofs: Vec<UpdateChallenge>,
}

impl UpdatePartition {
    /// The partition's vanilla proof.
    pub(in crate::kinds) fn check<Tree: ReplicaTree>(
        self,
        params: &PublicParams,
        data: Branching,
        replica: Branching,
    ) -> Result<PartitionProof<Tree>, Mismatch> {
        expect_count("apex_leafs", params.apex_leaf_count, self.apex_leafs.len())?;
        expect_count(
            "challenge_proofs",
            params.challenge_count,
            self.challenge_proofs.len(),
        )?;
        Ok(PartitionProof {
            comm_c: self.comm_c.element("comm_c")?,
            apex_leafs: elements(self.apex_leafs, "an apex leaf")?,
            challenge_proofs: each("challenge", self.challenge_proofs, |challenge| {
                Ok(ChallengeProof {
                    proof_r_old: within(
                        || "proof_r_old".into(),
                        challenge.proof_r_old.check(replica),
                    )?,
                    proof_d_new: within(
                        || "proof_d_new".into(),
                        challenge.proof_d_new.check(data),
                    )?,
                    proof_r_new: within(
                        || "proof_r_new".into(),
                        challenge.proof_r_new.check(replica),
                    )?,
                })
            })?,
        })
    }
}
