//! Full-size sectors without a sector. Over a replica of zeros every sibling is the root of
//! a tree of zeros. So vanilla proofs of any size can be written down. They reach the trees that the bundled sector does not have.

use cuzk_filecoin::ProofRequest;
use cuzk_filecoin::blank;
use cuzk_filecoin::request::{SnapDeals, WindowPost, WinningPost, prover_id};
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, Statement, decode};
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonFunction, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Function, Sha256Hasher};
use filecoin_hashers::{HashFunction, Hasher, PoseidonArity};
use filecoin_proofs::FallbackPoStSectorProof;
use filecoin_proofs::constants::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use filecoin_proofs_api::post::generate_fallback_sector_challenges;
use filecoin_proofs_api::{RegisteredPoStProof, SectorId};
use storage_proofs_core::merkle::{MerkleProof, MerkleTreeTrait};
use storage_proofs_post::fallback::{Proof, SectorProof};
use storage_proofs_update::constants::{apex_leaf_count, partition_count};
use storage_proofs_update::{ChallengeProof, Challenges, PartitionProof};

const MINER: u64 = 1001;
const RANDOMNESS: [u8; 32] = [9; 32];

/// The number of children at each level of a size's replica tree, leaves first.
fn arities(size: SectorSize) -> Vec<usize> {
    let (base, above): (usize, &[usize]) = match size {
        SectorSize::KiB2 => (2, &[]),
        SectorSize::MiB8 => (6, &[]),
        SectorSize::MiB512 => (8, &[]),
        SectorSize::GiB32 => (9, &[8]),
        SectorSize::GiB64 => (9, &[8, 2]),
    };
    [vec![8; base], above.to_vec()].concat()
}

fn data_arities(size: SectorSize) -> Vec<usize> {
    vec![2; (size.bytes() / 32).ilog2() as usize]
}

/// The root of zeros at each level, leaves first.
fn zero_roots<D: Copy + Default>(arities: &[usize], hash: impl Fn(&[D]) -> D) -> Vec<D> {
    let mut roots = vec![D::default()];
    for arity in arities {
        roots.push(hash(&vec![roots[roots.len() - 1]; *arity]));
    }
    roots
}

fn poseidon(children: &[PoseidonDomain]) -> PoseidonDomain {
    let bytes: Vec<u8> = children
        .iter()
        .flat_map(|child| child.as_ref() as &[u8])
        .copied()
        .collect();
    PoseidonFunction::hash(&bytes)
}

fn sha256(children: &[Sha256Domain]) -> Sha256Domain {
    Sha256Function::hash2(&children[0], &children[1])
}

/// The path from a leaf of a tree of zeros.
fn path<H, A, B, C>(arities: &[usize], roots: &[H::Domain], leaf: u64) -> MerkleProof<H, A, B, C>
where
    H: Hasher,
    A: PoseidonArity,
    B: PoseidonArity,
    C: PoseidonArity,
{
    let mut rest = leaf;
    let elements = arities.iter().zip(roots).map(|(arity, root)| {
        let index = rest % *arity as u64;
        rest /= *arity as u64;
        (vec![*root; arity - 1], usize::try_from(index).unwrap())
    });
    let elements = elements.collect();
    MerkleProof::from_parts(H::Domain::default(), *roots.last().unwrap(), elements)
}

/// Any commitment does for the columns, which a PoSt does not open.
fn comm_c() -> PoseidonDomain {
    blstrs::Scalar::from(3).into()
}

fn post_sector<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(
    size: SectorSize,
    id: SectorId,
    challenges: &[u64],
) -> Vec<u8> {
    let arities = arities(size);
    let roots = zero_roots(&arities, poseidon);
    let comm_r_last = *roots.last().unwrap();
    let sector = SectorProof {
        inclusion_proofs: challenges
            .iter()
            .map(|leaf| path(&arities, &roots, *leaf))
            .collect(),
        comm_c: comm_c(),
        comm_r_last,
    };
    let sector = FallbackPoStSectorProof::<Tree> {
        sector_id: id,
        comm_r: PoseidonFunction::hash2(&comm_c(), &comm_r_last),
        vanilla_proof: Proof {
            sectors: vec![sector],
        },
    };
    bincode::serialize(&sector).unwrap()
}

