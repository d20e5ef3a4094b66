//! WindowPoSt: the sectors of one partition of a deadline are still stored.

use filecoin_proofs::parameters::window_post_public_params;
use filecoin_proofs_api::RegisteredPoStProof;
use storage_proofs_post::fallback;

use super::post::{self, Partition, Sector};
use super::statement::ReferenceStatement;
use super::visitor::CircuitVisitor;
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
        params,
        miner_id: request.miner_id,
        randomness: request.randomness,
        index: usize::try_from(request.partition_index)
            .map_err(|problem| Error::synthesis("partition index", &problem))?,
    };
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

/// Hands the circuit without values to `visitor`.
pub(super) fn visit_blank<Tree: ReplicaTree, V: CircuitVisitor>(
    size: SectorSize,
    visitor: V,
) -> Result<V::Output, Error> {
    post::visit_blank::<Tree, _>(&params::<Tree>(window_post_proof(size))?, visitor)
}
