//! A sector of a PoSt.

use filecoin_proofs::constants::DefaultTreeDomain;
use serde::Deserialize;
use storage_proofs_post::fallback;

use super::merkle::MerkleProof;
use super::{Mismatch, Node, each, expect_count};
use crate::tree::{Branching, ReplicaTree};

#[derive(Deserialize)]
struct SectorProof {
    inclusion_proofs: Vec<MerkleProof>,
    comm_c: Node,
    comm_r_last: Node,
}

#[derive(Deserialize)]
struct SectorProofs {
    sectors: Vec<SectorProof>,
}

/// A sector, with a path for each of its challenges.
#[derive(Deserialize)]
pub(in crate::kinds) struct PostSector {
    sector_id: u64,
    comm_r: Node,
    vanilla_proof: SectorProofs,
}

impl PostSector {
    /// The sector and its proof, which is one entry with a path for each
    /// challenge.
    pub(in crate::kinds) fn check<Tree: ReplicaTree>(
        self,
        challenges: usize,
        replica: Branching,
    ) -> Result<
        (
            fallback::PublicSector<DefaultTreeDomain>,
            fallback::SectorProof<Tree::Proof>,
        ),
        Mismatch,
    > {
        let sectors = self.vanilla_proof.sectors;
        expect_count("sectors in it", 1, sectors.len())?;
        let sector = sectors.into_iter().next().ok_or("has no sector")?;
        expect_count("challenges", challenges, sector.inclusion_proofs.len())?;
        let public = fallback::PublicSector {
            id: self.sector_id.into(),
            comm_r: self.comm_r.element("comm_r")?,
        };
        let proof = fallback::SectorProof {
            inclusion_proofs: each("challenge", sector.inclusion_proofs, |proof| {
                proof.check(replica)
            })?,
            comm_c: sector.comm_c.element("comm_c")?,
            comm_r_last: sector.comm_r_last.element("comm_r_last")?,
        };
        Ok((public, proof))
    }
}
