//! WindowPoSt: the sectors of one partition of a deadline are still stored.

use blstrs::Scalar;
use cuzk_pce::ErasedCircuit;
use filecoin_proofs::parameters::window_post_public_params;
use filecoin_proofs_api::RegisteredPoStProof;
use storage_proofs_post::fallback;

use super::partition::{PartitionHeader, Registered};
use super::post::{self, Body, Partition, Sector};
use super::statement::ReferenceStatement;
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::registered::window_post_proof;
use crate::request::WindowPost;
use crate::sector_size::SectorSize;
use crate::tree::{ReplicaTree, with_tree};

/// Decodes and verifies a request's vanilla proofs.
pub(super) fn decode(request: &WindowPost) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = SectorSize::registered(request.registered_proof.sector_size())?;
    with_tree!(size, decode_tree(request, size))
}

fn decode_tree<Tree: ReplicaTree>(
    request: &WindowPost,
    size: SectorSize,
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let params = params::<Tree>(request.registered_proof)?;
    let sectors =
        post::decode_sectors::<Tree>(&request.vanilla_proofs, params.challenge_count, size)?;
    check_order(&sectors)?;
    let partition = Partition {
        id: CircuitId {
            kind: ProofKind::WindowPost,
            sector_size: size,
        },
        proof: Registered::WindowPost(request.registered_proof),
        params,
        miner_id: request.miner_id,
        randomness: request.randomness,
        index: index(request.partition_index)?,
    };
    post::verified(partition, sectors)
}

fn index(number: u32) -> Result<usize, Error> {
    usize::try_from(number).map_err(|problem| Error::synthesis("partition index", &problem))
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
    let params = params::<Tree>(proof)?;
    let partition = Partition {
        id: header.circuit,
        proof: header.proof,
        miner_id: body.miner_id,
        randomness: body.randomness,
        index: index(body.index)?,
        params,
    };
    let (challenges, size) = (partition.params.challenge_count, header.circuit.sector_size);
    let sectors = body.sectors::<Tree>(proof.sector_count(), challenges, size)?;
    check_order(&sectors)?;
    post::verified(partition, sectors)
}

/// The chain's verifier takes a set of sectors, in ascending order: a proof
/// over any other sequence is one that it rejects.
fn check_order<Tree: ReplicaTree>(sectors: &[Sector<Tree>]) -> Result<(), Error> {
    let numbers: Vec<u64> = sectors
        .iter()
        .map(|sector| sector.public.id.into())
        .collect();
    match numbers
        .windows(2)
        .position(|pair| matches!(pair, [a, b] if a >= b))
    {
        Some(index) => Err(Error::request(
            format!("vanilla_proofs[{}]", index + 1),
            "its sector number is not above that of the vanilla proof before it",
            "send each sector once, in ascending order of sector number",
        )),
        None => Ok(()),
    }
}

fn params<Tree: ReplicaTree>(proof: RegisteredPoStProof) -> Result<fallback::PublicParams, Error> {
    window_post_public_params::<Tree>(&proof.as_v1_config())
        .map_err(|problem| Error::synthesis("WindowPoSt parameters", &problem))
}

/// As [`post::variables_apart`].
pub(super) fn variables_apart<Tree: ReplicaTree>(size: SectorSize) -> Result<usize, Error> {
    post::variables_apart(&params::<Tree>(window_post_proof(size))?, size)
}

/// Returns the circuit without values.
pub(super) fn blank<Tree: ReplicaTree>(
    size: SectorSize,
) -> Result<ErasedCircuit<'static, Scalar>, Error> {
    post::blank::<Tree>(&params::<Tree>(window_post_proof(size))?)
}
