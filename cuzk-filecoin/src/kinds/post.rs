//! Proof of spacetime: sectors are still stored. This module has the common part of both
//! kinds.
//!
//! Circuit and challenges are those of `storage_proofs_post::fallback`. A
//! proof covers one partition: sectors, each with the same number of
//! challenges, the last one repeated until the circuit is full.

mod body;

use std::{iter, slice};

use anyhow::Context as _;
use blstrs::Scalar;
use cuzk_pce::{ErasedCircuit, PackedWitness};
use cuzk_witness::Context as WitnessContext;
use cuzk_witness::post::{self as writer, PostShape};
use filecoin_proofs::constants::DefaultTreeDomain;
use filecoin_proofs_api::SectorId;
use rayon::prelude::*;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::gadgets::por::PoRCompound;
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_core::por;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_post::fallback::{
    self, FallbackPoSt, FallbackPoStCircuit, FallbackPoStCompound, PublicSector, SectorProof,
    generate_leaf_challenge, get_challenge_index,
};

use self::body::{BodyOut, SectorOut};
use super::fault;
use super::native::{merkle_path, tree_shape};
use super::partition::{self, Registered};
use super::shape::{self, PostSector};
use super::statement::{Kind, Native, ReferenceStatement};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::library_settings::library_settings;
use crate::proof_kind::ProofKind;
use crate::request::prover_id;
use crate::sector_size::SectorSize;
use crate::tree::{Branching, ReplicaTree};

pub(super) use self::body::Body;

/// One partition's statement and vanilla proof.
struct Post<Tree: ReplicaTree> {
    id: CircuitId,
    proof: Registered,
    params: fallback::PublicParams,
    inputs: fallback::PublicInputs<DefaultTreeDomain>,
    miner_id: u64,
    partition: usize,
    vanilla: fallback::Proof<Tree::Proof>,
}

/// A partition as its kind knows it before the sectors.
pub(super) struct Partition {
    pub(super) id: CircuitId,
    pub(super) proof: Registered,
    pub(super) params: fallback::PublicParams,
    pub(super) miner_id: u64,
    pub(super) randomness: [u8; 32],
    /// The partition's number within its deadline.
    pub(super) index: usize,
}

/// A sector as the circuit sees it.
pub(super) struct Sector<Tree: ReplicaTree> {
    pub(super) public: PublicSector<DefaultTreeDomain>,
    pub(super) vanilla: SectorProof<Tree::Proof>,
}

/// Decodes sectors, each with `challenges` challenges.
pub(super) fn decode_sectors<Tree: ReplicaTree>(
    vanilla_proofs: &[Vec<u8>],
    challenges: usize,
    size: SectorSize,
) -> Result<Vec<Sector<Tree>>, Error> {
    let replica = Branching::replica(size);
    vanilla_proofs
        .par_iter()
        .enumerate()
        .map(|(index, bytes)| {
            decode_sector(bytes, challenges, replica).map_err(|mismatch| {
                Error::request(
                    format!("vanilla_proofs[{index}]"),
                    mismatch,
                    "send the bytes that generate_single_vanilla_proof returned for this \
                     registered proof",
                )
            })
        })
        .collect()
}

fn decode_sector<Tree: ReplicaTree>(
    bytes: &[u8],
    challenges: usize,
    replica: Branching,
) -> Result<Sector<Tree>, shape::Mismatch> {
    check_sector(shape::from_bincode(bytes)?, challenges, replica)
}

fn check_sector<Tree: ReplicaTree>(
    sector: PostSector,
    challenges: usize,
    replica: Branching,
) -> Result<Sector<Tree>, shape::Mismatch> {
    let (public, vanilla) = sector.check::<Tree>(challenges, replica)?;
    // The library compares comm_r with the paths' root only, the circuit with
    // this field.
    if vanilla
        .inclusion_proofs
        .iter()
        .any(|proof| proof.root() != vanilla.comm_r_last)
    {
        return Err("comm_r_last is not the root of its Merkle paths".into());
    }
    Ok(Sector { public, vanilla })
}

/// The circuit spreads its sectors over as many threads as this setting says,
/// and divides by it.
fn check_settings() -> Result<(), Error> {
    if library_settings()?.window_post_synthesis_num_cpus == 0 {
        return Err(Error::request(
            "FIL_PROOFS_WINDOW_POST_SYNTHESIS_NUM_CPUS",
            "is 0",
            "set it to at least 1, or unset it",
        ));
    }
    Ok(())
}

