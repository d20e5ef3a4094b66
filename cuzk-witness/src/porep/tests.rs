//! The writer beside the circuit, with values that prove nothing.

use super::*;
use crate::testing::{assert_stops, in_pools, path, scalars};
use bellperson::ConstraintSystem;
use bellperson::util_cs::witness_cs::WitnessCS;
use filecoin_hashers::Hasher;
use filecoin_hashers::PoseidonArity;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Hasher;
use storage_proofs_core::merkle::{LCTree, MerkleProof};
use storage_proofs_porep::stacked::{
    ColumnProof, EncodingProof, LabelingProof, Proof, ReplicaColumnProof, StackedCircuit,
};
use typenum::{U0, U2, U4, U8};

fn shape<Sub: PoseidonArity, Top: PoseidonArity>(base_levels: usize) -> PorepShape {
    let replica = TreeShape::new(8, base_levels, Sub::to_usize(), Top::to_usize()).unwrap();
    PorepShape {
        data: TreeShape::new(2, replica.index_bits() as usize, 0, 0).unwrap(),
        replica,
        layers: 2,
        challenges: 2,
    }
}

fn statement(seed: u64) -> Statement {
    let [replica_id, comm_d, comm_r, comm_r_last, comm_c] = scalars(5, seed).try_into().unwrap();
    Statement {
        replica_id,
        comm_d,
        comm_r,
        comm_r_last,
        comm_c,
    }
}

fn challenge(shape: PorepShape, seed: u64) -> Challenge {
    let column = |k: u64| Column {
        labels: scalars(shape.layers, seed + k),
        path: path(shape.replica, seed + 20 + k),
    };
    Challenge {
        node: seed << 40 | 0x1_0203,
        data: path(shape.data, seed + 40),
        replica: path(shape.replica, seed + 41),
        column: path(shape.replica, seed + 42),
        parents: (0..14).map(column).collect(),
    }
}

fn challenges(shape: PorepShape, seed: u64) -> Vec<Challenge> {
    let seeds = (0..shape.challenges).map(|k| seed + 100 * k as u64);
    seeds.map(|seed| challenge(shape, seed)).collect()
}

/// A path as the vanilla proof has it.
fn proof<H, B, S, T>(shape: TreeShape, path: &MerklePath, root: Scalar) -> MerkleProof<H, B, S, T>
where
    H: Hasher,
    B: PoseidonArity + 'static,
    S: PoseidonArity + 'static,
    T: PoseidonArity + 'static,
{
    let domain = |value: Scalar| H::Domain::from(value);
    let levels = path.levels(shape).map(|(_, place, siblings)| {
        let siblings = siblings.iter().copied().map(domain).collect();
        (siblings, place)
    });
    MerkleProof::from_parts(domain(path.leaf), domain(root), levels.collect())
}

fn vanilla<S, T>(
    shape: PorepShape,
    statement: &Statement,
    challenge: &Challenge,
) -> Proof<LCTree<PoseidonHasher, U8, S, T>, Sha256Hasher>
where
    S: PoseidonArity + 'static,
    T: PoseidonArity + 'static,
{
    let replica =
        |path: &MerklePath, root| proof::<PoseidonHasher, U8, S, T>(shape.replica, path, root);
    let column = |labels: &[Scalar], path: &MerklePath| {
        let labels = labels.iter().copied().map(PoseidonDomain::from).collect();
        ColumnProof::new(0, labels, replica(path, statement.comm_c))
    };
    let parent = |parent: &Column| column(&parent.labels, &parent.path);
    let node = challenge.node;
    Proof {
        comm_d_proofs: proof(shape.data, &challenge.data, statement.comm_d),
        comm_r_last_proof: replica(&challenge.replica, statement.comm_r_last),
        replica_column_proofs: ReplicaColumnProof {
            c_x: column(&scalars(shape.layers, 3), &challenge.column),
            drg_parents: challenge.parents[..6].iter().map(parent).collect(),
            exp_parents: challenge.parents[6..].iter().map(parent).collect(),
        },
        labeling_proofs: vec![LabelingProof::new(1, node, Vec::new())],
        encoding_proof: EncodingProof::new(1, node, Vec::new()),
    }
}

