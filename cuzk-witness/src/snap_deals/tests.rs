//! The writer beside the circuit, with values that prove nothing.

use super::*;
use crate::por::TreeShape;
use crate::testing::{assert_stops, in_pools, scalars};
use filecoin_hashers::PoseidonArity;
use filecoin_hashers::poseidon::PoseidonHasher;
use std::marker::PhantomData;
use storage_proofs_core::merkle::LCTree;
use storage_proofs_update::circuit::{self, EmptySectorUpdateCircuit};
use storage_proofs_update::{PublicParams, constants};
use typenum::{U0, U2, U4, U8};

type Tree<Sub, Top> = LCTree<PoseidonHasher, U8, Sub, Top>;

fn shape(params: &PublicParams, sub: usize, top: usize) -> UpdateShape {
    let bits = |count: usize| count.trailing_zeros();
    let base_bits = bits(params.sector_nodes) - bits(sub.max(1)) - bits(top.max(1));
    UpdateShape {
        tree_r: TreeShape::new(8, base_bits as usize / 3, sub, top).unwrap(),
        challenges: params.challenge_count,
        partition_bits: bits(params.partition_count),
        apex_bits: bits(params.apex_leaf_count),
        high_bits: constants::hs(params.sector_nodes).map(|h| u32::try_from(h).unwrap()),
    }
}

fn siblings(arities: impl Iterator<Item = usize>, seed: u64) -> Vec<Vec<Scalar>> {
    let level = |(i, arity): (usize, usize)| scalars(arity - 1, seed + i as u64);
    arities.enumerate().map(level).collect()
}

fn update(shape: &UpdateShape, partition: u64, choice: u32) -> Update {
    let values = scalars(6, partition);
    let bits = shape.challenge_bits() as usize;
    let partition_path = siblings(vec![2; shape.partition_bits as usize].into_iter(), 3);
    let challenge = |k: u64| {
        let leaves = scalars(2, 1000 * k);
        let below = siblings(
            vec![2; bits - partition_path.len()].into_iter(),
            1000 * k + 2,
        );
        Challenge {
            leaf_r_old: leaves[0],
            path_r_old: siblings(shape.tree_r.arities(), 1000 * k + 100),
            leaf_d_new: leaves[1],
            path_d_new: [below, partition_path.clone()].concat(),
            path_r_new: siblings(shape.tree_r.arities(), 1000 * k + 200),
        }
    };
    Update {
        k_and_h_select: partition | 1 << (shape.partition_bits + choice),
        comm_r_old: values[0],
        comm_d_new: values[1],
        comm_r_new: values[2],
        comm_c: values[3],
        root_r_old: values[4],
        root_r_new: values[5],
        apex_leafs: scalars(1 << shape.apex_bits, 77),
        challenges: (0..shape.challenges as u64).map(challenge).collect(),
    }
}

fn some(levels: &[Vec<Scalar>]) -> Vec<Vec<Option<Scalar>>> {
    let some = |level: &Vec<Scalar>| level.iter().copied().map(Some).collect();
    levels.iter().map(some).collect()
}

/// The circuit insists on the right new leaf, and so checks our rho.
fn circuit<Sub: PoseidonArity + 'static, Top: PoseidonArity + 'static>(
    params: PublicParams,
    shape: &UpdateShape,
    update: &Update,
) -> EmptySectorUpdateCircuit<Tree<Sub, Top>> {
    let randomness = Randomness::new(Isa::SCALAR, shape, update);
    let challenges = update.challenges.iter().enumerate();
    let challenge_proofs = challenges.map(|(k, challenge)| circuit::ChallengeProof {
        leaf_r_old: Some(challenge.leaf_r_old),
        path_r_old: some(&challenge.path_r_old),
        leaf_d_new: Some(challenge.leaf_d_new),
        path_d_new: some(&challenge.path_d_new),
        leaf_r_new: Some(challenge.leaf_r_old + challenge.leaf_d_new * randomness.rho(k)),
        path_r_new: some(&challenge.path_r_new),
        _tree_r: PhantomData,
    });
    EmptySectorUpdateCircuit {
        pub_params: params,
        pub_inputs: circuit::PublicInputs {
            k_and_h_select: Some(Scalar::from(update.k_and_h_select)),
            comm_r_old: Some(update.comm_r_old),
            comm_d_new: Some(update.comm_d_new),
            comm_r_new: Some(update.comm_r_new),
        },
        priv_inputs: circuit::PrivateInputs {
            comm_c: Some(update.comm_c),
            root_r_old: Some(update.root_r_old),
            root_r_new: Some(update.root_r_new),
            apex_leafs: update.apex_leafs.iter().copied().map(Some).collect(),
            challenge_proofs: challenge_proofs.collect(),
        },
    }
}

