//! Compiled circuits are the recorded ones, row by row. For the smallest sectors of every
//! kind the rows are compared in full, for the largest by a hash.

use blstrs::Scalar;
use cuzk_filecoin::blank;
use cuzk_filecoin::{CircuitId, ProofKind, SectorSize, variables_apart};
use cuzk_pce::{CsrMatrix, Program};

fn compiled(kind: ProofKind, sector_size: SectorSize) -> Program<Scalar> {
    blank::compile(CircuitId { kind, sector_size }).unwrap()
}

/// A recorded row as `unfold` gives it.
fn terms(matrix: &CsrMatrix<Scalar>, row: usize) -> Vec<(u32, Scalar)> {
    let row = matrix.row(row).unwrap();
    row.cols
        .iter()
        .copied()
        .zip(row.values.iter().copied())
        .collect()
}

/// The rows of the small circuits, one after the other: the recorded form is
/// held whole, the compiled one is unfolded as it goes.
fn assert_is_the_recorded_circuit(kind: ProofKind) {
    let sector_size = SectorSize::KiB2;
    let id = CircuitId { kind, sector_size };
    let r1cs = blank::record(id).unwrap();
    let program = compiled(kind, sector_size);
    assert_eq!(program.num_inputs(), r1cs.num_inputs());
    assert_eq!(program.num_aux(), r1cs.num_aux());
    assert_eq!(program.rows(), r1cs.rows());
    let mut rows = 0;
    for (row, unfolded) in program.unfold().enumerate() {
        let recorded = [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| terms(matrix, row));
        assert_eq!(unfolded, recorded, "{kind}, row {row}");
        rows += 1;
    }
    assert_eq!(rows, r1cs.rows());
    assert_eq!(program.fingerprint(), r1cs.fingerprint());
    assert_eq!(program.recompute_fingerprint(), r1cs.fingerprint());
    assert_eq!(program.densities(), r1cs.densities());
    assert!(program.resident_bytes() * 50 < r1cs.resident_bytes());
}

/// One test for all kinds, so that no two recorded circuits are held at once.
#[test]
fn small_circuits_unfold_to_the_recorded_rows() {
    for kind in [
        ProofKind::WindowPost,
        ProofKind::WinningPost,
        ProofKind::SnapDeals,
        ProofKind::Porep,
    ] {
        assert_is_the_recorded_circuit(kind);
    }
}

/// A program's fingerprint is the hash of its rows as they came from the
/// circuit, before they were folded. The unfolded rows must have the same hash.
fn assert_unfolds_to_what_was_compiled(kind: ProofKind) {
    let program = compiled(kind, SectorSize::GiB32);
    assert_eq!(
        program.recompute_fingerprint(),
        program.fingerprint(),
        "{kind}"
    );
}

#[test]
fn winning_post_of_32_gib_unfolds_to_its_rows() {
    assert_unfolds_to_what_was_compiled(ProofKind::WinningPost);
}

#[test]
#[ignore = "ten CPU minutes"]
fn the_larger_circuits_of_32_gib_unfold_to_their_rows() {
    for kind in [
        ProofKind::SnapDeals,
        ProofKind::Porep,
        ProofKind::WindowPost,
    ] {
        assert_unfolds_to_what_was_compiled(kind);
        println!("{kind} of 32 GiB: its rows are those that were compiled");
    }
}

/// A thread has two groups of sectors of a WindowPoSt. A group has 40 paths: four sectors with ten
/// challenges each. A partition of 2 KiB has two sectors, and nothing else. The bound is
/// half a hundredth above the variables of two groups.
#[test]
fn a_window_post_has_groups_of_sectors_apart() {
    let sector_size = SectorSize::KiB2;
    for kind in ProofKind::ALL {
        let apart = variables_apart(CircuitId { kind, sector_size }).unwrap();
        if kind == ProofKind::WindowPost {
            let groups = 2 * 4 * compiled(kind, sector_size).num_aux() / 2;
            let apart = apart.unwrap();
            assert!(groups <= apart && apart <= groups + groups / 100, "{apart}");
        } else {
            assert_eq!(apart, None, "{kind}");
        }
    }
}

/// The names are those of the proofs libraries: they say which challenge, layer or tree. As
/// many rows have a name as the compiled circuit has.
#[test]
fn each_row_is_named_by_its_part_of_the_proof() {
    let sector_size = SectorSize::KiB2;
    for (kind, part) in [
        (ProofKind::WindowPost, "sector_"),
        (ProofKind::WinningPost, "sector_"),
        (ProofKind::Porep, "challenge_"),
        (ProofKind::SnapDeals, "/"),
    ] {
        let rows = compiled(kind, sector_size).rows();
        let name = |row| blank::row_name(CircuitId { kind, sector_size }, row).unwrap();
        let middle = name(rows / 2).unwrap();
        assert!(middle.contains(part), "{kind}: {middle}");
        assert!(name(rows - 1).is_some(), "{kind}");
        assert_eq!(name(rows), None, "{kind}");
    }
}
