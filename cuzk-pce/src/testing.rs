//! Random circuits for this crate's property tests.
//!
//! They do the things that real circuits do to a constraint system. They allocate inputs
//! and auxiliaries in any order between rows, repeat and cancel terms, and use zero
//! coefficients. They compute on bits, pack them, and repeat steps. They synthesise
//! independent groups, on child systems where these are extensible and in place where they
//! are not.

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
    /// Allocates bits, each with the row that makes it one.
    Bits(Vec<bool>),
    /// Allocates a function of bits, once for each of so many consecutive
    /// bits, and the row that fixes it.
    Gate(Gate, [usize; 3], usize),
    /// A row that packs bits, each so many or every second, lowest or highest
    /// first, into a new variable.
    Pack {
        start: usize,
        length: usize,
        gap: usize,
        lowest_first: bool,
    },
    /// Steps that are done several times over.
    Loop(Vec<Op>, usize),
    /// Steps that see no variable but ONE and their own.
    Group(Vec<Op>),
    Fail,
}

/// The function of a gate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gate {
    And,
    Nor,
    Xor,
    Choice,
    /// With its auxiliary product allocated before it.
    Majority,
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
    /// Returns the circuit without a witness: every value closure fails.
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

    /// One of each gadget, and the auxiliaries that must be boolean: all but
    /// a packed word and a product of it.
    pub(crate) fn gadgets() -> (Self, Vec<usize>) {
        let mut ops = vec![Op::Bits(vec![true, false, true])];
        for gate in [
            Gate::And,
            Gate::Nor,
            Gate::Xor,
            Gate::Choice,
            Gate::Majority,
        ] {
            ops.push(Op::Gate(gate, [0, 1, 2], 1));
        }
        let (start, length, lowest_first) = (0, 9, true);
        ops.push(Op::Pack {
            start,
            length,
            gap: 1,
            lowest_first,
        });
        // ONE and the packed word are in scope.
        ops.push(Op::Mul(1, 1));
        (RandomCircuit { ops, blank: false }, (0..9).collect())
    }

    /// Tens of thousands of rows that repeat: words of bits, gates on them,
    /// packings, and now and then something else.
    pub(crate) fn long() -> Self {
        let mut round = vec![Op::Bits((0..64).map(|k| k % 3 == 0).collect())];
        for gate in [Gate::Xor, Gate::Choice, Gate::Majority, Gate::Nor] {
            round.push(Op::Gate(gate, [0, 40, 80], 32));
        }
        for (start, gap, lowest_first) in [(3, 1, true), (70, 1, false), (128, 2, true)] {
            let length = 100;
            round.push(Op::Pack {
                start,
                length,
                gap,
                lowest_first,
            });
        }
        round.push(Op::Mul(1, 2));
        let rounds = Op::Loop(round, 60);
        let ops = (0..3).flat_map(|k| [Op::Group(vec![rounds.clone()]), Op::Aux(k), Op::Mul(1, 0)]);
        let mut ops: Vec<Op> = ops.collect();
        ops.insert(0, Op::Input(9));
        RandomCircuit { ops, blank: false }
    }

    /// The circuit without its last step.
    pub(crate) fn without_last(&self) -> Self {
        let ops = self.ops.split_last().map_or(&[][..], |(_, ops)| ops);
        RandomCircuit {
            ops: ops.to_vec(),
            blank: self.blank,
        }
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

/// The variables that the steps of a group have allocated.
struct Scope {
    variables: Vec<Known>,
    bits: Vec<(Variable, Option<bool>)>,
}

impl Scope {
    fn bit(&self, at: usize) -> Option<(Variable, Option<bool>)> {
        self.bits.get(at.checked_rem(self.bits.len())?).copied()
    }
}

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
        let mut scope = Scope {
            variables: vec![(CS::one(), Some(Scalar::ONE))],
            bits: vec![],
        };
        ops.iter().try_for_each(|op| self.step(cs, op, &mut scope))
    }

    fn step<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        op: &Op,
        scope: &mut Scope,
    ) -> Result<(), SynthesisError> {
        let name = self.name();
        let known = |value: u64| (!self.blank).then(|| Scalar::from(value));
        let variables = &mut scope.variables;
        match op {
            Op::Aux(value) => alloc(cs, name, known(*value), variables),
            Op::Input(value) => {
                let value = known(*value);
                let variable = cs.alloc_input(|| name, || value.ok_or(MISSING))?;
                variables.push((variable, value));
                Ok(())
            }
            Op::Mul(x, y) => {
                let pick = |at: &usize| variables[at % variables.len()];
                let (x, y) = (pick(x), pick(y));
                alloc(cs, name, x.1.zip(y.1).map(|(x, y)| x * y), variables)?;
                let z = variables[variables.len() - 1].0;
                let row = self.name();
                cs.enforce(|| row, |lc| lc + x.0, |lc| lc + y.0, |lc| lc + z);
                Ok(())
            }
            Op::Row([a, b, c]) => {
                let sum = |lc, terms| add(lc, terms, variables);
                cs.enforce(|| name, |lc| sum(lc, a), |lc| sum(lc, b), |lc| sum(lc, c));
                Ok(())
            }
            Op::Bits(bits) => bits.iter().try_for_each(|&bit| self.bit(cs, bit, scope)),
            Op::Gate(gate, bits, times) => (0..*times)
                .try_for_each(|k| self.gate(cs, *gate, bits.map(|bit| bit.wrapping_add(k)), scope)),
            Op::Pack {
                start,
                length,
                gap,
                lowest_first,
            } => self.pack(cs, [*start, *length, *gap], *lowest_first, scope),
            Op::Loop(ops, times) => {
                (0..*times).try_for_each(|_| ops.iter().try_for_each(|op| self.step(cs, op, scope)))
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

    fn name(&mut self) -> String {
        self.names += 1;
        self.names.to_string()
    }

    fn bit<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        bit: bool,
        scope: &mut Scope,
    ) -> Result<(), SynthesisError> {
        let x = self.alloc_bit(cs, Some(bit), scope)?;
        let row = self.name();
        cs.enforce(|| row, |lc| lc + CS::one() - x, |lc| lc + x, |lc| lc);
        Ok(())
    }

    fn alloc_bit<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        bit: Option<bool>,
        scope: &mut Scope,
    ) -> Result<Variable, SynthesisError> {
        let bit = bit.filter(|_| !self.blank);
        let value = bit.map(|bit| Scalar::from(u64::from(bit)));
        let name = self.name();
        let variable = cs.alloc(|| name, || value.ok_or(MISSING))?;
        scope.bits.push((variable, bit));
        Ok(variable)
    }

    /// The rows of the usual gadgets, as one finds them in the literature.
    fn gate<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        gate: Gate,
        bits: [usize; 3],
        scope: &mut Scope,
    ) -> Result<(), SynthesisError> {
        let [Some((x, xv)), Some((y, yv)), Some((z, zv))] = bits.map(|bit| scope.bit(bit)) else {
            return Ok(());
        };
        let one = CS::one();
        let two = Scalar::from(2);
        let value = |f: fn(bool, bool, bool) -> bool| Some(f(xv?, yv?, zv?));
        let row = self.name();
        match gate {
            Gate::And => {
                let out = self.alloc_bit(cs, value(|x, y, _| x & y), scope)?;
                cs.enforce(|| row, |lc| lc + x, |lc| lc + y, |lc| lc + out);
            }
            Gate::Nor => {
                let out = self.alloc_bit(cs, value(|x, y, _| !x & !y), scope)?;
                cs.enforce(|| row, |lc| lc + one - x, |lc| lc + one - y, |lc| lc + out);
            }
            Gate::Xor => {
                let out = self.alloc_bit(cs, value(|x, y, _| x ^ y), scope)?;
                cs.enforce(
                    || row,
                    |lc| lc + (two, x),
                    |lc| lc + y,
                    |lc| lc + x + y - out,
                );
            }
            Gate::Choice => {
                let out = self.alloc_bit(cs, value(|x, y, z| if x { y } else { z }), scope)?;
                cs.enforce(|| row, |lc| lc + y - z, |lc| lc + x, |lc| lc + out - z);
            }
            Gate::Majority => {
                let yz = self.alloc_bit(cs, value(|_, y, z| y & z), scope)?;
                cs.enforce(|| row, |lc| lc + y, |lc| lc + z, |lc| lc + yz);
                let majority = value(|x, y, z| x & y | y & z | z & x);
                let out = self.alloc_bit(cs, majority, scope)?;
                let row = self.name();
                cs.enforce(
                    || row,
                    |lc| lc + (two, yz) - y - z,
                    |lc| lc + x,
                    |lc| lc + yz - out,
                );
            }
        }
        Ok(())
    }

    fn pack<CS: ConstraintSystem<Scalar>>(
        &mut self,
        cs: &mut CS,
        [start, length, gap]: [usize; 3],
        lowest_first: bool,
        scope: &mut Scope,
    ) -> Result<(), SynthesisError> {
        let start = start.checked_rem(scope.bits.len()).unwrap_or(0);
        let bits = &scope.bits[start..(start + length).min(scope.bits.len())];
        let bits: Vec<_> = bits.iter().step_by(gap).collect();
        let weight = |k: usize| {
            let exponent = if lowest_first { k } else { bits.len() - 1 - k };
            Scalar::from(2).pow_vartime([exponent as u64])
        };
        let weighted = || bits.iter().enumerate().map(|(k, bit)| (weight(k), bit));
        let value = weighted().try_fold(Scalar::ZERO, |sum, (weight, (_, bit))| {
            Some(if (*bit)? { sum + weight } else { sum })
        });
        let name = self.name();
        alloc(cs, name, value, &mut scope.variables)?;
        let packed = scope.variables[scope.variables.len() - 1].0;
        let sum = |lc| weighted().fold(lc, |lc, (weight, (bit, _))| lc + (weight, *bit));
        let row = self.name();
        cs.enforce(|| row, sum, |lc| lc + CS::one(), |lc| lc + packed);
        Ok(())
    }
}

