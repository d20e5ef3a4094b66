//! Proof of spacetime over sparse sectors.

use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::FallbackPoStSectorProof;
use filecoin_proofs::constants::{DefaultTreeDomain, DefaultTreeHasher};
use filecoin_proofs_api::post::generate_fallback_sector_challenges;
use filecoin_proofs_api::{RegisteredPoStProof, SectorId};
use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use storage_proofs_post::fallback::{Proof, SectorProof};

use super::{node, pattern};
use crate::Error;
use crate::registered;
use crate::request::ProofRequest;
use crate::request::{WindowPost, WinningPost, prover_id};
use crate::sector_size::SectorSize;
use crate::tree::{Branching, ReplicaTree, with_tree};
use crate::vanilla::merkle::SparseTree;
use crate::vanilla::{MINER_ID, failed, field_element};

/// How many sectors a WindowPoSt is of, where its partition has room for them and nobody says
/// how many.
pub(super) const WINDOW_SECTORS: usize = 4;

/// A request over one sector.
pub(super) fn winning(size: SectorSize, rng: &mut ChaCha8Rng) -> Result<ProofRequest, Error> {
    let registered_proof = registered::winning_post_proof(size);
    let randomness = field_element(rng);
    let vanilla_proofs = sectors(registered_proof, size, 1, randomness, rng)?;
    Ok(ProofRequest::WinningPost(WinningPost {
        registered_proof,
        miner_id: MINER_ID,
        randomness,
        vanilla_proofs,
    }))
}

/// A request over the first partition of a deadline, with at most so many sectors as its
/// partition has room for.
pub(in crate::vanilla) fn window(
    size: SectorSize,
    sectors_max: usize,
    rng: &mut ChaCha8Rng,
) -> Result<ProofRequest, Error> {
    let registered_proof = registered::window_post_proof(size);
    let randomness = field_element(rng);
    let count = sectors_max.min(registered_proof.sector_count());
    let vanilla_proofs = sectors(registered_proof, size, count, randomness, rng)?;
    Ok(ProofRequest::WindowPost(WindowPost {
        registered_proof,
        miner_id: MINER_ID,
        randomness,
        partition_index: 0,
        vanilla_proofs,
    }))
}

/// The vanilla proofs of so many sectors, in ascending order.
fn sectors(
    registered: RegisteredPoStProof,
    size: SectorSize,
    count: usize,
    randomness: [u8; 32],
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Vec<u8>>, Error> {
    let first = u64::from(rng.next_u32());
    let ids: Vec<SectorId> = (first..).take(count).map(SectorId::from).collect();
    let challenges =
        generate_fallback_sector_challenges(registered, &randomness, &ids, prover_id(MINER_ID))
            .map_err(|problem| failed("PoSt challenges", &problem))?;
    challenges
        .into_iter()
        .map(|(id, challenges)| with_tree!(size, sector(id, &challenges, size, rng)))
        .collect()
}

/// A sector's vanilla proof: its replica holds values of its own where
/// `challenges` ask. The columns' root is any value, since a PoSt opens none.
fn sector<Tree: ReplicaTree>(
    id: SectorId,
    challenges: &[u64],
    size: SectorSize,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<u8>, Error> {
    let challenges: Vec<usize> = challenges
        .iter()
        .map(|challenge| {
            usize::try_from(*challenge).map_err(|problem| failed("PoSt challenge", &problem))
        })
        .collect::<Result<_, _>>()?;
    let leaves = challenges.iter().map(|leaf| (*leaf, node(rng))).collect();
    let replica = SparseTree::<DefaultTreeHasher>::new(
        Branching::replica(size).arities(),
        vec![pattern(rng)],
        leaves,
    );
    let comm_c: DefaultTreeDomain = node(rng);
    let comm_r_last = replica.root();
    let proof = FallbackPoStSectorProof::<Tree> {
        sector_id: id,
        comm_r: <DefaultTreeHasher as Hasher>::Function::hash2(&comm_c, &comm_r_last),
        vanilla_proof: Proof {
            sectors: vec![SectorProof {
                inclusion_proofs: challenges.iter().map(|leaf| replica.proof(*leaf)).collect(),
                comm_c,
                comm_r_last,
            }],
        },
    };
    bincode::serialize(&proof).map_err(|problem| failed("PoSt vanilla proof", &problem))
}
