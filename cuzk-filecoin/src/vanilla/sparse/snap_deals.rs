//! An update of a sparse sector.
//!
//! The challenges follow from the new replica's root, so nothing may depend on
//! them. It need not: a node's encoding depends on its data, its old value and
//! the highest bits of its number. Where data and old replica repeat, the new replica
//! therefore repeats too, in as many blocks as those bits have values.

use std::collections::BTreeMap;

use blstrs::Scalar;
use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::constants::{DefaultPieceHasher, DefaultTreeDomain, DefaultTreeHasher};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use storage_proofs_update::constants::{TreeDDomain, h_default};
use storage_proofs_update::{ChallengeProof, Challenges, PartitionProof, PublicParams, phi, rho};

use super::{node, pattern};
use crate::Error;
use crate::registered;
use crate::request::ProofRequest;
use crate::request::SnapDeals;
use crate::sector_size::SectorSize;
use crate::tree::{Branching, ReplicaTree, with_tree};
use crate::vanilla::failed;
use crate::vanilla::merkle::SparseTree;

/// A request for all partitions.
pub(super) fn make(size: SectorSize, rng: &mut ChaCha8Rng) -> Result<ProofRequest, Error> {
    let update = Update::new(size, rng);
    let vanilla_proofs = with_tree!(size, prove(&update))?;
    Ok(ProofRequest::SnapDeals(SnapDeals {
        registered_proof: registered::update_proof(size),
        comm_r_old: update.comm_r(&update.replica_old).into(),
        comm_r_new: update.comm_r(&update.replica_new).into(),
        comm_d_new: update.data.root().0,
        vanilla_proofs,
    }))
}

/// A sector before and after.
struct Update {
    params: PublicParams,
    /// Any value, since an update opens no column.
    comm_c: DefaultTreeDomain,
    replica_old: SparseTree<DefaultTreeHasher>,
    replica_new: SparseTree<DefaultTreeHasher>,
    data: SparseTree<DefaultPieceHasher>,
}

impl Update {
    fn new(size: SectorSize, rng: &mut ChaCha8Rng) -> Self {
        let comm_c = node(rng);
        let (old, data): (Vec<DefaultTreeDomain>, Vec<TreeDDomain>) = (pattern(rng), pattern(rng));
        let replica = |patterns| {
            SparseTree::<DefaultTreeHasher>::new(
                Branching::replica(size).arities(),
                patterns,
                BTreeMap::new(),
            )
        };
        let replica_old = replica(vec![old.clone()]);
        let data_tree = SparseTree::<DefaultPieceHasher>::new(
            Branching::data(size).arities(),
            vec![data.clone()],
            BTreeMap::new(),
        );
        let comm_r_old = comm_r(&comm_c, &replica_old);
        let phi = phi(&data_tree.root(), &comm_r_old);
        let new = (0..1u32 << h_default(size.nodes()))
            .map(|high| encode(&old, &data, rho(&phi, high)))
            .collect();
        Self {
            params: PublicParams::from_sector_size(size.bytes()),
            comm_c,
            replica_new: replica(new),
            replica_old,
            data: data_tree,
        }
    }

    fn comm_r(&self, replica: &SparseTree<DefaultTreeHasher>) -> DefaultTreeDomain {
        comm_r(&self.comm_c, replica)
    }
}

fn comm_r(
    comm_c: &DefaultTreeDomain,
    replica: &SparseTree<DefaultTreeHasher>,
) -> DefaultTreeDomain {
    <DefaultTreeHasher as Hasher>::Function::hash2(comm_c, &replica.root())
}

/// The new values of nodes whose numbers have the highest bits of `rho`.
fn encode(old: &[DefaultTreeDomain], data: &[TreeDDomain], rho: Scalar) -> Vec<DefaultTreeDomain> {
    old.iter()
        .zip(data)
        .map(|(old, data)| {
            let (old, data): (Scalar, Scalar) = ((*old).into(), (*data).into());
            (old + data * rho).into()
        })
        .collect()
}

/// The vanilla proofs of each partition.
fn prove<Tree: ReplicaTree>(update: &Update) -> Result<Vec<Vec<u8>>, Error> {
    let comm_r_new = update.comm_r(&update.replica_new);
    (0..update.params.partition_count)
        .into_par_iter()
        .map(|k| {
            bincode::serialize(&partition::<Tree>(update, comm_r_new, k))
                .map_err(|problem| failed("update vanilla proof", &problem))
        })
        .collect()
}

fn partition<Tree: ReplicaTree>(
    update: &Update,
    comm_r_new: DefaultTreeDomain,
    k: usize,
) -> PartitionProof<Tree> {
    let params = &update.params;
    let apex_level = params.challenge_bit_len - params.partition_bit_len - params.apex_leaf_bit_len;
    let first_apex = k * params.apex_leaf_count;
    PartitionProof {
        comm_c: update.comm_c,
        apex_leafs: (first_apex..first_apex + params.apex_leaf_count)
            .map(|index| update.data.node(apex_level, index))
            .collect(),
        challenge_proofs: Challenges::new(params.sector_nodes, comm_r_new, k)
            .map(|challenge| {
                // A u32 always fits.
                let leaf = challenge as usize;
                ChallengeProof {
                    proof_r_old: update.replica_old.proof(leaf),
                    proof_d_new: update.data.proof(leaf),
                    proof_r_new: update.replica_new.proof(leaf),
                }
            })
            .collect(),
    }
}