const MISSING: SynthesisError = SynthesisError::AssignmentMissing;

fn alloc<CS: ConstraintSystem<Scalar>>(
    cs: &mut CS,
    name: String,
    value: Option<Scalar>,
    variables: &mut Vec<Known>,
) -> Result<(), SynthesisError> {
    let variable = cs.alloc(|| name, || value.ok_or(MISSING))?;
    variables.push((variable, value));
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
    prop::collection::vec(op(), 0..24).prop_map(|ops| RandomCircuit { ops, blank: false })
}

/// A circuit as of [`random_circuit`], and the same with a step more, less, or another.
pub(crate) fn random_change() -> impl Strategy<Value = (RandomCircuit, RandomCircuit)> {
    let place = any::<prop::sample::Index>();
    (random_circuit(), place, 0..2usize, prop::option::of(op())).prop_map(
        |(circuit, place, removed, added)| {
            let mut changed = circuit.clone();
            let at = place.index(circuit.ops.len() + 1);
            let end = (at + removed).min(circuit.ops.len());
            changed.ops.splice(at..end, added);
            (circuit, changed)
        },
    )
}

/// Circuits of free rows, no two of which look alike: some hundred distinct
/// coefficients and columns.
pub(crate) fn unrepetitive_circuit() -> impl Strategy<Value = RandomCircuit> {
    let terms = || prop::collection::vec((any::<usize>(), any::<i8>(), 0..250u64), 0..8);
    let row = [terms(), terms(), terms()].prop_map(|parts| {
        Op::Row(parts.map(|terms| {
            let term = |(variable, factor, shift)| Term {
                variable,
                factor,
                shift,
            };
            terms.into_iter().map(term).collect()
        }))
    });
    let step = prop_oneof![any::<u64>().prop_map(Op::Aux), row];
    prop::collection::vec(step, 0..300).prop_map(|ops| RandomCircuit { ops, blank: false })
}

