use super::*;
use crate::program::Program;
use crate::{
    compile,
    program::{RowTerm, compile::compile_folded, rows::Step},
    testing::*,
};
use blstrs::Scalar;
use ff::Field;
use proptest::prelude::*;

/// A and B of row `row`, found as a device finds them.
fn look_up(flat: &Flat<Scalar>, row: u32) -> [Vec<RowTerm<Scalar>>; 2] {
    let block = (row / BLOCK_ROWS) as usize;
    let (references, _) = flat.references.as_chunks::<3>();
    let [first, last] = [0, 1].map(|k| flat.block_references[block + k] as usize);
    let in_block = &references[first..=last];
    let [start, before, unit] = *in_block.iter().rfind(|r| r[0] <= row).unwrap();
    let at = (unit + (row - start)) as usize;
    let [shape, since] = [0, 1].map(|k| flat.unit_rows[2 * at + k]);
    [0, 1].map(|k| {
        let part = flat.shapes[2 * shape as usize + k] as usize;
        let end = flat.part_ends[part] as usize;
        let start = part
            .checked_sub(1)
            .map_or(0, |before| flat.part_ends[before] as usize);
        let (items, _) = flat.items.as_chunks::<2>();
        let terms = items[start..end]
            .iter()
            .flat_map(|&words| terms(flat, words));
        let flat_col = |(col, value)| match col & INPUT_BIT {
            0 => (flat.num_inputs + (before + since - col), value),
            _ => (col & !INPUT_BIT, value),
        };
        terms.map(flat_col).collect()
    })
}

fn terms(flat: &Flat<Scalar>, words: [u32; 2]) -> Vec<RowTerm<Scalar>> {
    let run = Item::decode(words).unwrap().as_run();
    let mut value = flat.coefficients[run.first.coefficient as usize];
    let terms = (0..run.length).map(|k| {
        let term = (run.first.col - k * run.gap, value);
        value = match run.step {
            Step::Stay => value,
            Step::Double => value.double(),
            Step::Halve => value * flat.halves[1],
        };
        term
    });
    terms.collect()
}

fn check(program: &Program<Scalar>) {
    let flat = program.flatten().unwrap();
    let mut rows = 0;
    for ([a, b, _], row) in program.unfold().zip(0u32..) {
        assert_eq!(look_up(&flat, row), [a, b]);
        rows += 1;
    }
    assert_eq!(rows, flat.rows);
    for (value, integer) in flat.coefficients.iter().zip(&flat.integers) {
        let magnitude = Scalar::from(u64::from(integer.unsigned_abs()));
        let of = if *integer < 0 { -magnitude } else { magnitude };
        assert!(*integer == 0 || of == *value);
    }
    assert_eq!(flat.integers[..2], [1, -1]);
    assert_eq!(flat.halves.len(), HALVES);
    assert_eq!(flat.halves[7] * Scalar::from(128), Scalar::ONE);
}

proptest! {
    #[test]
    fn flat_rows_are_the_programs(circuit in random_circuit()) {
        check(&compile_folded(circuit.blank()).unwrap());
        check(&compile(circuit.blank()).unwrap());
    }
}

/// Longer than any unit: references begin within blocks, and a repeat is
/// cut into several.
#[test]
fn long_circuits_are_found_block_by_block() {
    check(&compile_folded(RandomCircuit::long().blank()).unwrap());
    let squares = compile_folded(RandomCircuit::squares(10_000).blank()).unwrap();
    check(&squares);
    let flat = squares.flatten().unwrap();
    assert!(flat.bytes() < squares.rows() * 2, "{}", flat.bytes());
}
