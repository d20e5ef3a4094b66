//! Proof of replication: a sector was sealed as its commitments say.
//!
//! Not sealing: it starts from the output of the first commit phase. Circuit
//! and challenges are those of `storage_proofs_porep::stacked`.

mod fields;

use anyhow::Context as _;
use blstrs::Scalar;
use cuzk_pce::{ErasedCircuit, PackedWitness};
use cuzk_witness::Context as WitnessContext;
use cuzk_witness::porep::{self as writer, Challenge};
use filecoin_hashers::{Domain as _, HashFunction as _, Hasher};
use filecoin_proofs::constants::{
    DRG_DEGREE, DefaultPieceDomain, DefaultPieceHasher, DefaultTreeDomain, DefaultTreeHasher,
    EXP_DEGREE,
};
use filecoin_proofs::parameters::public_params;
use filecoin_proofs_api::RegisteredSealProof;
use rayon::prelude::*;
use serde::Deserialize;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::drgraph::Graph as _;
use storage_proofs_core::merkle::MerkleProofTrait as _;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{
    self, StackedCircuit, StackedCompound, StackedDrg, TOTAL_PARENTS, generate_replica_id,
};

use self::fields::{BodyIn, BodyOut, Fields};
use super::fault;
use super::native::tree_shape;
use super::partition::{self, PartitionHeader, Registered};
use super::shape::{PorepChallenge, PorepShape};
use super::statement::{Kind, Native, ReferenceStatement};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::registered::seal_proof;
use crate::request::{PorepC2, bad_phase1_output, prover_id};
use crate::sector_size::SectorSize;
use crate::tree::{Branching, ReplicaTree, with_tree};

type PublicInputs = stacked::PublicInputs<DefaultTreeDomain, DefaultPieceDomain>;
type VanillaProof<Tree> = Vec<stacked::Proof<Tree, DefaultPieceHasher>>;
type Circuit<Tree> = StackedCircuit<Tree, DefaultPieceHasher>;
type Compound<Tree> = StackedCompound<Tree, DefaultPieceHasher>;

/// A sealed sector's statement and its vanilla proofs, one per partition.
struct Porep<Tree: ReplicaTree> {
    proof: RegisteredSealProof,
    size: SectorSize,
    /// The number of the first partition that it has.
    first: usize,
    params: stacked::PublicParams<Tree>,
    inputs: PublicInputs,
    vanilla: Vec<VanillaProof<Tree>>,
    /// The vanilla proofs in the form of the writer.
    challenges: Vec<Vec<Challenge>>,
}

/// The output of the first commit phase, read once.
#[derive(Deserialize)]
struct Phase1 {
    registered_proof: RegisteredSealProof,
    vanilla_proofs: SizedProofs,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    replica_id: [u8; 32],
    seed: [u8; 32],
    ticket: [u8; 32],
}

impl Phase1 {
    fn fields(&self) -> Fields {
        Fields {
            comm_r: self.comm_r,
            comm_d: self.comm_d,
            replica_id: self.replica_id,
            seed: self.seed,
        }
    }
}

/// Vanilla proofs by partition, under the name of their sector size.
#[derive(Deserialize)]
enum SizedProofs {
    #[serde(rename = "StackedDrg2KiBV1")]
    KiB2(Vec<Vec<PorepChallenge>>),
    #[serde(rename = "StackedDrg8MiBV1")]
    MiB8(Vec<Vec<PorepChallenge>>),
    #[serde(rename = "StackedDrg512MiBV1")]
    MiB512(Vec<Vec<PorepChallenge>>),
    #[serde(rename = "StackedDrg32GiBV1")]
    GiB32(Vec<Vec<PorepChallenge>>),
    #[serde(rename = "StackedDrg64GiBV1")]
    GiB64(Vec<Vec<PorepChallenge>>),
}

impl SizedProofs {
    fn into_partitions(self) -> (SectorSize, Vec<Vec<PorepChallenge>>) {
        match self {
            Self::KiB2(partitions) => (SectorSize::KiB2, partitions),
            Self::MiB8(partitions) => (SectorSize::MiB8, partitions),
            Self::MiB512(partitions) => (SectorSize::MiB512, partitions),
            Self::GiB32(partitions) => (SectorSize::GiB32, partitions),
            Self::GiB64(partitions) => (SectorSize::GiB64, partitions),
        }
    }
}

/// Decodes and verifies a request's vanilla proofs.
pub(super) fn decode(request: &PorepC2) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = SectorSize::registered(request.registered_proof.sector_size())?;
    let output: Phase1 = serde_json::from_slice(&request.phase1_output)
        .map_err(|problem| bad_phase1_output(&problem.to_string()))?;
    check_statement(request, &output)?;
    with_tree!(size, decode_tree(request.registered_proof, size, output))
}