/// Vanilla proofs of the sectors of a deadline, in order.
fn post_bytes(registered: RegisteredPoStProof, size: SectorSize, sectors: &[u64]) -> Vec<Vec<u8>> {
    let ids: Vec<SectorId> = sectors.iter().copied().map(SectorId::from).collect();
    let challenges =
        generate_fallback_sector_challenges(registered, &RANDOMNESS, &ids, prover_id(MINER))
            .unwrap();
    let sector = |id: &SectorId| match size {
        SectorSize::GiB32 => post_sector::<SectorShapeSub8>(size, *id, &challenges[id]),
        SectorSize::GiB64 => post_sector::<SectorShapeTop2>(size, *id, &challenges[id]),
        _ => post_sector::<SectorShapeBase>(size, *id, &challenges[id]),
    };
    ids.iter().map(sector).collect()
}

fn winning_post(size: SectorSize) -> Box<dyn Statement> {
    use RegisteredPoStProof::*;
    let (number, registered) = match size {
        SectorSize::KiB2 => (0, StackedDrgWinning2KiBV1),
        SectorSize::MiB8 => (1, StackedDrgWinning8MiBV1),
        SectorSize::MiB512 => (2, StackedDrgWinning512MiBV1),
        SectorSize::GiB32 => (3, StackedDrgWinning32GiBV1),
        SectorSize::GiB64 => (4, StackedDrgWinning64GiBV1),
    };
    let vanilla = post_bytes(registered, size, &[7]);
    let request = WinningPost::new(number, size.bytes(), MINER, &RANDOMNESS, vanilla).unwrap();
    decode(&ProofRequest::WinningPost(request)).unwrap()
}

#[test]
fn winning_post_of_every_size() {
    for sector_size in SectorSize::ALL {
        let job = winning_post(sector_size);
        assert_eq!(
            job.circuit(),
            CircuitId {
                kind: ProofKind::WinningPost,
                sector_size
            }
        );
        let witness = job.witness(0).unwrap();
        assert_eq!(
            witness.inputs()[1..],
            job.public_inputs(0).unwrap(),
            "{sector_size}"
        );
    }
}

#[test]
fn winning_post_of_32gib_satisfies_its_circuit() {
    let job = winning_post(SectorSize::GiB32);
    let circuit = blank::compile(job.circuit()).unwrap();
    assert_eq!(
        (circuit.num_inputs(), circuit.num_aux(), circuit.rows()),
        (133, 375_210, 370_590)
    );
    assert_eq!(
        cuzk_pce::program::check(&circuit, &job.witness(0).unwrap()).unwrap(),
        None
    );
}

/// One sector of the many that the circuit has room for.
#[test]
fn window_post_of_32gib_is_padded() {
    let registered = RegisteredPoStProof::StackedDrgWindow32GiBV1_2;
    let vanilla = post_bytes(registered, SectorSize::GiB32, &[7]);
    for partition in [0, 3] {
        let request =
            WindowPost::new(13, 32 << 30, MINER, &RANDOMNESS, partition, vanilla.clone()).unwrap();
        let job = decode(&ProofRequest::WindowPost(request)).unwrap();
        assert_eq!(job.public_inputs(0).unwrap().len(), 2349 * 11);
    }
}

/// A later partition, whose challenges in the first version depend on where
/// its sectors are within the deadline.
#[test]
fn window_post_of_a_later_partition() {
    use RegisteredPoStProof::{StackedDrgWindow2KiBV1, StackedDrgWindow2KiBV1_2};
    for (number, registered) in [(5, StackedDrgWindow2KiBV1), (10, StackedDrgWindow2KiBV1_2)] {
        let all = post_bytes(registered, SectorSize::KiB2, &[3, 4, 7, 9, 12]);
        for (partition, vanilla) in all.chunks(2).enumerate() {
            let request = |partition: usize, vanilla: &[Vec<u8>]| {
                let index = u32::try_from(partition).unwrap();
                WindowPost::new(number, 2048, MINER, &RANDOMNESS, index, vanilla.to_vec())
                    .map(ProofRequest::WindowPost)
            };
            let job = decode(&request(partition, vanilla).unwrap()).unwrap();
            let witness = job.witness(0).unwrap();
            let circuit = blank::compile(job.circuit()).unwrap();
            assert_eq!(cuzk_pce::program::check(&circuit, &witness).unwrap(), None);
            assert_eq!(
                witness.inputs()[1..],
                job.public_inputs(0).unwrap(),
                "{registered:?}"
            );

            let elsewhere = decode(&request(partition + 1, vanilla).unwrap());
            assert_eq!(elsewhere.is_ok(), number == 10, "{registered:?}");
            let reversed: Vec<_> = vanilla.iter().rev().cloned().collect();
            let reversed = decode(&request(partition, &reversed).unwrap());
            assert_eq!(reversed.is_ok(), vanilla.len() == 1, "{registered:?}");
        }
    }
}

