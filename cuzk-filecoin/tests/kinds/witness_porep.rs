//! The native writer of PoRep beside the circuit, on sectors sealed here.

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
        assert_eq!(violated, None, "seed {seed}, partition {partition}");
        let theirs = job.reference_witness(partition).unwrap();
        let ours = ours.to_plain();
        assert_eq!(ours.inputs(), theirs.inputs_slice(), "seed {seed}");
        assert!(
            ours.aux() == theirs.aux_slice(),
            "seed {seed}, partition {partition}"
        );
    }
}

fn check_seeds(sector_size: SectorSize, seeds: u64) {
    let kind = ProofKind::Porep;
    let id = CircuitId { kind, sector_size };
    let circuit = blank::compile(id).unwrap();
    for seed in 0..seeds {
        check(id, &circuit, seed);
    }
}

#[test]
fn sectors_of_2_kib() {
    check_seeds(SectorSize::KiB2, 20);
}

#[test]
fn sector_of_8_mib() {
    check_seeds(SectorSize::MiB8, 1);
}