fn decode_tree<Tree: ReplicaTree>(
    proof: RegisteredSealProof,
    size: SectorSize,
    output: Phase1,
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let inputs = output.fields().inputs();
    let params = params::<Tree>(proof)?;
    let (vanilla_size, partitions) = output.vanilla_proofs.into_partitions();
    let partitions = if vanilla_size == size {
        expected_shape(&params, proof, size).check(partitions)
    } else {
        Err(format!(
            "expected proofs of a {size} sector, got {vanilla_size}"
        ))
    }
    .map_err(|mismatch| {
        Error::request(
            "vanilla_proof.vanilla_proofs",
            mismatch,
            "send what seal_commit_phase1 returned, unaltered",
        )
    })?;
    let (vanilla, challenges): (Vec<_>, Vec<_>) = partitions.into_iter().unzip();
    let valid =
        StackedDrg::<Tree, DefaultPieceHasher>::verify_all_partitions(&params, &inputs, &vanilla)
            .map_err(|problem| Error::synthesis("vanilla verification", &problem))?;
    let porep = Porep {
        proof,
        size,
        first: 0,
        params,
        inputs,
        vanilla,
        challenges,
    };
    porep.verified(valid)
}

/// Decodes and verifies one partition.
pub(super) fn decode_partition(
    proof: RegisteredSealProof,
    header: &PartitionHeader,
    body: &[u8],
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = header.circuit.sector_size;
    with_tree!(size, decode_partition_tree(proof, header, body))
}

fn decode_partition_tree<Tree: ReplicaTree>(
    proof: RegisteredSealProof,
    header: &PartitionHeader,
    body: &[u8],
) -> Result<Box<dyn ReferenceStatement>, Error> {
    let size = header.circuit.sector_size;
    let params = params::<Tree>(proof)?;
    let shape = expected_shape(&params, proof, size);
    let first = partition::number(header, shape.partitions)?;
    let BodyIn { fields, challenges } = partition::body(body)?;
    fields.check(proof)?;
    let (vanilla, challenges) = shape
        .check_partition::<Tree>(challenges)
        .map_err(partition::bad)?;
    let inputs = fields.inputs();
    let valid = partition_verifies(&params, &inputs, first, &vanilla);
    let porep = Porep {
        proof,
        size,
        first,
        params,
        inputs,
        vanilla: vec![vanilla],
        challenges: vec![challenges],
    };
    porep.verified(valid)
}

/// Checks the statement's own fields, and that they are of the sector that the request
/// names.
fn check_statement(request: &PorepC2, output: &Phase1) -> Result<(), Error> {
    if output.registered_proof != request.registered_proof {
        return Err(Error::request(
            "registered_proof",
            format!(
                "expected {:?}, that of the C1 output, got {:?}",
                output.registered_proof, request.registered_proof
            ),
            "send the registered proof that the sector was sealed with",
        ));
    }
    output.fields().check(output.registered_proof)?;
    let (Some(miner_id), Some(sector_number)) = (request.miner_id, request.sector_number) else {
        return Ok(());
    };
    let expected = generate_replica_id::<DefaultTreeHasher, _>(
        &prover_id(miner_id),
        sector_number,
        &output.ticket,
        output.comm_d,
        &request.registered_proof.as_v1_config().porep_id,
    );
    if expected.into_bytes() != output.replica_id {
        return Err(Error::request(
            "vanilla_proof.replica_id",
            format!(
                "is not that of sector {sector_number} of miner {miner_id} with this ticket and \
                 comm_d"
            ),
            "send the C1 output of the sector that miner_id and sector_number name",
        ));
    }
    Ok(())
}

fn expected_shape<Tree: ReplicaTree>(
    params: &stacked::PublicParams<Tree>,
    proof: RegisteredSealProof,
    size: SectorSize,
) -> PorepShape {
    PorepShape {
        partitions: usize::from(proof.partitions()),
        challenges: params.challenges.num_challenges_per_partition(),
        layers: params.num_layers,
        drg_parents: DRG_DEGREE,
        exp_parents: EXP_DEGREE,
        label_parents: TOTAL_PARENTS,
        data: Branching::data(size),
        replica: Branching::replica(size),
    }
}

fn params<Tree: ReplicaTree>(
    proof: RegisteredSealProof,
) -> Result<stacked::PublicParams<Tree>, Error> {
    public_params::<Tree>(&proof.as_v1_config())
        .map_err(|problem| Error::synthesis("PoRep parameters", &problem))
}