fn check<Sub: PoseidonArity + 'static, Top: PoseidonArity + 'static>(
    sector_nodes: usize,
    partition: u64,
    choice: u32,
) {
    let params = PublicParams::from_sector_size(32 * sector_nodes as u64);
    let shape = shape(&params, Sub::to_usize(), Top::to_usize());
    let update = update(&shape, partition, choice);
    let theirs = cuzk_pce::packed_witness(circuit::<Sub, Top>(params, &shape, &update)).unwrap();
    for isa in Isa::all() {
        in_pools(|| {
            let ours = write(isa.into(), &shape, &update).unwrap();
            assert_eq!(ours.inputs(), theirs.inputs());
            assert!(ours == theirs, "{isa:?} {shape:?}");
        });
    }
}

#[test]
fn writes_what_the_circuit_allocates() {
    check::<U0, U0>(constants::SECTOR_SIZE_2_KIB, 0, 3);
    check::<U2, U0>(constants::SECTOR_SIZE_4_KIB, 0, 5);
    check::<U4, U0>(constants::SECTOR_SIZE_8_KIB, 0, 0);
}

/// More partitions, more apex leaves, and the shapes of the largest trees.
#[test]
fn writes_larger_shapes() {
    check::<U8, U2>(constants::SECTOR_SIZE_32_KIB, 1, 1);
    check::<U0, U0>(constants::SECTOR_SIZE_8_MIB, 2, 4);
}

#[test]
fn it_stops_where_it_is_told_to() {
    let params = PublicParams::from_sector_size(8 << 20);
    let shape = shape(&params, 0, 0);
    let update = update(&shape, 1, 2);
    // The tree over 128 apex leaves, and ten challenges in three groups.
    assert_stops(127 + 10 + 3, |context| write(context, &shape, &update));
}

#[test]
fn other_shapes_are_refused() {
    let params = PublicParams::from_sector_size(8 << 20);
    let shape = shape(&params, 0, 0);
    let refusal = |change: fn(&mut Update)| {
        let mut update = update(&shape, 3, 2);
        assert_eq!(inputs::check(&shape, &update), Ok(()));
        change(&mut update);
        write(Isa::best().into(), &shape, &update)
            .unwrap_err()
            .to_string()
    };
    for select in [0, 0b11, 1 << H_CHOICES] {
        let mut update = update(&shape, 3, 2);
        update.k_and_h_select = 3 | select << shape.partition_bits;
        assert!(write(Isa::best().into(), &shape, &update).is_err());
    }
    assert_eq!(
        refusal(|update| update.apex_leafs.truncate(5)),
        "apex leaves: expected 128, got 5"
    );
    assert_eq!(
        refusal(|update| update.challenges.truncate(9)),
        "challenges: expected 10, got 9"
    );
    assert_eq!(
        refusal(|update| update.challenges[4].path_r_new[5].truncate(6)),
        "challenge 4, path_r_new, siblings on level 5 of a Merkle path: expected 7, got 6"
    );
    assert_eq!(
        refusal(|update| update.challenges[1].path_r_old.truncate(5)),
        "challenge 1, path_r_old, levels of a Merkle path: expected 6, got 5"
    );
    assert_eq!(
        refusal(|update| update.challenges[0].path_d_new.clear()),
        "challenge 0, path_d_new, levels of a Merkle path: expected 18, got 0"
    );
    assert_eq!(
        refusal(|update| update.challenges[7].path_d_new[17][0] += Scalar::ONE),
        "challenge 7, path_d_new, its end: expected that of the partition's first challenge, \
         got another"
    );
    let good = update(&shape, 3, 2);
    let refuses = |change: fn(&mut UpdateShape)| {
        let mut shape = shape.clone();
        change(&mut shape);
        assert!(write(Isa::best().into(), &shape, &good).is_err());
    };
    refuses(|shape| shape.partition_bits = 12);
    refuses(|shape| shape.apex_bits = u32::MAX);
    refuses(|shape| shape.high_bits[5] = 19);
    refuses(|shape| shape.challenges = 0);
}
