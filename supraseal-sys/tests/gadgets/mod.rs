//! Circuits and witnesses for the tests of the device's kernels.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use cuzk_pce::{PackedBuilder, PackedWitness, Program, Witness, program::Flat};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use supraseal_sys::emulated;

/// Rows of bits and packings of bits, again and again, as circuits of Filecoin have
/// them: items of each kind and each length.
pub(crate) struct Gadgets {
    pub(crate) turns: usize,
    /// The seed of the terms and coefficients.
    pub(crate) seed: u64,
}

fn power(exponent: u64) -> Scalar {
    Scalar::from(2).pow_vartime([exponent])
}

type Terms = LinearCombination<Scalar>;

/// Returns bits, each or every second one, with coefficients that double, halve or
/// stay.
fn packing(bits: &[Variable], rng: &mut ChaCha8Rng) -> Terms {
    let gap = rng.gen_range(1..3);
    let length = match rng.gen_range(0..4) {
        0 => rng.gen_range(1..5),
        1 => rng.gen_range(28..36),
        2 => rng.gen_range(60..70),
        _ => rng.gen_range(1..=254),
    }
    .min(bits.len() / gap);
    let start = rng.gen_range(0..=bits.len() - length * gap);
    let bits = bits[start..].iter().step_by(gap).take(length);
    let step = rng.gen_range(0..3);
    let first = match rng.gen_range(0..4) {
        0 => Scalar::ONE,
        1 => -Scalar::ONE,
        2 => Scalar::from(rng.gen_range(0..1u64 << 32)),
        _ => Scalar::random(&mut *rng),
    };
    let coefficient = |k: usize| match step {
        0 => first,
        1 => first * power(k as u64),
        _ => first * power((length - k) as u64),
    };
    bits.enumerate()
        .fold(Terms::zero(), |sum, (k, bit)| sum + (coefficient(k), *bit))
}

/// Returns a few variables, ONE among them, with small or other coefficients.
fn sum(variables: &[Variable], rng: &mut ChaCha8Rng) -> Terms {
    let terms = rng.gen_range(0..5);
    (0..terms).fold(Terms::zero(), |sum, _| {
        let coefficient = match rng.gen_range(0..6) {
            0 => Scalar::ONE,
            1 => -Scalar::ONE,
            2 => Scalar::from(2),
            3 => -Scalar::from((1u64 << 31) - 1 + rng.gen_range(0..3)),
            4 => Scalar::ZERO,
            _ => Scalar::random(&mut *rng),
        };
        sum + (coefficient, variables[rng.gen_range(0..variables.len())])
    })
}

impl Circuit<Scalar> for Gadgets {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut inputs = vec![CS::one()];
        for index in 0..3 {
            let name = format!("input {index}");
            inputs.push(cs.alloc_input(|| name, || Ok(Scalar::from(index + 5)))?);
        }
        for turn in 0..self.turns {
            // Equal turns in a row, then others.
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed + (turn / 5) as u64);
            let mut bits = vec![];
            for index in 0..520 {
                let name = format!("bit {turn} {index}");
                bits.push(cs.alloc(|| name, || Ok(Scalar::ONE))?);
            }
            let mut variables = [&inputs[..], &bits[..]].concat();
            for row in 0..40 {
                let [a, b] = [0, 1].map(|_| match rng.gen_range(0..3) {
                    0 => packing(&bits, &mut rng),
                    1 => sum(&inputs, &mut rng) + &packing(&bits, &mut rng),
                    _ => sum(&variables, &mut rng),
                });
                let name = format!("new {turn} {row}");
                let new = cs.alloc(|| name, || Ok(Scalar::from(3)))?;
                let name = format!("row {turn} {row}");
                cs.enforce(|| name, |_| a, |_| b, |c| c + new);
                variables.push(new);
            }
        }
        Ok(())
    }
}

/// Returns bits with `wide` of a thousand values that are not. Evaluation is exact for
/// any witness, so it need not satisfy the circuit.
pub(crate) fn witness(
    program: &Program<Scalar>,
    wide: u32,
    rng: &mut ChaCha8Rng,
) -> PackedWitness<Scalar> {
    let mut value = |index| match index {
        0 => Scalar::ONE,
        _ if rng.gen_ratio(wide, 1000) => Scalar::random(&mut *rng),
        _ => Scalar::from(rng.gen_range(0..2u64)),
    };
    let values = (0..program.num_variables()).map(&mut value).collect();
    PackedBuilder::pack(&Witness::new(values, program.num_inputs()).unwrap())
}

pub(crate) fn program(flat: &Flat<Scalar>) -> emulated::Program<'_> {
    emulated::Program {
        coefficients: &flat.coefficients,
        integers: &flat.integers,
        halves: &flat.halves,
        part_ends: &flat.part_ends,
        items: &flat.items,
        shapes: &flat.shapes,
        unit_rows: &flat.unit_rows,
        references: &flat.references,
        block_references: &flat.block_references,
        rows: flat.rows,
        num_inputs: flat.num_inputs,
    }
}

pub(crate) fn packed(witness: &PackedWitness<Scalar>) -> emulated::Witness<'_> {
    let slice = witness.aux_slice();
    emulated::Witness {
        inputs: witness.inputs(),
        bits: slice.bits,
        wide: slice.wide,
        ranks: witness.ranks(),
        wide_values: slice.values,
    }
}
