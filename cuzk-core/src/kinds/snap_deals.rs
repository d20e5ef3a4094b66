//! SnapDeals: a sector's replica now encodes new data.
//!
//! Circuit and challenges are those of `storage_proofs_update` (the empty
//! sector update); each partition proves challenges of its own part of the
//! sector.

use anyhow::Context as _;
use rayon::prelude::*;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::parameter_cache::CacheableParameters;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_update::constants::h_default;
use storage_proofs_update::{
    EmptySectorUpdate, EmptySectorUpdateCircuit, EmptySectorUpdateCompound, PartitionProof,
    PublicInputs, PublicParams,
};

use super::job::{Statement, synthesis};
use super::shape::{self, UpdatePartition};
use super::tree::{Branching, ReplicaTree, with_tree};
use super::{CircuitId, CircuitVisitor, Job, ProofKind, SectorSize};
use crate::Error;
use crate::request::SnapDeals;

/// A sector update's statement and its vanilla proofs, one per partition.
struct Update<Tree: ReplicaTree> {
    size: SectorSize,
    params: PublicParams,
    inputs: PublicInputs,
    vanilla: Vec<PartitionProof<Tree>>,
}

/// The identifier under which the proofs libraries keep the parameters.
/// (`RegisteredUpdateProof::circuit_identifier` gives the seal proof's.)
pub(super) fn cache_identifier(size: SectorSize) -> String {
    with_tree!(size, cache_identifier_of(size))
}

fn cache_identifier_of<Tree: ReplicaTree>(size: SectorSize) -> String {
    <EmptySectorUpdateCompound<Tree> as CacheableParameters<
        EmptySectorUpdateCircuit<Tree>,
        PublicParams,
    >>::cache_identifier(&PublicParams::from_sector_size(size.bytes()))
}

/// Decodes and verifies a request's vanilla proofs.
pub(super) fn decode(request: &SnapDeals) -> Result<Box<dyn Job>, Error> {
    let size = SectorSize::registered(request.registered_proof.sector_size())?;
    with_tree!(size, decode_tree(request, size))
}

fn decode_tree<Tree: ReplicaTree>(
    request: &SnapDeals,
    size: SectorSize,
) -> Result<Box<dyn Job>, Error> {
    let params = PublicParams::from_sector_size(size.bytes());
    let vanilla: Vec<PartitionProof<Tree>> = request
        .vanilla_proofs
        .par_iter()
        .enumerate()
        .map(|(partition, bytes)| {
            decode_partition(bytes, &params, size).map_err(|mismatch| {
                Error::request(
                    format!("vanilla_proofs[{partition}]"),
                    mismatch,
                    "send the bytes that generate_partition_proofs returned for this registered \
                     proof",
                )
            })
        })
        .collect::<Result<_, _>>()?;
    let inputs = PublicInputs {
        k: 0,
        comm_r_old: request.comm_r_old.into(),
        comm_d_new: request.comm_d_new.into(),
        comm_r_new: request.comm_r_new.into(),
        h: h_default(params.sector_nodes),
    };
    verified(Update::<Tree> {
        size,
        params,
        inputs,
        vanilla,
    })
}

fn decode_partition<Tree: ReplicaTree>(
    bytes: &[u8],
    params: &PublicParams,
    size: SectorSize,
) -> Result<PartitionProof<Tree>, shape::Mismatch> {
    shape::from_bincode::<UpdatePartition>(bytes)?.check(
        params.apex_leaf_count,
        params.challenge_count,
        Branching::data(size),
        Branching::replica(size),
    )?;
    shape::from_bincode(bytes)
}

/// The job, if every partition's vanilla proof verifies.
fn verified<Tree: ReplicaTree>(update: Update<Tree>) -> Result<Box<dyn Job>, Error> {
    update
        .vanilla
        .par_iter()
        .enumerate()
        .try_for_each(|(k, vanilla)| {
            let inputs = PublicInputs {
                k,
                ..update.inputs.clone()
            };
            let valid = EmptySectorUpdate::<Tree>::verify(&update.params, &inputs, vanilla)
                .map_err(|problem| synthesis("vanilla verification", &problem))?;
            if valid {
                return Ok(());
            }
            Err(Error::request(
                format!("vanilla_proofs[{k}]"),
                "does not verify against comm_r_old, comm_r_new and comm_d_new",
                "run generate_partition_proofs again for this update, or send its output unaltered \
             and in order",
            ))
        })?;
    Ok(Box::new(update))
}

impl<Tree: ReplicaTree> Statement for Update<Tree> {
    type Circuit = EmptySectorUpdateCircuit<Tree>;

    fn id(&self) -> CircuitId {
        CircuitId {
            kind: ProofKind::SnapDeals,
            sector_size: self.size,
        }
    }

    fn partitions(&self) -> usize {
        self.vanilla.len()
    }

    fn instance(&self, partition: usize) -> anyhow::Result<EmptySectorUpdateCircuit<Tree>> {
        let vanilla = self.vanilla.get(partition).context("no such partition")?;
        EmptySectorUpdateCompound::<Tree>::circuit(
            &self.inputs,
            (),
            vanilla,
            &self.params,
            Some(partition),
        )
    }

    fn public_inputs(&self, partition: usize) -> anyhow::Result<Vec<blstrs::Scalar>> {
        EmptySectorUpdateCompound::<Tree>::generate_public_inputs(
            &self.inputs,
            &self.params,
            Some(partition),
        )
    }
}

/// The circuit without values.
pub(super) fn with_blank<V: CircuitVisitor>(
    size: SectorSize,
    visitor: V,
) -> Result<V::Output, Error> {
    fn visit<Tree: ReplicaTree, V: CircuitVisitor>(
        size: SectorSize,
        visitor: V,
    ) -> Result<V::Output, Error> {
        let params = PublicParams::from_sector_size(size.bytes());
        visitor.visit(EmptySectorUpdateCompound::<Tree>::blank_circuit(&params))
    }
    with_tree!(size, visit::<V>(size, visitor))
}