/// Returns the statement, if the vanilla proofs verify. `sectors` are at least one and at
/// most as many as the circuit has room for.
pub(super) fn verified<Tree: ReplicaTree>(
    partition: Partition,
    sectors: Vec<Sector<Tree>>,
) -> Result<Box<dyn ReferenceStatement>, Error> {
    check_settings()?;
    let (public, mut vanilla): (Vec<_>, Vec<_>) = sectors
        .into_iter()
        .map(|sector| (sector.public, sector.vanilla))
        .unzip();
    let Some(last) = vanilla.last().cloned() else {
        return Err(Error::request(
            "vanilla_proofs",
            "empty",
            "send at least one sector's",
        ));
    };
    vanilla.resize(partition.params.sector_count, last);
    let post = Post::<Tree> {
        inputs: fallback::PublicInputs {
            randomness: partition.randomness.into(),
            prover_id: prover_id(partition.miner_id).into(),
            sectors: public,
            k: Some(partition.index),
        },
        id: partition.id,
        proof: partition.proof,
        miner_id: partition.miner_id,
        params: partition.params,
        partition: partition.index,
        vanilla: fallback::Proof { sectors: vanilla },
    };
    let valid = FallbackPoSt::<Tree>::verify(&post.params, &post.inputs, &post.vanilla)
        .map_err(|problem| Error::synthesis("vanilla verification", &problem))?;
    if !valid {
        return Err(Error::request(
            "vanilla_proofs",
            format!(
                "do not verify for this randomness, these sectors and their comm_r: {}",
                post.fault().unwrap_or_else(|| fault::reason(Ok(())))
            ),
            "generate them again for the challenges of this randomness, or send them unaltered",
        ));
    }
    Ok(Box::new(post))
}

impl<Tree: ReplicaTree> Post<Tree> {
    /// The leaf that challenge `n` of sector `i` of this partition asks for.
    fn challenge(&self, i: usize, id: SectorId, n: usize) -> u64 {
        let params = &self.params;
        let index = get_challenge_index(
            params.api_version,
            self.partition * params.sector_count + i,
            params.challenge_count,
            n,
        );
        generate_leaf_challenge(params, self.inputs.randomness, id.into(), index)
    }

    /// Returns the sector of a WinningPoSt, whose entries have a path each, as one entry.
    fn merged(&self) -> Vec<SectorProof<Tree::Proof>> {
        let entries = &self.vanilla.sectors;
        let paths = entries.iter().flat_map(|entry| &entry.inclusion_proofs);
        let first = entries.first().map(|first| SectorProof {
            inclusion_proofs: paths.cloned().collect(),
            comm_c: first.comm_c,
            comm_r_last: first.comm_r_last,
        });
        first.into_iter().collect()
    }

    /// The first sector that is at fault, and what is wrong with it.
    fn fault(&self) -> Option<fault::Fault> {
        let sectors = self.inputs.sectors.iter().zip(&self.vanilla.sectors);
        sectors.enumerate().find_map(|(i, (public, vanilla))| {
            let leaves = (0..self.params.challenge_count).map(|n| self.challenge(i, public.id, n));
            // A WinningPoSt's challenges are so many entries of one sector.
            let first = if self.id.kind == ProofKind::WinningPost {
                i
            } else {
                0
            };
            let fault = fault::post(&public.comm_r, vanilla, first, leaves).err()?;
            Some(format!("sector {}: {fault}", public.id))
        })
    }
}

impl<Tree: ReplicaTree> Kind for Post<Tree> {
    type Circuit = FallbackPoStCircuit<Tree>;

    fn id(&self) -> CircuitId {
        self.id
    }

    fn partitions(&self) -> usize {
        1
    }

    fn instance(&self, _: usize) -> anyhow::Result<FallbackPoStCircuit<Tree>> {
        // The inputs hold this partition's sectors only, which are therefore
        // the first partition to the library.
        FallbackPoStCompound::<Tree>::circuit(
            &self.inputs,
            fallback::ComponentPrivateInputs {},
            &self.vanilla,
            &self.params,
            Some(0),
        )
    }

    /// Per sector comm_r and a leaf for each challenge. The library computes
    /// the same, but from the sectors of all partitions up to this one.
    fn public_inputs(&self, _: usize) -> anyhow::Result<Vec<Scalar>> {
        let tree = por::PublicParams {
            leaves: self.id.sector_size.nodes(),
            private: true,
        };
        let mut sectors = Vec::with_capacity(self.params.sector_count);
        for (i, sector) in self.inputs.sectors.iter().enumerate() {
            let mut inputs: Vec<Scalar> = vec![sector.comm_r.into()];
            for n in 0..self.params.challenge_count {
                let challenge = usize::try_from(self.challenge(i, sector.id, n))?;
                let leaf = por::PublicInputs {
                    challenge,
                    commitment: None,
                };
                inputs.extend(PoRCompound::<Tree>::generate_public_inputs(
                    &leaf, &tree, None,
                )?);
            }
            sectors.push(inputs);
        }
        if let Some(last) = sectors.last().cloned() {
            sectors.resize(self.params.sector_count, last);
        }
        Ok(sectors.concat())
    }

