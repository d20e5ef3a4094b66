//! SnapDeals: a sector's replica now encodes new data.
//!
//! Circuit and challenges are those of `storage_proofs_update` (the empty
//! sector update); each partition proves challenges of its own part of the
//! sector.

use anyhow::Context as _;
use blstrs::Scalar;
use cuzk_pce::{ErasedCircuit, PackedWitness};
use cuzk_witness::Context as WitnessContext;
use cuzk_witness::snap_deals::{self as writer, Challenge, UpdateShape};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::MerkleProofTrait;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_update::constants::{h_default, h_select, hs, partition_count};
use storage_proofs_update::{
    ChallengeProof, EmptySectorUpdate, EmptySectorUpdateCircuit, EmptySectorUpdateCompound,
    PartitionProof, PublicInputs, PublicParams,
};

use super::fault;
use super::native::{siblings, tree_shape};
use super::partition::{self, PartitionHeader, Registered};
use super::shape::{self, UpdatePartition};
use super::statement::{Kind, Native, ReferenceStatement};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::registered::update_proof;
use crate::request::{Commitment, SnapDeals, commitment};
use crate::sector_size::SectorSize;
use crate::tree::{Branching, ReplicaTree, with_tree};

/// A sector update's statement and its vanilla proofs, one per partition.
struct Update<Tree: ReplicaTree> {
    size: SectorSize,
    /// The number of the first partition that it has.
    first: usize,
    params: PublicParams,
    inputs: PublicInputs,
    vanilla: Vec<PartitionProof<Tree>>,
}

/// The body of a partition's request, with its vanilla proof in any form.
#[derive(Serialize, Deserialize)]
struct PartitionBody<P> {
    comm_r_old: Commitment,
    comm_r_new: Commitment,
    comm_d_new: Commitment,
    vanilla: P,
}

/// Decodes and verifies a request's vanilla proofs.
pub(super) fn decode(request: &SnapDeals) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = SectorSize::registered(request.registered_proof.sector_size())?;
    with_tree!(size, decode_tree(request, size))
}

fn decode_tree<Tree: ReplicaTree>(
    request: &SnapDeals,
    size: SectorSize,
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let params = PublicParams::from_sector_size(size.bytes());
    let vanilla: Vec<PartitionProof<Tree>> = request
        .vanilla_proofs
        .par_iter()
        .enumerate()
        .map(|(partition, bytes)| {
            decode_vanilla(bytes, &params, size).map_err(|mismatch| {
                Error::request(
                    format!("vanilla_proofs[{partition}]"),
                    mismatch,
                    "send the bytes that generate_partition_proofs returned for this registered \
                     proof",
                )
            })
        })
        .collect::<Result<_, _>>()?;
    let commitments = [request.comm_r_old, request.comm_r_new, request.comm_d_new];
    verified(Update::<Tree> {
        size,
        first: 0,
        inputs: inputs(&params, commitments),
        params,
        vanilla,
    })
}

fn inputs(params: &PublicParams, [old, new, data]: [Commitment; 3]) -> PublicInputs {
    PublicInputs {
        k: 0,
        comm_r_old: old.into(),
        comm_d_new: data.into(),
        comm_r_new: new.into(),
        h: h_default(params.sector_nodes),
    }
}

/// Decodes and verifies a partition's request.
pub(super) fn decode_partition(
    header: &PartitionHeader,
    body: &[u8],
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = header.circuit.sector_size;
    with_tree!(size, decode_partition_tree(header, body))
}

fn decode_partition_tree<Tree: ReplicaTree>(
    header: &PartitionHeader,
    body: &[u8],
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = header.circuit.sector_size;
    let params = PublicParams::from_sector_size(size.bytes());
    let first = partition::number(header, partition_count(size.nodes()))?;
    let body: PartitionBody<UpdatePartition> = partition::body(body)?;
    let commitments = [
        commitment("comm_r_old", &body.comm_r_old)?,
        commitment("comm_r_new", &body.comm_r_new)?,
        commitment("comm_d_new", &body.comm_d_new)?,
    ];
    let vanilla = check_partition(body.vanilla, &params, size).map_err(partition::bad)?;
    verified(Update::<Tree> {
        size,
        first,
        inputs: inputs(&params, commitments),
        params,
        vanilla: vec![vanilla],
    })
}

fn decode_vanilla<Tree: ReplicaTree>(
    bytes: &[u8],
    params: &PublicParams,
    size: SectorSize,
) -> Result<PartitionProof<Tree>, shape::Mismatch> {
    check_partition(shape::from_bincode(bytes)?, params, size)
}

fn check_partition<Tree: ReplicaTree>(
    partition: UpdatePartition,
    params: &PublicParams,
    size: SectorSize,
) -> Result<PartitionProof<Tree>, shape::Mismatch> {
    partition.check(params, Branching::data(size), Branching::replica(size))
}

