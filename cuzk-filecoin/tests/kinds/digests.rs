//! A, B, C and the witness of a partition, beside bellperson's own synthesis of its circuit.
//!
//! bellperson's prover keeps all four: over 16 GB at 32 GiB. So its rows are evaluated one by one
//! and digested; see [`cuzk_pce::digest_circuit`]. Here the compiled circuit is evaluated as the
//! engine evaluates it for a proof: in chunks, on all threads, under a throttle that is raised.
//! Equal digests mean equal values, except for errors that a digest misses with a probability
//! below 2^-220.

use std::sync::Mutex;
use std::sync::atomic::AtomicI32;

use blstrs::Scalar;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, Writer, blank, decode_reference, vanilla};
use cuzk_groth16::Circuit;
use cuzk_groth16::evaluate::{Throttle, domain_buffers, evaluate_partition};
use cuzk_groth16::memory::buffer_pool;
use cuzk_memory::{Dealloc, NEVER_STOP, ThrottleManner};
use cuzk_pce::{Columns as _, Digest, DigestedCircuit, PackedWitness};

/// Two partitions of 32 GiB do not fit into the memory of a small machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Digests a witness and its evaluation. C is the product of A and B, since a proof takes it so.
fn digested(circuit: &Circuit, witness: &PackedWitness<Scalar>) -> DigestedCircuit<Scalar> {
    let throttle = Throttle {
        count: &AtomicI32::new(1),
        manner: ThrottleManner::Sleep,
    };
    let [mut a, mut b] = domain_buffers(circuit, &buffer_pool(Dealloc::Recycle, 0)).unwrap();
    let out = [&mut a[..], &mut b[..]];
    evaluate_partition(circuit, witness, out, Some(throttle), &NEVER_STOP).unwrap();
    let len = circuit.program().rows() + witness.num_inputs();
    DigestedCircuit {
        inputs: Digest::of(witness.num_inputs(), |at| witness.input(at)),
        aux: Digest::of(witness.num_aux(), |at| witness.aux(at)),
        a: Digest::of(len, |at| a[at]),
        b: Digest::of(len, |at| b[at]),
        c: Digest::of(len, |at| a[at] * b[at]),
        violation: None,
    }
}

/// Compares the last partition, and returns the numbers of its rows and variables. The digests of
/// bellperson's synthesis come first, so that only one of the two is in memory.
fn check(kind: ProofKind, sector_size: SectorSize) -> (usize, usize) {
    let one = ONE_AT_A_TIME.lock();
    let request = vanilla::make_sparse(kind, sector_size, 1).unwrap();
    let job = decode_reference(&request).unwrap();
    assert_eq!(job.writer(), Writer::Native);
    let partition = job.partitions() - 1;
    let theirs = job.digested_circuit(partition).unwrap();

    let id = CircuitId { kind, sector_size };
    let circuit = Circuit::new(id.to_string(), blank::compile(id).unwrap());
    let witness = job.witness(partition).unwrap();
    assert_eq!(witness.inputs()[1..], job.public_inputs(partition).unwrap());
    assert_eq!(digested(&circuit, &witness), theirs, "{id}");
    drop(one);
    let program = circuit.program();
    (program.rows(), program.num_variables())
}

#[test]
fn each_kind_of_2_kib() {
    for kind in ProofKind::ALL {
        check(kind, SectorSize::KiB2);
    }
}

fn check_32_gib(kind: ProofKind) {
    let (rows, variables) = check(kind, SectorSize::GiB32);
    println!(
        "{kind} of 32 GiB: A, B and C of {rows} rows and the witness of {variables} variables are \
         bellperson's"
    );
}

#[test]
fn winning_post_of_32_gib() {
    check_32_gib(ProofKind::WinningPost);
}

#[test]
#[ignore = "it takes minutes, and 9 GiB of memory"]
fn porep_of_32_gib() {
    check_32_gib(ProofKind::Porep);
}

#[test]
#[ignore = "it takes minutes, and 9 GiB of memory"]
fn snap_deals_of_32_gib() {
    check_32_gib(ProofKind::SnapDeals);
}

#[test]
#[ignore = "it takes minutes, and 9 GiB of memory"]
fn window_post_of_32_gib() {
    check_32_gib(ProofKind::WindowPost);
}
