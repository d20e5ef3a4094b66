use blstrs::{G1Affine, G2Affine};
use cuzk_groth16::backend::footprint::{CpuWorkspace, circuit_bytes, partition_bytes};
use cuzk_groth16::params::{LIMIT_BYTES, Shapes, planned_multiples};

use super::*;
use crate::circuits;
use cuzk_filecoin::{CircuitId, SectorSize};

/// With its parameters, and with multiples made for as many threads or without, a
/// WinningPoSt of 32 GiB fits the reserve that a large machine has by itself.
#[test]
fn the_automatic_reserve_is_enough_for_a_winning_post() {
    let id = CircuitId {
        kind: ProofKind::WinningPost,
        sector_size: SectorSize::GiB32,
    };
    let circuit = circuits::compile(id).unwrap();
    let lengths = circuit.query_lengths();
    let points = lengths.ic + lengths.h + lengths.l + lengths.a + lengths.b;
    let params_bytes = points * size_of::<G1Affine>() + lengths.b * size_of::<G2Affine>();
    let isa = Isa::best();
    for threads in [1, 2, 4, 8, 12, 16, 24, 32, 48, 64] {
        let workspace = CpuWorkspace {
            isa,
            threads,
            b_g2_threads: threads,
        };
        let charged = |shapes: &Shapes, multiples_bytes: u64| {
            partition_bytes(&circuit.sizes(), &workspace, shapes)
                + circuit_bytes(&circuit.sizes())
                + params_bytes as u64
                + multiples_bytes
        };
        let mut bytes = vec![charged(&Shapes::default(), 0)];
        if let Some((shapes, rows_bytes)) = planned_multiples(&circuit, isa, threads, LIMIT_BYTES) {
            bytes.push(charged(&shapes, rows_bytes));
        }
        let most = bytes.iter().max().unwrap();
        assert!(
            *most <= RESERVE_AUTO_MAX_BYTES,
            "{threads} threads: {bytes:?}"
        );
    }
}
