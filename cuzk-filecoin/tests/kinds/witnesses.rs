//! The native writers of all kinds beside the circuits, on sectors sealed here.

use bellperson::ConstraintSystem as _;
use blstrs::Scalar;
use cuzk_filecoin::blank;
use cuzk_filecoin::vanilla;
use cuzk_filecoin::{
    CircuitId, ProofKind, ReferenceStatement, SectorSize, Writer, decode_reference,
};
use cuzk_pce::{Program, program};

/// Every partition's witness: bit for bit bellperson's, and satisfying.
fn check(id: CircuitId, circuit: &Program<Scalar>, seed: u64) {
    let request = vanilla::make(id.kind, id.sector_size, seed).unwrap();
    let job = decode_reference(&request).unwrap();
    for partition in 0..job.partitions() {
        check_partition(&*job, circuit, seed, partition);
    }
}

fn check_partition(
    job: &dyn ReferenceStatement,
    circuit: &Program<Scalar>,
    seed: u64,
    partition: usize,
) {
    let kind = job.circuit().kind;
    assert_eq!(job.writer(), Writer::Native);
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

/// bellperson's proof of these takes more memory than a small machine has. Its witness does not,
/// and its rows are those of the compiled circuit: `compiled.rs` compares them.
#[test]
#[ignore = "it takes minutes, and 20 GiB of memory"]
fn a_partition_of_each_kind_of_32_gib() {
    for kind in [
        ProofKind::Porep,
        ProofKind::SnapDeals,
        ProofKind::WindowPost,
        ProofKind::WinningPost,
    ] {
        let sector_size = SectorSize::GiB32;
        let circuit = blank::compile(CircuitId { kind, sector_size }).unwrap();
        let request = vanilla::make_sparse(kind, sector_size, 1).unwrap();
        let job = decode_reference(&request).unwrap();
        check_partition(&*job, &circuit, 1, job.partitions() - 1);
        println!(
            "{kind} of 32 GiB: {} rows have bellperson's witness",
            circuit.rows()
        );
    }
}
