//! The native writers of all kinds beside the circuits, on sectors sealed here.

use bellperson::ConstraintSystem as _;
use blstrs::Scalar;
use cuzk_filecoin::blank;
use cuzk_filecoin::vanilla;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, Writer, decode_reference};
use cuzk_pce::{Program, program};

/// Every partition's witness: bit for bit bellperson's, and satisfying.
fn check(id: CircuitId, circuit: &Program<Scalar>, seed: u64) {
    let CircuitId { kind, sector_size } = id;
    let request = vanilla::make(kind, sector_size, seed).unwrap();
    let job = decode_reference(&request).unwrap();
    assert_eq!(job.writer(), Writer::Native);
    for partition in 0..job.partitions() {
        let ours = job.witness(partition).unwrap();
        assert_eq!(ours.inputs()[1..], job.public_inputs(partition).unwrap());
        let violated = program::check(circuit, &ours).unwrap();
        assert_eq!(violated, None, "{kind}, seed {seed}, partition {partition}");
        let theirs = job.reference_witness(partition).unwrap();
        let ours = ours.to_plain();
        // The inputs of a PoSt have more ONEs in bellperson's form.
        if kind == ProofKind::Porep {
            assert_eq!(ours.inputs(), theirs.inputs_slice(), "{kind}, seed {seed}");
        }
        assert!(
            ours.aux() == theirs.aux_slice(),
            "{kind}, seed {seed}, partition {partition}"
        );
    }
}

fn check_seeds(kind: ProofKind, sector_size: SectorSize, seeds: u64) {
    let id = CircuitId { kind, sector_size };
    let circuit = blank::compile(id).unwrap();
    for seed in 0..seeds {
        check(id, &circuit, seed);
    }
}

#[test]
fn porep() {
    check_seeds(ProofKind::Porep, SectorSize::KiB2, 20);
}

#[test]
fn porep_of_8_mib() {
    check_seeds(ProofKind::Porep, SectorSize::MiB8, 1);
}

#[test]
fn winning_post() {
    check_seeds(ProofKind::WinningPost, SectorSize::KiB2, 20);
}

#[test]
fn window_post() {
    check_seeds(ProofKind::WindowPost, SectorSize::KiB2, 20);
}

#[test]
fn snap_deals() {
    check_seeds(ProofKind::SnapDeals, SectorSize::KiB2, 20);
}

#[test]
fn winning_post_of_8_mib() {
    check_seeds(ProofKind::WinningPost, SectorSize::MiB8, 1);
}

#[test]
fn window_post_of_8_mib() {
    check_seeds(ProofKind::WindowPost, SectorSize::MiB8, 1);
}

/// Four partitions.
#[test]
fn snap_deals_of_8_mib() {
    check_seeds(ProofKind::SnapDeals, SectorSize::MiB8, 1);
}
