//! The device's evaluation, run on the host, against that of `cuzk-pce`.
//!
//! A test of `cuzk-pce` compares the flat tables with the program.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};
use blstrs::Scalar;
use cuzk_pce::{PackedBuilder, PackedWitness, Program, Witness as PlainWitness, compile};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use supraseal_sys::emulated::evaluate;

mod gadgets;

use gadgets::{Gadgets, witness};

type Terms = LinearCombination<Scalar>;

fn check(program: &Program<Scalar>, witness: &PackedWitness<Scalar>) {
    let len = program.rows() + program.num_inputs();
    let [mut a, mut b] = [(); 2].map(|()| vec![Scalar::ZERO; len]);
    program
        .evaluate_into(witness, &mut a, &mut b, &cuzk_memory::NEVER_STOP)
        .unwrap();
    let log = len.next_power_of_two().ilog2();
    a.resize(1 << log, Scalar::ZERO);
    b.resize(1 << log, Scalar::ZERO);

    let flat = program.flatten().unwrap();
    let (flat, packed) = (gadgets::program(&flat), gadgets::packed(witness));
    let natural = evaluate(&flat, &packed, log, false).unwrap();
    for (row, values) in a.iter().zip(&b).enumerate() {
        assert_eq!((&natural[0][row], &natural[1][row]), values, "row {row}");
    }
    // Twice the domain, in the order of the transforms.
    let reversed = evaluate(&flat, &packed, log + 1, true).unwrap();
    for (out, expected) in reversed.iter().zip([&a, &b]) {
        for (row, value) in out.iter().enumerate() {
            let row = row.reverse_bits() >> (usize::BITS - log - 1);
            assert_eq!(value, expected.get(row).unwrap_or(&Scalar::ZERO));
        }
    }
    assert!(evaluate(&flat, &packed, log - 1, false).is_none());
}

#[test]
fn evaluation_agrees_with_the_cpu() {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    for seed in 0..6 {
        let program = compile(Gadgets { turns: 40, seed }).unwrap();
        // All bits, a few wide values as in real witnesses, and hardly a bit.
        for wide in [0, 2, 900] {
            check(&program, &witness(&program, wide, &mut rng));
        }
    }
}

/// A circuit without repetition, whose program keeps its rows plain.
struct Unlike;

impl Circuit<Scalar> for Unlike {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut rng = ChaCha8Rng::seed_from_u64(22);
        let mut variables = vec![CS::one()];
        for row in 0..700 {
            let new = cs.alloc(|| format!("aux {row}"), || Ok(Scalar::ONE))?;
            variables.push(new);
            let [a, b, c] = [0, 1, 2].map(|_| {
                (0..3).fold(Terms::zero(), |sum, _| {
                    let variable = variables[rng.gen_range(0..variables.len())];
                    sum + (Scalar::random(&mut rng), variable)
                })
            });
            cs.enforce(|| format!("row {row}"), |_| a, |_| b, |_| c);
        }
        Ok(())
    }
}

#[test]
fn plain_rows_too() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let program = compile(Unlike).unwrap();
    assert!(program.plain().is_some());
    check(&program, &witness(&program, 10, &mut rng));
}

/// Only the rows of the public inputs, and no row at all.
#[test]
fn no_rows() {
    struct Empty;
    impl Circuit<Scalar> for Empty {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            cs.alloc_input(|| "input", || Ok(Scalar::from(9)))?;
            Ok(())
        }
    }
    let program = compile(Empty).unwrap();
    let values = vec![Scalar::ONE, Scalar::from(9)];
    let witness = PackedBuilder::pack(&PlainWitness::new(values, 2).unwrap());
    check(&program, &witness);
}
