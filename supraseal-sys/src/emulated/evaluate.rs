//! The evaluation of A and B by the emulated device code.
#![allow(unsafe_code)] // Passes slices to C++.

use blstrs::Scalar;

use super::ffi::{RawProgram, RawWitness, cuzk_emulated_evaluate};

/// A flat circuit, as `cuzk_pce` makes it.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    pub coefficients: &'a [Scalar],
    pub integers: &'a [i32],
    pub halves: &'a [Scalar],
    pub part_ends: &'a [u32],
    pub items: &'a [u32],
    pub shapes: &'a [u32],
    pub unit_rows: &'a [u32],
    pub references: &'a [u32],
    pub block_references: &'a [u32],
    pub rows: u32,
    pub num_inputs: u32,
}

/// A packed witness.
#[derive(Debug, Clone, Copy)]
pub struct Witness<'a> {
    pub inputs: &'a [Scalar],
    pub bits: &'a [u64],
    pub wide: &'a [u64],
    pub ranks: &'a [u32],
    pub wide_values: &'a [Scalar],
}

/// Returns A and B over 2^`log` places. The tables must belong to one circuit, and the
/// witness must have its dimensions: nothing is checked.
pub fn evaluate(
    program: &Program<'_>,
    witness: &Witness<'_>,
    log: u32,
    is_reversed: bool,
) -> Option<[Vec<Scalar>; 2]> {
    let mut out = [(); 2].map(|()| vec![Scalar::default(); 1 << log]);
    let [a, b] = &mut out;
    let raw = RawProgram {
        coefficients: program.coefficients.as_ptr(),
        integers: program.integers.as_ptr(),
        halves: program.halves.as_ptr(),
        part_ends: program.part_ends.as_ptr(),
        items: program.items.as_ptr(),
        shapes: program.shapes.as_ptr(),
        unit_rows: program.unit_rows.as_ptr(),
        references: program.references.as_ptr(),
        block_references: program.block_references.as_ptr(),
        rows: program.rows,
        num_inputs: program.num_inputs,
    };
    let raw_witness = RawWitness {
        inputs: witness.inputs.as_ptr(),
        bits: witness.bits.as_ptr(),
        wide: witness.wide.as_ptr(),
        ranks: witness.ranks.as_ptr(),
        wide_values: witness.wide_values.as_ptr(),
    };
    // SAFETY: the tables are those of a checked circuit, and the witness has its
    // dimensions, as the caller warrants. a and b have 2^log places.
    let error = unsafe {
        cuzk_emulated_evaluate(
            &raw const raw,
            &raw const raw_witness,
            log,
            is_reversed,
            a.as_mut_ptr(),
            b.as_mut_ptr(),
        )
    };
    (error == 0).then_some(out)
}