impl<Tree: ReplicaTree> Porep<Tree> {
    /// Returns the statement, if the library found its vanilla proofs valid, and so are their
    /// paths.
    fn verified(self, valid: bool) -> Result<Box<dyn ReferenceStatement>, Error> {
        if valid && self.vanilla.par_iter().flatten().all(paths_verify) {
            return Ok(Box::new(self));
        }
        let found = (self.first..)
            .zip(&self.vanilla)
            .try_for_each(|(k, proofs)| fault::porep(&self.params, &self.inputs, k, proofs));
        Err(Error::request(
            "vanilla_proof",
            format!(
                "does not verify against its own comm_r, comm_d, replica_id and seed: {}",
                fault::reason(found)
            ),
            "run seal_commit_phase1 again, or send its output unaltered",
        ))
    }
}

/// Returns true if the vanilla proof of partition `k` verifies. The library does the same, but
/// for all partitions from the first.
fn partition_verifies<Tree: ReplicaTree>(
    params: &stacked::PublicParams<Tree>,
    inputs: &PublicInputs,
    k: usize,
    proofs: &[stacked::Proof<Tree, DefaultPieceHasher>],
) -> bool {
    let (Some(tau), Some(first)) = (&inputs.tau, proofs.first()) else {
        return false;
    };
    let graph = &params.graph;
    let roots = (first.comm_c(), first.comm_r_last());
    let challenges = inputs.challenges(&params.challenges, graph.size(), Some(k));
    <DefaultTreeHasher as Hasher>::Function::hash2(&roots.0, &roots.1) == tau.comm_r
        && challenges.len() == proofs.len()
        && proofs.par_iter().zip(challenges).all(|(proof, challenge)| {
            (proof.comm_c(), proof.comm_r_last()) == roots
                && proof.verify(params, inputs, challenge, graph)
        })
}

/// Returns true if these paths lead from leaf to root, which the library's verifier takes on
/// trust.
fn paths_verify<Tree: ReplicaTree>(proof: &stacked::Proof<Tree, DefaultPieceHasher>) -> bool {
    proof.comm_d_proofs.verify() && proof.comm_r_last_proof.verify()
}

impl<Tree: ReplicaTree> Kind for Porep<Tree> {
    type Circuit = Circuit<Tree>;

    fn id(&self) -> CircuitId {
        CircuitId {
            kind: ProofKind::Porep,
            sector_size: self.size,
        }
    }

    fn partitions(&self) -> usize {
        self.vanilla.len()
    }

    fn instance(&self, partition: usize) -> anyhow::Result<Circuit<Tree>> {
        let vanilla = self.vanilla.get(partition).context("no such partition")?;
        let k = Some(self.first + partition);
        Compound::<Tree>::circuit(&self.inputs, (), vanilla, &self.params, k)
    }

    fn public_inputs(&self, partition: usize) -> anyhow::Result<Vec<Scalar>> {
        let k = Some(self.first + partition);
        Compound::<Tree>::generate_public_inputs(&self.inputs, &self.params, k)
    }

    fn partition_request(&self, partition: usize) -> anyhow::Result<Vec<u8>> {
        let challenges = self.vanilla.get(partition).context("no such partition")?;
        let fields = Fields::of(&self.inputs).context("no commitments")?;
        let body = BodyOut { fields, challenges };
        partition::write(Registered::Porep(self.proof), self.first + partition, &body)
    }

    fn native(&self) -> &dyn Native {
        self
    }
}

impl<Tree: ReplicaTree> Native for Porep<Tree> {
    fn write(
        &self,
        partition: usize,
        context: WitnessContext<'_>,
    ) -> anyhow::Result<PackedWitness<Scalar>> {
        let shape = writer::PorepShape {
            data: tree_shape(Branching::data(self.size))?,
            replica: tree_shape(Branching::replica(self.size))?,
            layers: self.params.num_layers,
            challenges: self.params.challenges.num_challenges_per_partition(),
        };
        let vanilla = self
            .vanilla
            .get(partition)
            .and_then(|proofs| proofs.first());
        let vanilla = vanilla.context("no such partition")?;
        let challenges = self.challenges.get(partition);
        let tau = self.inputs.tau.as_ref().context("no commitments")?;
        let statement = writer::Statement {
            replica_id: self.inputs.replica_id.into(),
            comm_d: tau.comm_d.into(),
            comm_r: tau.comm_r.into(),
            comm_r_last: vanilla.comm_r_last().into(),
            comm_c: vanilla.comm_c().into(),
        };
        let challenges = challenges.context("no such partition")?;
        Ok(writer::write(context, shape, &statement, challenges)?)
    }
}

/// Returns the circuit without values.
pub(super) fn blank<Tree: ReplicaTree>(
    size: SectorSize,
) -> Result<ErasedCircuit<'static, Scalar>, Error> {
    let params = params::<Tree>(seal_proof(size))?;
    Ok(ErasedCircuit::new(Compound::<Tree>::blank_circuit(&params)))
}