fn update_partition<Tree: MerkleTreeTrait<Hasher = PoseidonHasher>>(
    size: SectorSize,
    comm_r: PoseidonDomain,
    k: usize,
) -> Vec<u8> {
    let nodes = usize::try_from(size.bytes() / 32).unwrap();
    let (arities, data_arities) = (arities(size), data_arities(size));
    let roots = zero_roots(&arities, poseidon);
    let data_roots = zero_roots(&data_arities, sha256);
    let apex_leafs = apex_leaf_count(nodes);
    let height = (nodes / partition_count(nodes) / apex_leafs).ilog2() as usize;
    let challenge_proofs = Challenges::new(nodes, comm_r, k)
        .map(|leaf| ChallengeProof::<Tree> {
            proof_r_old: path(&arities, &roots, leaf.into()),
            proof_d_new: path::<Sha256Hasher, _, _, _>(&data_arities, &data_roots, leaf.into()),
            proof_r_new: path(&arities, &roots, leaf.into()),
        })
        .collect();
    let partition = PartitionProof::<Tree> {
        comm_c: comm_c(),
        apex_leafs: vec![data_roots[height]; apex_leafs],
        challenge_proofs,
    };
    bincode::serialize(&partition).unwrap()
}

/// Zeros over zeros encode to zeros, so old and new replica are the same.
fn snap_deals(size: SectorSize) -> Box<dyn Statement> {
    let nodes = usize::try_from(size.bytes() / 32).unwrap();
    let comm_r_last = *zero_roots(&arities(size), poseidon).last().unwrap();
    let comm_r = PoseidonFunction::hash2(&comm_c(), &comm_r_last);
    let comm_d = *zero_roots(&data_arities(size), sha256).last().unwrap();
    let vanilla = (0..partition_count(nodes))
        .map(|k| match size {
            SectorSize::GiB32 => update_partition::<SectorShapeSub8>(size, comm_r, k),
            SectorSize::GiB64 => update_partition::<SectorShapeTop2>(size, comm_r, k),
            _ => update_partition::<SectorShapeBase>(size, comm_r, k),
        })
        .collect();
    let number = SectorSize::ALL
        .iter()
        .position(|other| *other == size)
        .unwrap() as u64;
    let [comm_r, comm_d]: [&[u8]; 2] = [comm_r.as_ref(), comm_d.as_ref()];
    let request = SnapDeals::new(number, size.bytes(), comm_r, comm_r, comm_d, vanilla).unwrap();
    decode(&ProofRequest::SnapDeals(request)).unwrap()
}

#[test]
fn snap_deals_of_every_size() {
    for (sector_size, partitions) in SectorSize::ALL.into_iter().zip([1, 4, 16, 16, 16]) {
        let job = snap_deals(sector_size);
        assert_eq!(
            job.circuit(),
            CircuitId {
                kind: ProofKind::SnapDeals,
                sector_size
            }
        );
        assert_eq!(job.partitions(), partitions, "{sector_size}");
        // Partitions differ in the first input, which packs their number.
        let inputs: Vec<_> = (0..partitions)
            .map(|k| job.public_inputs(k).unwrap())
            .collect();
        assert!(
            inputs.iter().all(|inputs| inputs.len() == 4),
            "{sector_size}"
        );
        assert!(
            inputs.windows(2).all(|pair| pair[0][0] != pair[1][0]),
            "{sector_size}"
        );
    }
    let small = snap_deals(SectorSize::KiB2);
    let circuit = blank::compile(small.circuit()).unwrap();
    assert_eq!(
        cuzk_pce::program::check(&circuit, &small.witness(0).unwrap()).unwrap(),
        None
    );
}
