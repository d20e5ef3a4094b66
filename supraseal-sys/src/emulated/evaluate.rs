//! The evaluation of A and B by the emulated device code.

use blstrs::Scalar;

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
    let error = super::call_evaluate(program, witness, is_reversed, [a, b]);
    (error == 0).then_some(out)
}
