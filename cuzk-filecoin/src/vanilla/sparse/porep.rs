//! Proof of replication over a sparse sector.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use blstrs::Scalar;
use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::constants::{
    DRG_DEGREE, DefaultPieceHasher, DefaultTreeDomain, DefaultTreeHasher,
};
use filecoin_proofs::parameters::public_params;
use filecoin_proofs_api::RegisteredSealProof;
use filecoin_proofs_api::seal::{SealCommitPhase1Output, VanillaSealProof};
use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use storage_proofs_core::drgraph::Graph as _;
use storage_proofs_core::merkle::{MerkleProof, MerkleTreeTrait};
use storage_proofs_porep::stacked::{
    Column, ColumnProof, EncodingProof, LabelingProof, Proof, PublicInputs, PublicParams,
    ReplicaColumnProof, generate_replica_id,
};

use super::labels::Labels;
use super::pattern;
use crate::Error;
use crate::registered;
use crate::request::ProofRequest;
use crate::request::{PorepC2, prover_id};
use crate::sector_size::SectorSize;
use crate::tree::{BaseTree, Branching, ReplicaTree, SubTree, TopTree};
use crate::vanilla::merkle::SparseTree;
use crate::vanilla::{MINER_ID, failed, field_element};

type VanillaProof<Tree> = Proof<Tree, DefaultPieceHasher>;
type TreeProof<Tree> = MerkleProof<
    DefaultTreeHasher,
    <Tree as MerkleTreeTrait>::Arity,
    <Tree as MerkleTreeTrait>::SubTreeArity,
    <Tree as MerkleTreeTrait>::TopTreeArity,
>;

/// A request for all partitions.
pub(super) fn make(size: SectorSize, rng: &mut ChaCha8Rng) -> Result<ProofRequest, Error> {
    match size {
        SectorSize::KiB2 => request::<BaseTree>(size, rng, VanillaSealProof::StackedDrg2KiBV1),
        SectorSize::MiB8 => request::<BaseTree>(size, rng, VanillaSealProof::StackedDrg8MiBV1),
        SectorSize::MiB512 => request::<BaseTree>(size, rng, VanillaSealProof::StackedDrg512MiBV1),
        SectorSize::GiB32 => request::<SubTree>(size, rng, VanillaSealProof::StackedDrg32GiBV1),
        SectorSize::GiB64 => request::<TopTree>(size, rng, VanillaSealProof::StackedDrg64GiBV1),
    }
}

fn request<Tree: ReplicaTree>(
    size: SectorSize,
    rng: &mut ChaCha8Rng,
    named: fn(Vec<Vec<VanillaProof<Tree>>>) -> VanillaSealProof,
) -> Result<ProofRequest, Error> {
    let registered_proof = registered::seal_proof(size);
    let sector = Sector::<Tree>::new(registered_proof, size, rng)?;
    let output = SealCommitPhase1Output {
        registered_proof,
        vanilla_proofs: named(sector.prove()),
        comm_r: sector.comm_r().into(),
        comm_d: sector.data.root().0,
        replica_id: sector.replica_id,
        seed: sector.seed,
        ticket: sector.ticket,
    };
    let phase1_output =
        serde_json::to_vec(&output).map_err(|problem| failed("C1 output", &problem))?;
    Ok(ProofRequest::PorepC2(PorepC2 {
        registered_proof,
        miner_id: Some(MINER_ID),
        sector_number: Some(sector.number),
        phase1_output,
    }))
}

/// A sector as far as its challenges can see.
struct Sector<Tree: ReplicaTree> {
    number: u64,
    ticket: [u8; 32],
    seed: [u8; 32],
    replica_id: DefaultTreeDomain,
    /// Challenged nodes of each partition.
    challenges: Vec<Vec<u32>>,
    layers: u32,
    labels: Labels,
    data: SparseTree<DefaultPieceHasher>,
    columns: SparseTree<DefaultTreeHasher>,
    replica: SparseTree<DefaultTreeHasher>,
    tree: PhantomData<Tree>,
}

