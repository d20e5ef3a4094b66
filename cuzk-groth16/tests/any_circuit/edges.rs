//! The smallest circuits, those with nothing in them, and one with a row more than a power of
//! two.

use bellperson::groth16::Parameters;
use bellperson::{Circuit, ConstraintSystem, SynthesisError, Variable};
use blstrs::{Bls12, Scalar};
use cuzk_testing::circuits::Mimc;
use ff::Field;

use crate::oracle::{Any, agree, agree_with, in_memory};

/// One of the smallest circuits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edge {
    /// 1 · 1 = 1.
    OneRowOfOnes,
    /// No rows at all.
    Nothing,
    /// Rows without terms, before and after one with a variable.
    EmptyRows,
    /// Sums of constants, and terms that cancel.
    ConstantsOnly,
    /// A private square, and no public input.
    NoInputs,
    /// Public inputs, and no private variable.
    InputsOnly,
    /// A public input that is in no row.
    UnusedInput,
    /// All private variables are 0.
    Zeros,
}

impl Edge {
    const ALL: [Self; 8] = [
        Self::OneRowOfOnes,
        Self::Nothing,
        Self::EmptyRows,
        Self::ConstantsOnly,
        Self::NoInputs,
        Self::InputsOnly,
        Self::UnusedInput,
        Self::Zeros,
    ];
}

/// Allocates x and its square, and the row.
fn square<CS: ConstraintSystem<Scalar>>(cs: &mut CS, x: u64) -> Result<Variable, SynthesisError> {
    let x = Scalar::from(x);
    let root = cs.alloc(|| "root", || Ok(x))?;
    let square = cs.alloc(|| "square", || Ok(x.square()))?;
    cs.enforce(|| "", |lc| lc + root, |lc| lc + root, |lc| lc + square);
    Ok(square)
}

impl Circuit<Scalar> for Edge {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let one = CS::one();
        match self {
            Self::OneRowOfOnes => {
                cs.enforce(|| "", |lc| lc + one, |lc| lc + one, |lc| lc + one);
            }
            Self::Nothing => {}
            Self::EmptyRows => {
                cs.enforce(|| "before", |lc| lc, |lc| lc, |lc| lc);
                square(cs, 3)?;
                cs.enforce(|| "after", |lc| lc, |lc| lc + one, |lc| lc);
                cs.enforce(|| "at the end", |lc| lc, |lc| lc, |lc| lc);
            }
            Self::ConstantsOnly => {
                let [two, three, six] = [2, 3, 6].map(|value| (Scalar::from(value), one));
                cs.enforce(|| "", |lc| lc + two, |lc| lc + three, |lc| lc + six);
                cs.enforce(|| "none", |lc| lc + two - two, |lc| lc + three, |lc| lc);
            }
            Self::NoInputs => drop(square(cs, 5)?),
            Self::InputsOnly => {
                let x = cs.alloc_input(|| "x", || Ok(Scalar::from(4)))?;
                let y = cs.alloc_input(|| "y", || Ok(Scalar::from(16)))?;
                cs.enforce(|| "", |lc| lc + x, |lc| lc + x, |lc| lc + y);
            }
            Self::UnusedInput => {
                let square = square(cs, 6)?;
                let public = cs.alloc_input(|| "square", || Ok(Scalar::from(36)))?;
                cs.alloc_input(|| "unused", || Ok(Scalar::from(9)))?;
                cs.enforce(|| "", |lc| lc + square, |lc| lc + one, |lc| lc + public);
            }
            Self::Zeros => drop(square(cs, 0)?),
        }
        Ok(())
    }
}

#[test]
fn the_smallest_circuits() {
    for edge in Edge::ALL {
        println!("{edge:?}");
        agree(Any::Edge(edge), Any::Edge(edge));
    }
}

/// MiMC has two rows a round, and one row is added.
#[derive(Clone)]
pub(crate) struct OneMore(Mimc);

impl Circuit<Scalar> for OneMore {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let one = CS::one();
        cs.enforce(|| "first", |lc| lc + one, |lc| lc + one, |lc| lc + one);
        self.0.synthesize(cs)
    }
}

/// The domain is twice as large as for a row less.
#[test]
fn a_row_more_than_a_power_of_two() {
    let mimc = Mimc::blank(1 << 15);
    let prover = in_memory(Any::OneMore(OneMore(mimc.clone())));
    assert_eq!(prover.circuit().program().rows(), (1 << 16) + 1);
    assert_eq!(prover.circuit().domain_len(), 1 << 17);
    // Other tests compare parameters. bellperson's own would take a minute here.
    let theirs = Parameters::<Bls12>::read(prover.params().bytes(), false).unwrap();
    agree_with(&theirs, prover, Any::OneMore(OneMore(mimc.with([1, 2]))));
}
