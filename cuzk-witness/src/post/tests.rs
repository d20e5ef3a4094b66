//! The writer beside the circuit, with values that prove nothing.

use super::*;
use crate::testing::{assert_stops, in_pools, options, path, scalars};
use filecoin_hashers::PoseidonArity;
use filecoin_hashers::poseidon::PoseidonHasher;
use storage_proofs_core::merkle::LCTree;
use storage_proofs_post::fallback;
use typenum::{U0, U2, U8};

fn sectors(shape: PostShape) -> Vec<Sector> {
    let sector = |seed: u64| {
        let values = scalars(3, seed);
        let paths = (0..shape.challenges).map(|k| path(shape.tree, seed + k as u64));
        Sector {
            comm_r: values[0],
            comm_c: values[1],
            comm_r_last: values[2],
            paths: paths.collect(),
        }
    };
    (0..shape.sectors).map(|k| sector(100 * k as u64)).collect()
}

fn shape(arities: (usize, usize), levels: usize, sectors: usize, challenges: usize) -> PostShape {
    PostShape {
        tree: TreeShape::new(8, levels, arities.0, arities.1).unwrap(),
        sectors,
        challenges,
    }
}

fn check<Sub: PoseidonArity + 'static, Top: PoseidonArity + 'static>(
    levels: usize,
    sector_count: usize,
    challenges: usize,
) {
    let shape = shape(
        (Sub::to_usize(), Top::to_usize()),
        levels,
        sector_count,
        challenges,
    );
    let sectors = sectors(shape);
    let theirs = sectors.iter().map(|sector| fallback::Sector {
        comm_r: Some(sector.comm_r),
        comm_c: Some(sector.comm_c),
        comm_r_last: Some(sector.comm_r_last),
        leafs: sector.paths.iter().map(|path| Some(path.leaf)).collect(),
        paths: sector
            .paths
            .iter()
            .map(|path| options(shape.tree, path).into())
            .collect(),
        id: None,
    });
    type Tree<Sub, Top> = LCTree<PoseidonHasher, U8, Sub, Top>;
    let circuit = fallback::FallbackPoStCircuit::<Tree<Sub, Top>> {
        prover_id: None,
        sectors: theirs.collect(),
    };
    let theirs = cuzk_pce::witness(circuit).unwrap();
    for isa in Isa::all() {
        in_pools(|| {
            let ours = write(isa.into(), shape, &sectors).unwrap().to_plain();
            assert!(ours == theirs, "{isa:?} {shape:?}");
        });
    }
}

/// 2 KiB, 32 GiB and 64 GiB; WinningPoSt has one challenge a sector.
#[test]
fn writes_what_the_circuit_allocates() {
    check::<U0, U0>(2, 66, 1);
    check::<U0, U0>(2, 2, 10);
    check::<U0, U0>(6, 1, 3);
    check::<U8, U0>(9, 9, 1);
    check::<U8, U2>(9, 5, 2);
    check::<U0, U0>(1, 7, 23);
    // More than are held at once.
    check::<U0, U0>(1, 90, 1);
}

#[test]
fn it_stops_where_it_is_told_to() {
    // Three groups, of five hashes' lanes each.
    let shape = shape((0, 0), 2, 3 * GROUP_PATHS, 1);
    let sectors = sectors(shape);
    assert_stops(3 * 6, |context| write(context, shape, &sectors));
}

#[test]
fn other_shapes_are_refused() {
    let shape = shape((8, 2), 2, 3, 2);
    let refusal = |change: fn(&mut Vec<Sector>)| {
        let mut sectors = sectors(shape);
        assert!(write(Isa::best().into(), shape, &sectors).is_ok());
        change(&mut sectors);
        write(Isa::best().into(), shape, &sectors)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(|sectors| sectors.truncate(2)),
        "sectors: expected 3, got 2"
    );
    assert_eq!(
        refusal(|sectors| sectors[1].paths.clear()),
        "sector 1, challenges: expected 2, got 0"
    );
    assert_eq!(
        refusal(|sectors| sectors[2].paths[1].index = 1 << 10),
        "sector 2, challenge 1, a leaf's index: expected below 2^10, got 1024"
    );
    assert_eq!(
        refusal(|sectors| sectors[0].paths[0].siblings[1].clear()),
        "sector 0, challenge 0, siblings on level 1 of a Merkle path: expected 7, got 0"
    );
}
