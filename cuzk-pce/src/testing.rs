//! Random circuits for this crate's property tests.
//!
//! They do what real circuits do to a constraint system: allocate inputs and
//! auxiliaries in any order between rows, repeat and cancel terms, use zero
//! coefficients, and synthesise independent groups on child systems where
//! those are extensible and in place where they are not.

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;
use proptest::prelude::*;

/// One step of a random circuit. Variables are picked from those in scope, by
/// any number.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Aux(u64),
    Input(u64),
    /// Allocates the product of two variables and its row, which holds.
    Mul(usize, usize),
    /// A row that holds or not: three sums of variables times `factor · 2^shift`.
    Row([Vec<Term>; 3]),
    /// Steps that see no variable but ONE and their own.
    Group(Vec<Op>),
    Fail,
}

#[derive(Debug, Clone)]
pub(crate) struct Term {
    variable: usize,
    factor: i8,
    shift: u64,
}

impl Term {
    fn coefficient(&self) -> Scalar {
        let magnitude = Scalar::from(u64::from(self.factor.unsigned_abs()));
        let value = magnitude * Scalar::from(2).pow_vartime([self.shift]);
        if self.factor < 0 { -value } else { value }
    }
}

/// A circuit that takes the same steps with a witness and without.
#[derive(Debug, Clone)]
pub(crate) struct RandomCircuit {
    ops: Vec<Op>,
    blank: bool,
}

impl RandomCircuit {
    /// The same circuit without a witness; every value closure fails.
    pub(crate) fn blank(&self) -> Self {
        RandomCircuit {
            ops: self.ops.clone(),
            blank: true,
        }
    }

    /// Two public inputs, then auxiliary 0 squared `rows` times over: row i
    /// says auxiliary i squared is auxiliary i + 1.
    pub(crate) fn squares(rows: usize) -> Self {
        let mut ops = vec![Op::Input(3), Op::Aux(2)];
        // Variables in scope: ONE, the input, then the auxiliaries.
        ops.extend((0..rows).map(|i| Op::Mul(i + 2, i + 2)));
        RandomCircuit { ops, blank: false }
    }

    pub(crate) fn failing() -> Self {
        RandomCircuit {
            ops: vec![Op::Fail],
            blank: true,
        }
    }
}

/// A variable in scope and its value, absent in a blank circuit.
type Known = (Variable, Option<Scalar>);

struct Run {
    blank: bool,
    /// Names must be unique over the whole circuit.
    names: usize,
}

impl Run {
    fn steps<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        ops: &[Op],
    ) -> Result<(), SynthesisError> {
        let mut scope = vec![(CS::one(), Some(Scalar::ONE))];
        ops.iter().try_for_each(|op| self.step(cs, op, &mut scope))
    }

    fn step<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        op: &Op,
        scope: &mut Vec<Known>,
    ) -> Result<(), SynthesisError> {
        self.names += 1;
        let name = self.names;
        let known = |value: u64| (!self.blank).then(|| Scalar::from(value));
        match op {
            Op::Aux(value) => alloc(cs, name, known(*value), scope),
            Op::Input(value) => {
                let value = known(*value);
                let variable = cs.alloc_input(|| name.to_string(), || value.ok_or(MISSING))?;
                scope.push((variable, value));
                Ok(())
            }
            Op::Mul(x, y) => {
                let (x, y) = (scope[x % scope.len()], scope[y % scope.len()]);
                alloc(cs, name, x.1.zip(y.1).map(|(x, y)| x * y), scope)?;
                let z = scope[scope.len() - 1].0;
                cs.enforce(
                    || format!("row {name}"),
                    |lc| lc + x.0,
                    |lc| lc + y.0,
                    |lc| lc + z,
                );
                Ok(())
            }
            Op::Row([a, b, c]) => {
                let sum = |lc, terms| add(lc, terms, scope);
                cs.enforce(
                    || name.to_string(),
                    |lc| sum(lc, a),
                    |lc| sum(lc, b),
                    |lc| sum(lc, c),
                );
                Ok(())
            }
            Op::Group(ops) if CS::is_extensible() => {
                let mut child = CS::new();
                child.alloc_input(|| "temporary ONE", || Ok(Scalar::ONE))?;
                self.steps(&mut child, ops)?;
                cs.extend(&child);
                Ok(())
            }
            Op::Group(ops) => self.steps(cs, ops),
            Op::Fail => Err(SynthesisError::Unsatisfiable),
        }
    }
}

const MISSING: SynthesisError = SynthesisError::AssignmentMissing;

fn alloc<CS: ConstraintSystem<Scalar>>(
    cs: &mut CS,
    name: usize,
    value: Option<Scalar>,
    scope: &mut Vec<Known>,
) -> Result<(), SynthesisError> {
    let variable = cs.alloc(|| name.to_string(), || value.ok_or(MISSING))?;
    scope.push((variable, value));
    Ok(())
}

fn add(
    lc: LinearCombination<Scalar>,
    terms: &[Term],
    scope: &[Known],
) -> LinearCombination<Scalar> {
    terms.iter().fold(lc, |lc, term| {
        lc + (term.coefficient(), scope[term.variable % scope.len()].0)
    })
}

impl Circuit<Scalar> for RandomCircuit {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut run = Run {
            blank: self.blank,
            names: 0,
        };
        run.steps(cs, &self.ops)
    }
}

/// Circuits of up to some dozens of steps, groups nested up to two deep.
pub(crate) fn random_circuit() -> impl Strategy<Value = RandomCircuit> {
    prop::collection::vec(op(), 0..40).prop_map(|ops| RandomCircuit { ops, blank: false })
}

fn op() -> impl Strategy<Value = Op> {
    let terms = || prop::collection::vec(term(), 0..5);
    let step = prop_oneof![
        any::<u64>().prop_map(Op::Aux),
        (0..2u64).prop_map(Op::Aux),
        any::<u64>().prop_map(Op::Input),
        (any::<usize>(), any::<usize>()).prop_map(|(x, y)| Op::Mul(x, y)),
        [terms(), terms(), terms()].prop_map(Op::Row),
    ];
    step.prop_recursive(2, 40, 8, |step| {
        prop::collection::vec(step, 0..8).prop_map(Op::Group)
    })
}

fn term() -> impl Strategy<Value = Term> {
    // Few variables and small factors, so that terms meet and cancel.
    let variable = prop_oneof![0..3usize, any::<usize>()];
    let shift = prop_oneof![3 => Just(0u64), 1 => 0..250u64];
    (variable, -2..=2i8, shift).prop_map(|(variable, factor, shift)| Term {
        variable,
        factor,
        shift,
    })
}
