//! Random circuits with random witnesses: parameters and proofs are bellperson's.

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use proptest::prelude::*;

use crate::oracle::{Any, agree};

/// A variable, by any number, and its coefficient.
pub(crate) type Term = (usize, Scalar);

/// A step of a circuit. Each of its rows holds.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Input(Scalar),
    Aux(Scalar),
    /// A private variable that a row proves to be 0 or 1.
    Bit(bool),
    /// The product of two sums, as a new private or public variable.
    Product(Vec<Term>, Vec<Term>, bool),
    /// A sum of variables times a sum that cancels.
    Cancelled(Vec<Term>, Vec<Term>),
    /// A row without terms.
    Empty,
}

#[derive(Clone, Debug)]
pub(crate) struct Random {
    pub(crate) steps: Vec<Step>,
    pub(crate) is_blank: bool,
}

/// Variables with their values. The first is ONE.
struct Known(Vec<(Variable, Scalar)>);

impl Known {
    fn terms(&self, terms: &[Term]) -> Vec<(Scalar, Variable, Scalar)> {
        let pick = |&(at, coefficient): &Term| {
            let (variable, value) = self.0[at % self.0.len()];
            (coefficient, variable, value)
        };
        terms.iter().map(pick).collect()
    }

    fn value(&self, terms: &[Term]) -> Scalar {
        let terms = self.terms(terms).into_iter();
        terms.map(|(factor, _, value)| factor * value).sum()
    }

    fn sum(&self, terms: &[Term]) -> LinearCombination<Scalar> {
        let terms = self.terms(terms).into_iter();
        let zero = LinearCombination::zero();
        terms.fold(zero, |sum, (factor, variable, _)| sum + (factor, variable))
    }
}

impl Random {
    fn value(&self, value: Scalar) -> Result<Scalar, SynthesisError> {
        match self.is_blank {
            true => Err(SynthesisError::AssignmentMissing),
            false => Ok(value),
        }
    }

    fn step<CS: ConstraintSystem<Scalar>>(
        &self,
        cs: &mut CS,
        step: &Step,
        known: &mut Known,
    ) -> Result<(), SynthesisError> {
        let one = CS::one();
        match step {
            Step::Input(value) => {
                let variable = cs.alloc_input(|| "", || self.value(*value))?;
                known.0.push((variable, *value));
            }
            Step::Aux(value) => {
                let variable = cs.alloc(|| "", || self.value(*value))?;
                // Every private variable is in some row.
                cs.enforce(|| "", |lc| lc + variable, |lc| lc, |lc| lc);
                known.0.push((variable, *value));
            }
            Step::Bit(bit) => {
                let value = Scalar::from(u64::from(*bit));
                let bit = cs.alloc(|| "", || self.value(value))?;
                cs.enforce(|| "", |lc| lc + one - bit, |lc| lc + bit, |lc| lc);
                known.0.push((bit, value));
            }
            Step::Product(a, b, is_public) => {
                let value = known.value(a) * known.value(b);
                let product = match is_public {
                    true => cs.alloc_input(|| "", || self.value(value))?,
                    false => cs.alloc(|| "", || self.value(value))?,
                };
                let (a, b) = (known.sum(a), known.sum(b));
                cs.enforce(|| "", |_| a, |_| b, |lc| lc + product);
                known.0.push((product, value));
            }
            Step::Cancelled(a, b) => {
                let (a, b) = (known.sum(a), known.sum(b));
                cs.enforce(|| "", |_| a, |lc| lc + &b - &b, |lc| lc);
            }
            Step::Empty => cs.enforce(|| "", |lc| lc, |lc| lc, |lc| lc),
        }
        Ok(())
    }
}

impl Circuit<Scalar> for Random {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut known = Known(vec![(CS::one(), Scalar::ONE)]);
        let mut steps = self.steps.iter();
        steps.try_for_each(|step| self.step(cs, step, &mut known))
    }
}

/// Returns a scalar near 0 as a coefficient.
pub(crate) fn small(factor: i8) -> Scalar {
    let magnitude = Scalar::from(u64::from(factor.unsigned_abs()));
    if factor < 0 { -magnitude } else { magnitude }
}

fn step() -> impl Strategy<Value = Step> {
    let term = || (any::<usize>(), (-3..=3i8).prop_map(small));
    let terms = move || prop::collection::vec(term(), 0..5);
    let word = || any::<u64>().prop_map(Scalar::from);
    prop_oneof![
        1 => word().prop_map(Step::Input),
        1 => word().prop_map(Step::Aux),
        1 => (0..2u64).prop_map(Scalar::from).prop_map(Step::Aux),
        3 => any::<bool>().prop_map(Step::Bit),
        6 => (terms(), terms(), any::<bool>()).prop_map(|(a, b, public)| Step::Product(a, b, public)),
        1 => (terms(), terms()).prop_map(|(a, b)| Step::Cancelled(a, b)),
        1 => Just(Step::Empty),
    ]
}

/// Circuits of up to some hundred steps, of which some repeat.
fn random() -> impl Strategy<Value = Random> {
    let steps = prop::collection::vec(step(), 0..40);
    (steps, 1..4usize).prop_map(|(steps, times)| Random {
        steps: vec![steps; times].concat(),
        is_blank: false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn proofs_are_bellpersons(instance in random()) {
        let blank = Random { is_blank: true, ..instance.clone() };
        agree(Any::Random(blank), Any::Random(instance));
    }
}
