//! The native writers of all kinds beside the circuits, on sectors sealed here.
//!
//! An ordinary run has the same [`SECTORS`] of 2 KiB each time. They differ in their data and
//! challenges only. `CUZK_TEST_DIFFERENTIAL` says another number, of other sectors; see
//! [`cuzk_testing::differential`].

use std::ops::Range;

use bellperson::ConstraintSystem as _;
use blstrs::Scalar;
use cuzk_filecoin::blank;
use cuzk_filecoin::vanilla;
use cuzk_filecoin::{
    CircuitId, Error, ProofKind, ProofRequest, ReferenceStatement, SectorSize, WitnessContext,
    Writer, decode, decode_reference,
};
use cuzk_kernels::Isa;
use cuzk_memory::Checkpoint;
use cuzk_pce::{Program, program};
use cuzk_testing::differential::{again, seeds};

/// The sectors of 2 KiB in an ordinary run.
const SECTORS: u64 = 5;

/// Every partition's witness: bit for bit bellperson's, and satisfying.
fn check(request: &ProofRequest, circuit: &Program<Scalar>, seed: u64) {
    let job = decode_reference(request).unwrap();
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

/// Checks all kinds over the sectors of these seeds. Each sector is sealed once.
fn check_sectors(sector_size: SectorSize, seeds: Range<u64>) {
    let circuit = |kind| blank::compile(CircuitId { kind, sector_size }).unwrap();
    let circuits = ProofKind::ALL.map(circuit);
    for seed in seeds {
        println!("{}", again(seed, "--test kinds witnesses"));
        let requests = vanilla::make_each(&ProofKind::ALL, sector_size, seed).unwrap();
        for (request, circuit) in requests.iter().zip(&circuits) {
            check(request, circuit, seed);
        }
    }
}

#[test]
fn all_kinds_of_2_kib() {
    check_sectors(SectorSize::KiB2, seeds(SECTORS));
}

/// SnapDeals has four partitions.
#[test]
fn all_kinds_of_8_mib() {
    check_sectors(SectorSize::MiB8, 0..1);
}

#[test]
fn a_writer_that_is_stopped_is_no_failure() {
    let checkpoint = Checkpoint::asking(|| true);
    for kind in ProofKind::ALL {
        let statement = decode(&cuzk_testing::bundled_request(kind)).unwrap();
        let context = WitnessContext {
            checkpoint: &checkpoint,
            ..Isa::best().into()
        };
        let stopped = statement.witness_in(0, context).unwrap_err();
        assert!(matches!(stopped, Error::Stopped), "{kind}: {stopped}");
    }
}

/// A request is the same one, whatever else is made over its sector.
#[test]
fn requests_over_one_sector_are_those_over_sectors_of_their_own() {
    let (kinds, size) = (ProofKind::ALL, SectorSize::KiB2);
    let each = vanilla::make_each(&kinds, size, 3).unwrap();
    let alone = kinds.map(|kind| vanilla::make(kind, size, 3).unwrap());
    assert!(each == alone);
    let large = vanilla::make_each(&kinds, SectorSize::GiB32, 3).unwrap_err();
    assert!(large.to_string().contains("at most 8MiB"), "{large}");
    let twice = vanilla::make_each(&[ProofKind::SnapDeals; 2], size, 3);
    assert!(matches!(twice, Err(Error::Io { .. })));
}