    fn partition_request(&self, _: usize) -> anyhow::Result<Vec<u8>> {
        let merged;
        let entries = if self.id.kind == ProofKind::WinningPost {
            merged = self.merged();
            &merged
        } else {
            &self.vanilla.sectors
        };
        // The entries that fill the circuit are not sent.
        let sectors = self.inputs.sectors.iter().zip(entries);
        let sectors: Vec<_> = sectors
            .map(|(public, entry)| SectorOut {
                sector_id: public.id.into(),
                comm_r: public.comm_r.into(),
                entries: slice::from_ref(entry),
            })
            .collect();
        let body = BodyOut {
            miner_id: self.miner_id,
            randomness: self.inputs.randomness.into(),
            index: u32::try_from(self.partition)?,
            sectors: &sectors,
        };
        partition::write(self.proof, 0, &body)
    }

    fn native(&self) -> &dyn Native {
        self
    }
}

impl<Tree: ReplicaTree> Native for Post<Tree> {
    fn write(
        &self,
        _: usize,
        context: WitnessContext<'_>,
    ) -> anyhow::Result<PackedWitness<Scalar>> {
        let shape = post_shape(&self.params, self.id.sector_size)?;
        // The last sector is repeated until the circuit is full.
        let last = self.inputs.sectors.last().context("no sectors")?;
        let public = self.inputs.sectors.iter().chain(iter::repeat(last));
        let sectors = public.zip(&self.vanilla.sectors);
        let sectors = sectors
            .map(|(public, vanilla)| {
                let paths = vanilla.inclusion_proofs.iter().map(merkle_path);
                Ok(writer::Sector {
                    comm_r: public.comm_r.into(),
                    comm_c: vanilla.comm_c.into(),
                    comm_r_last: vanilla.comm_r_last.into(),
                    paths: paths.collect::<anyhow::Result<_>>()?,
                })
            })
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(writer::write(context, shape, &sectors)?)
    }
}

fn post_shape(params: &fallback::PublicParams, size: SectorSize) -> anyhow::Result<PostShape> {
    Ok(PostShape {
        tree: tree_shape(Branching::replica(size))?,
        sectors: params.sector_count,
        challenges: params.challenge_count,
    })
}

/// Returns how many variables of a witness are apart for each thread while it is written.
pub(super) fn variables_apart(
    params: &fallback::PublicParams,
    size: SectorSize,
) -> Result<usize, Error> {
    let shape = post_shape(params, size);
    let shape = shape.map_err(|problem| Error::synthesis("shape of a PoSt", &problem))?;
    Ok(shape.variables_apart())
}

/// Returns the circuit without values.
pub(super) fn blank<Tree: ReplicaTree>(
    params: &fallback::PublicParams,
) -> Result<ErasedCircuit<'static, Scalar>, Error> {
    check_settings()?;
    let circuit = FallbackPoStCompound::<Tree>::blank_circuit(params);
    Ok(ErasedCircuit::new(circuit))
}

#[cfg(test)]
mod tests {
    use filecoin_proofs::parameters::window_post_public_params;
    use filecoin_proofs_api::RegisteredPoStProof;

    use super::*;
    use crate::tree::BaseTree;

    fn sectors(count: u64) -> Vec<PublicSector<DefaultTreeDomain>> {
        (0..count)
            .map(|n| PublicSector {
                id: (100 + n).into(),
                comm_r: Scalar::from(1000 + n).into(),
            })
            .collect()
    }

    /// A partition's public inputs, computed from its own sectors, are those
    /// that the library computes from all sectors of the deadline.
    #[test]
    fn public_inputs_are_the_librarys() {
        for proof in [
            RegisteredPoStProof::StackedDrgWindow2KiBV1,
            RegisteredPoStProof::StackedDrgWindow2KiBV1_2,
        ] {
            let params = window_post_public_params::<BaseTree>(&proof.as_v1_config()).unwrap();
            let all = fallback::PublicInputs {
                randomness: Scalar::from(5).into(),
                prover_id: prover_id(1001).into(),
                sectors: sectors(5),
                k: None,
            };
            let chunks: Vec<_> = all.sectors.chunks(params.sector_count).collect();
            assert_eq!(chunks.len(), 3);
            for (partition, chunk) in chunks.into_iter().enumerate() {
                let post = Post::<BaseTree> {
                    proof: Registered::WindowPost(proof),
                    miner_id: 1001,
                    id: CircuitId {
                        kind: ProofKind::WindowPost,
                        sector_size: SectorSize::KiB2,
                    },
                    params: params.clone(),
                    inputs: fallback::PublicInputs {
                        sectors: chunk.to_vec(),
                        ..all.clone()
                    },
                    partition,
                    vanilla: fallback::Proof {
                        sectors: Vec::new(),
                    },
                };
                let expected = FallbackPoStCompound::<BaseTree>::generate_public_inputs(
                    &all,
                    &params,
                    Some(partition),
                )
                .unwrap();
                let ours = Kind::public_inputs(&post, 0).unwrap();
                assert_eq!(ours, expected, "{proof:?}");
            }
        }
    }
}