fn op() -> impl Strategy<Value = Op> {
    let terms = || prop::collection::vec(term(), 0..5);
    let step = prop_oneof![
        any::<u64>().prop_map(Op::Aux),
        (0..2u64).prop_map(Op::Aux),
        any::<u64>().prop_map(Op::Input),
        (any::<usize>(), any::<usize>()).prop_map(|(x, y)| Op::Mul(x, y)),
        [terms(), terms(), terms()].prop_map(Op::Row),
        prop::collection::vec(any::<bool>(), 0..20).prop_map(Op::Bits),
        (gate(), any::<[usize; 3]>(), 1..8usize)
            .prop_map(|(gate, bits, times)| Op::Gate(gate, bits, times)),
        (any::<usize>(), 0..260usize, 1..3usize, any::<bool>()).prop_map(
            |(start, length, gap, lowest_first)| Op::Pack {
                start,
                length,
                gap,
                lowest_first,
            }
        ),
    ];
    step.prop_recursive(2, 40, 8, |step| {
        let steps = || prop::collection::vec(step.clone(), 0..8);
        prop_oneof![
            steps().prop_map(Op::Group),
            (steps(), 1..4usize).prop_map(|(steps, times)| Op::Loop(steps, times)),
        ]
    })
}

fn gate() -> impl Strategy<Value = Gate> {
    use Gate::*;
    prop::sample::select(vec![And, Nor, Xor, Choice, Majority])
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