impl<Tree: ReplicaTree> Sector<Tree> {
    fn new(
        proof: RegisteredSealProof,
        size: SectorSize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, Error> {
        let config = proof.as_v1_config();
        let params: PublicParams<Tree> =
            public_params(&config).map_err(|problem| failed("PoRep parameters", &problem))?;
        let number = u64::from(rng.next_u32());
        let [ticket, seed] = [field_element(rng), field_element(rng)];
        let data = SparseTree::new(
            Branching::data(size).arities(),
            vec![pattern(rng)],
            BTreeMap::new(),
        );
        let replica_id = generate_replica_id::<DefaultTreeHasher, _>(
            &prover_id(MINER_ID),
            number,
            &ticket,
            data.root(),
            &config.porep_id,
        );
        let layers =
            u32::try_from(params.num_layers).map_err(|problem| failed("layers", &problem))?;
        let challenges = challenges(&params, proof, replica_id, seed)?;
        let touched = || challenges.iter().flatten().copied();
        let labels = Labels::new(&params.graph, replica_id, layers, touched(), rng)?;
        let tree = |leaves, rng: &mut ChaCha8Rng| {
            SparseTree::new(
                Branching::replica(size).arities(),
                vec![pattern(rng)],
                leaves,
            )
        };
        let columns = tree(column_hashes(&labels)?, rng);
        let encoded = touched()
            .map(|challenge| (index(challenge), encode(&labels, &data, challenge)))
            .collect();
        let replica = tree(encoded, rng);
        Ok(Self {
            number,
            ticket,
            seed,
            replica_id,
            layers,
            challenges,
            labels,
            data,
            columns,
            replica,
            tree: PhantomData,
        })
    }

    fn comm_r(&self) -> DefaultTreeDomain {
        <DefaultTreeHasher as Hasher>::Function::hash2(&self.columns.root(), &self.replica.root())
    }

    /// The vanilla proofs of each partition.
    fn prove(&self) -> Vec<Vec<VanillaProof<Tree>>> {
        self.challenges
            .par_iter()
            .map(|challenges| challenges.par_iter().map(|c| self.open(*c)).collect())
            .collect()
    }

    /// Everything that the circuit asks of one challenged node.
    fn open(&self, challenge: u32) -> VanillaProof<Tree> {
        let (drg_parents, exp_parents) = self.labels.parents(challenge).split_at(DRG_DEGREE);
        let columns = |nodes: &[u32]| nodes.iter().map(|node| self.column(*node)).collect();
        let parents = |layer| self.labels.parents_labels(layer, challenge);
        let labeling_proofs = (1..=self.layers)
            .map(|layer| LabelingProof::new(layer, challenge.into(), parents(layer)))
            .collect();
        let encoding_proof =
            EncodingProof::new(self.layers, challenge.into(), parents(self.layers));
        Proof {
            comm_d_proofs: self.data.proof(index(challenge)),
            comm_r_last_proof: self.replica.proof(index(challenge)),
            replica_column_proofs: ReplicaColumnProof {
                c_x: self.column(challenge),
                drg_parents: columns(drg_parents),
                exp_parents: columns(exp_parents),
            },
            labeling_proofs,
            encoding_proof,
        }
    }

    fn column(&self, node: u32) -> ColumnProof<TreeProof<Tree>> {
        let labels = self.labels.columns()[&node].clone();
        ColumnProof::new(node, labels, self.columns.proof(index(node)))
    }
}

/// A node as the index of a leaf.
fn index(node: u32) -> usize {
    // Never truncates: there is no engine for machines of 16 bits.
    node as usize
}

/// The challenged nodes of each partition, which follow from the replica's id
/// and the chain's randomness, and not from the replica.
fn challenges<Tree: ReplicaTree>(
    params: &PublicParams<Tree>,
    proof: RegisteredSealProof,
    replica_id: DefaultTreeDomain,
    seed: [u8; 32],
) -> Result<Vec<Vec<u32>>, Error> {
    let inputs = PublicInputs::<DefaultTreeDomain, <DefaultPieceHasher as Hasher>::Domain> {
        replica_id,
        seed: Some(seed),
        tau: None,
        k: None,
    };
    (0..usize::from(proof.partitions()))
        .map(|k| {
            inputs
                .challenges(&params.challenges, params.graph.size(), Some(k))
                .into_iter()
                .map(|challenge| {
                    u32::try_from(challenge).map_err(|problem| failed("challenge", &problem))
                })
                .collect()
        })
        .collect()
}

/// The leaves of tree C that challenges open.
fn column_hashes(labels: &Labels) -> Result<BTreeMap<usize, DefaultTreeDomain>, Error> {
    labels
        .columns()
        .par_iter()
        .map(|(node, labels)| {
            let column = Column::<DefaultTreeHasher>::new(*node, labels.clone())
                .map_err(|problem| failed("column", &problem))?;
            Ok((index(*node), column.hash().into()))
        })
        .collect()
}

/// The challenged node of the replica: the data under the last layer's label.
fn encode(
    labels: &Labels,
    data: &SparseTree<DefaultPieceHasher>,
    challenge: u32,
) -> DefaultTreeDomain {
    let key = labels.columns()[&challenge].last().copied();
    let key: Scalar = key.unwrap_or_default().into();
    let data: Scalar = data.node(0, index(challenge)).into();
    (key + data).into()
}