/// Returns the statement, if every partition's vanilla proof verifies.
fn verified<Tree: ReplicaTree>(update: Update<Tree>) -> Result<Box<dyn ReferenceStatement>, Error> {
    update
        .vanilla
        .par_iter()
        .enumerate()
        .try_for_each(|(index, vanilla)| {
            let k = update.first + index;
            let inputs = PublicInputs {
                k,
                ..update.inputs.clone()
            };
            let valid = EmptySectorUpdate::<Tree>::verify(&update.params, &inputs, vanilla)
                .map_err(|problem| Error::synthesis("vanilla verification", &problem))?;
            if valid {
                return Ok(());
            }
            let fault = fault::snap_deals(&update.params, &inputs, vanilla);
            Err(Error::request(
                format!("vanilla_proofs[{k}]"),
                format!(
                    "does not verify against comm_r_old, comm_r_new and comm_d_new: {}",
                    fault::reason(fault)
                ),
                "run generate_partition_proofs again for this update, or send its output unaltered \
             and in order",
            ))
        })?;
    Ok(Box::new(update))
}

impl<Tree: ReplicaTree> Kind for Update<Tree> {
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
            Some(self.first + partition),
        )
    }

    fn public_inputs(&self, partition: usize) -> anyhow::Result<Vec<Scalar>> {
        EmptySectorUpdateCompound::<Tree>::generate_public_inputs(
            &self.inputs,
            &self.params,
            Some(self.first + partition),
        )
    }

    fn partition_request(&self, partition: usize) -> anyhow::Result<Vec<u8>> {
        let body = PartitionBody {
            comm_r_old: self.inputs.comm_r_old.into(),
            comm_r_new: self.inputs.comm_r_new.into(),
            comm_d_new: self.inputs.comm_d_new.into(),
            vanilla: self.vanilla.get(partition).context("no such partition")?,
        };
        let proof = Registered::SnapDeals(update_proof(self.size));
        partition::write(proof, self.first + partition, &body)
    }

    fn native(&self) -> &dyn Native {
        self
    }
}

impl<Tree: ReplicaTree> Native for Update<Tree> {
    fn write(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> anyhow::Result<PackedWitness<Scalar>> {
        let shape = self.shape()?;
        let vanilla = self.vanilla.get(partition).context("no such partition")?;
        let first = vanilla.challenge_proofs.first().context("no challenges")?;
        let k = u64::try_from(self.first + partition)?;
        let selected = h_select(self.params.sector_nodes, self.inputs.h);
        let update = writer::Update {
            k_and_h_select: k | selected << shape.partition_bits,
            comm_r_old: self.inputs.comm_r_old.into(),
            comm_d_new: self.inputs.comm_d_new.into(),
            comm_r_new: self.inputs.comm_r_new.into(),
            comm_c: vanilla.comm_c.into(),
            root_r_old: first.proof_r_old.root().into(),
            root_r_new: first.proof_r_new.root().into(),
            apex_leafs: vanilla
                .apex_leafs
                .iter()
                .map(|leaf| (*leaf).into())
                .collect(),
            challenges: vanilla.challenge_proofs.iter().map(challenge).collect(),
        };
        Ok(writer::write(context, &shape, &update)?)
    }
}

impl<Tree: ReplicaTree> Update<Tree> {
    fn shape(&self) -> anyhow::Result<UpdateShape> {
        let params = &self.params;
        let mut high_bits = [0; 6];
        for (bits, choice) in high_bits.iter_mut().zip(hs(params.sector_nodes)) {
            *bits = u32::try_from(choice)?;
        }
        Ok(UpdateShape {
            tree_r: tree_shape(Branching::replica(self.size))?,
            challenges: params.challenge_count,
            partition_bits: u32::try_from(params.partition_bit_len)?,
            apex_bits: u32::try_from(params.apex_leaf_bit_len)?,
            high_bits,
        })
    }
}

fn challenge<Tree: ReplicaTree>(proof: &ChallengeProof<Tree>) -> Challenge {
    Challenge {
        leaf_r_old: proof.proof_r_old.leaf().into(),
        path_r_old: siblings(&proof.proof_r_old),
        leaf_d_new: proof.proof_d_new.leaf().into(),
        path_d_new: siblings(&proof.proof_d_new),
        path_r_new: siblings(&proof.proof_r_new),
    }
}

/// Returns the circuit without values.
pub(super) fn blank<Tree: ReplicaTree>(size: SectorSize) -> ErasedCircuit<'static, Scalar> {
    let params = PublicParams::from_sector_size(size.bytes());
    ErasedCircuit::new(EmptySectorUpdateCompound::<Tree>::blank_circuit(&params))
}
