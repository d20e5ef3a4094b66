//! WinningPoSt: the sector that won an election is still stored.
//!
//! One sector, whose challenges the circuit takes as so many sectors with one
//! challenge each.

use blstrs::Scalar;
use cuzk_pce::ErasedCircuit;
use filecoin_proofs::parameters::winning_post_public_params;
use filecoin_proofs_api::RegisteredPoStProof;
use storage_proofs_post::fallback::{self, SectorProof};

use super::partition::{PartitionHeader, Registered};
use super::post::{self, Body, Partition, Sector};
use super::statement::ReferenceStatement;
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::registered::winning_post_proof;
use crate::request::WinningPost;
use crate::sector_size::SectorSize;
use crate::tree::{ReplicaTree, with_tree};

/// Decodes and verifies a request's vanilla proof.
pub(super) fn decode(request: &WinningPost) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = SectorSize::registered(request.registered_proof.sector_size())?;
    with_tree!(size, decode_tree(request, size))
}

fn decode_tree<Tree: ReplicaTree>(
    request: &WinningPost,
    size: SectorSize,
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let challenges = request.registered_proof.as_v1_config().challenge_count;
    let sectors = post::decode_sectors::<Tree>(&request.vanilla_proofs, challenges, size)?;
    let partition = Partition {
        id: CircuitId {
            kind: ProofKind::WinningPost,
            sector_size: size,
        },
        proof: Registered::WinningPost(request.registered_proof),
        params: params::<Tree>(size)?,
        miner_id: request.miner_id,
        randomness: request.randomness,
        index: 0,
    };
    post::verified(partition, sectors.into_iter().flat_map(unroll).collect())
}

/// Decodes and verifies a partition's request.
pub(super) fn decode_partition(
    proof: RegisteredPoStProof,
    header: &PartitionHeader,
    body: &[u8],
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = header.circuit.sector_size;
    with_tree!(size, decode_partition_tree(proof, header, body))
}

fn decode_partition_tree<Tree: ReplicaTree>(
    proof: RegisteredPoStProof,
    header: &PartitionHeader,
    body: &[u8],
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let body = Body::read(header, body)?;
    let size = header.circuit.sector_size;
    let partition = Partition {
        id: header.circuit,
        proof: header.proof,
        params: params::<Tree>(size)?,
        miner_id: body.miner_id,
        randomness: body.randomness,
        index: 0,
    };
    let challenges = proof.as_v1_config().challenge_count;
    let sectors = body.sectors::<Tree>(proof.sector_count(), challenges, size)?;
    post::verified(partition, sectors.into_iter().flat_map(unroll).collect())
}

/// One entry per challenge.
fn unroll<Tree: ReplicaTree>(sector: Sector<Tree>) -> impl Iterator<Item = Sector<Tree>> {
    let Sector {
        public,
        vanilla:
            SectorProof {
                inclusion_proofs,
                comm_c,
                comm_r_last,
            },
    } = sector;
    inclusion_proofs.into_iter().map(move |proof| Sector {
        public: public.clone(),
        vanilla: SectorProof {
            inclusion_proofs: vec![proof],
            comm_c,
            comm_r_last,
        },
    })
}

fn params<Tree: ReplicaTree>(size: SectorSize) -> Result<fallback::PublicParams, Error> {
    winning_post_public_params::<Tree>(&winning_post_proof(size).as_v1_config())
        .map_err(|problem| Error::synthesis("WinningPoSt parameters", &problem))
}

/// Returns the circuit without values.
pub(super) fn blank<Tree: ReplicaTree>(
    size: SectorSize,
) -> Result<ErasedCircuit<'static, Scalar>, Error> {
    post::blank::<Tree>(&params::<Tree>(size)?)
}