/// Returns the witness that bellperson computes for the circuit with these values.
fn reference<S: PoseidonArity + 'static, T: PoseidonArity + 'static>(
    shape: PorepShape,
    statement: &Statement,
    challenges: &[Challenge],
) -> WitnessCS<Scalar> {
    let mut cs = WitnessCS::new();
    let proofs = challenges
        .iter()
        .map(|challenge| vanilla::<S, T>(shape, statement, challenge).into());
    StackedCircuit::<LCTree<PoseidonHasher, U8, S, T>, Sha256Hasher>::synthesize(
        &mut cs,
        Some(statement.replica_id.into()),
        Some(statement.comm_d.into()),
        Some(statement.comm_r.into()),
        Some(statement.comm_r_last.into()),
        Some(statement.comm_c.into()),
        proofs.collect(),
    )
    .unwrap();
    cs
}

fn check<S: PoseidonArity + 'static, T: PoseidonArity + 'static>(shape: PorepShape, seed: u64) {
    let statement = statement(seed);
    let challenges = challenges(shape, seed);
    let theirs = reference::<S, T>(shape, &statement, &challenges);
    in_pools(|| {
        for isa in Isa::all() {
            let ours = write(isa.into(), shape, &statement, &challenges).unwrap();
            assert_eq!(ours.inputs(), theirs.inputs_slice());
            let ours = ours.to_plain();
            assert_eq!(ours.aux().len(), theirs.aux_slice().len());
            let pairs = ours.aux().iter().zip(theirs.aux_slice());
            assert_eq!(pairs.enumerate().find(|(_, (a, b))| a != b), None, "{isa}");
        }
    });
}

#[test]
fn sector_of_2_kib() {
    let shape = shape::<U0, U0>(2);
    for seed in 0..3 {
        check::<U0, U0>(shape, seed);
    }
    let (statement, challenges) = (statement(5), challenges(shape, 5));
    let ours = write(Isa::best().into(), shape, &statement, &challenges).unwrap();
    // The counts of the real circuit.
    assert_eq!(ours.inputs().len(), 40);
    assert_eq!(cuzk_pce::Columns::num_aux(&ours), 2_685_673);
    assert!(ours.resident_bytes() < 4_500_000);
}

#[test]
fn trees_of_trees() {
    let one = |mut shape: PorepShape| {
        shape.challenges = 1;
        shape
    };
    check::<U8, U0>(one(shape::<U8, U0>(1)), 6);
    check::<U8, U2>(one(shape::<U8, U2>(1)), 7);
    check::<U4, U2>(one(shape::<U4, U2>(2)), 8);
}

/// A challenge of a 32 GiB sector is an eighteenth of a partition.
#[test]
fn challenge_of_a_sector_of_32_gib() {
    let shape = PorepShape {
        layers: 11,
        challenges: 1,
        ..shape::<U8, U0>(9)
    };
    check::<U8, U0>(shape, 9);
}

#[test]
fn it_stops_where_it_is_told_to() {
    let shape = shape::<U0, U0>(2);
    let (statement, challenges) = (statement(7), challenges(shape, 7));
    assert_stops(12, |context| write(context, shape, &statement, &challenges));
}

#[test]
fn other_shapes_are_refused() {
    let shape = shape::<U8, U0>(1);
    let statement = statement(4);
    let refusal = |change: fn(&mut PorepShape, &mut Vec<Challenge>)| {
        let (mut shape, mut challenges) = (shape, challenges(shape, 4));
        change(&mut shape, &mut challenges);
        let refusal = write(Isa::SCALAR.into(), shape, &statement, &challenges);
        refusal.unwrap_err().to_string()
    };
    for (expected, change) in [
        (
            "challenges: expected 2, got 1",
            (|_, challenges| challenges.truncate(1)) as fn(&mut PorepShape, &mut Vec<Challenge>),
        ),
        ("layers of a column: expected 2 or 11, got 3", |shape, _| {
            shape.layers = 3;
        }),
        (
            "challenge 1, path to comm_d, levels of a Merkle path: expected 6, got 5",
            |_, challenges| challenges[1].data.siblings.truncate(5),
        ),
        (
            "challenge 0, path to comm_r_last, a leaf's index: expected below 2^6, got 64",
            |_, challenges| challenges[0].replica.index = 64,
        ),
        (
            "challenge 0, path to comm_c, siblings on level 1 of a Merkle path: expected 7, got 6",
            |_, challenges| challenges[0].column.siblings[1].truncate(6),
        ),
        (
            "challenge 1, parents: expected 14, got 13",
            |_, challenges| challenges[1].parents.truncate(13),
        ),
        (
            "challenge 1, parent 13, labels: expected 2, got 1",
            |_, challenges| challenges[1].parents[13].labels.truncate(1),
        ),
        (
            "challenge 0, parent 5, levels of a Merkle path: expected 2, got 0",
            |_, challenges| challenges[0].parents[5].path.siblings.clear(),
        ),
    ] {
        assert_eq!(refusal(change), expected);
    }
}
