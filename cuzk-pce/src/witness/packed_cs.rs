//! A constraint system that packs values as they are allocated.
//!
//! It is [`super::WitnessCs`] in a twentieth of the memory. A gadget that writes its own
//! values is lent a staging area, which is packed with the next operation. Nothing else is
//! held at full width, unless a caller asks for all auxiliaries as a slice.
//!
//! Invariant: what is packed, followed by what is staged, are the values in
//! the order of allocation.

use super::{PackedBuilder, PackedWitness, WitnessError};
use bellperson::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;
use std::cell::OnceCell;

/// A drop-in constraint system that computes a packed witness.
///
/// [`crate::packed_witness()`] is the way to use it on a circuit.
#[derive(Debug, Clone)]
pub struct PackedWitnessCs<S> {
    inputs: Vec<S>,
    /// Without inputs.
    packed: PackedBuilder<S>,
    /// Lent and not packed yet.
    staged: Vec<S>,
    /// All auxiliaries, for whoever has asked since the last change.
    plain: OnceCell<Vec<S>>,
}

impl<S: PrimeField> PackedWitnessCs<S> {
    /// The witness, once the circuit has been synthesised.
    ///
    /// # Errors
    /// [`WitnessError::NotOne`] if ONE was not allocated first.
    pub fn finish(mut self) -> Result<PackedWitness<S>, WitnessError> {
        self.settle();
        for input in self.inputs {
            self.packed.push_input(input);
        }
        self.packed.finish()
    }

    /// Before any change: packs what was staged, and forgets the plain copy.
    fn settle(&mut self) {
        self.plain.take();
        if !self.staged.is_empty() {
            self.packed.extend(&self.staged);
            self.staged.clear();
        }
    }

    fn unpacked(&self) -> Vec<S> {
        let mut values = self.packed.clone().into_witness().to_plain().into_parts().0;
        values.extend_from_slice(&self.staged);
        values
    }
}

/// `count` zeros at the end of `values`, lent to be overwritten.
fn grow<S: PrimeField>(values: &mut Vec<S>, count: usize) -> &mut [S] {
    let start = values.len();
    values.resize(start + count, S::ZERO);
    &mut values[start..]
}

impl<S: PrimeField> ConstraintSystem<S> for PackedWitnessCs<S> {
    type Root = Self;

    fn new() -> Self {
        PackedWitnessCs {
            inputs: Vec::new(),
            packed: PackedBuilder::default(),
            staged: Vec::new(),
            plain: OnceCell::new(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.settle();
        self.packed.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(
            self.packed.num_aux() - 1,
        )))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
    }

    crate::nameless::nameless!();

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, child: &Self) {
        self.settle();
        self.inputs.extend(child.inputs.iter().skip(1));
        self.packed.append(&child.packed);
        self.packed.extend(&child.staged);
    }

    fn is_witness_generator(&self) -> bool {
        true
    }

    fn extend_inputs(&mut self, values: &[S]) {
        self.inputs.extend_from_slice(values);
    }

    fn extend_aux(&mut self, values: &[S]) {
        self.settle();
        self.packed.extend(values);
    }

    fn allocate_empty(&mut self, aux: usize, inputs: usize) -> (&mut [S], &mut [S]) {
        self.settle();
        (grow(&mut self.staged, aux), grow(&mut self.inputs, inputs))
    }

    fn allocate_empty_inputs(&mut self, count: usize) -> &mut [S] {
        grow(&mut self.inputs, count)
    }

    fn allocate_empty_aux(&mut self, count: usize) -> &mut [S] {
        self.settle();
        grow(&mut self.staged, count)
    }

    fn inputs_slice(&self) -> &[S] {
        &self.inputs
    }

    fn aux_slice(&self) -> &[S] {
        self.plain.get_or_init(|| self.unpacked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{WitnessCs, packed_witness, witness};
    use blstrs::Scalar;
    use ff::Field;
    use proptest::prelude::*;

    /// An operation of a gadget or a circuit on a witness generator.
    #[derive(Debug, Clone)]
    enum Op {
        Alloc(u64),
        Input(u64),
        Aux(Vec<u64>),
        Inputs(Vec<u64>),
        Empty(Vec<u64>, Vec<u64>),
        EmptyAux(Vec<u64>),
        EmptyInputs(Vec<u64>),
        Slice,
        Child(Vec<Op>),
    }

    fn op() -> impl Strategy<Value = Op> {
        let values = || prop::collection::vec(0..4u64, 0..70);
        let leaf = prop_oneof![
            (0..4u64).prop_map(Op::Alloc),
            (0..4u64).prop_map(Op::Input),
            values().prop_map(Op::Aux),
            values().prop_map(Op::Inputs),
            (values(), values()).prop_map(|(aux, inputs)| Op::Empty(aux, inputs)),
            values().prop_map(Op::EmptyAux),
            values().prop_map(Op::EmptyInputs),
            Just(Op::Slice),
        ];
        leaf.prop_recursive(2, 20, 6, |op| {
            prop::collection::vec(op, 0..6).prop_map(Op::Child)
        })
    }

    fn scalars(values: &[u64]) -> Vec<Scalar> {
        values.iter().copied().map(Scalar::from).collect()
    }

    /// Runs the operations, and returns their answers.
    fn run<CS: ConstraintSystem<Scalar>>(ops: &[Op], cs: &mut CS) -> Vec<String> {
        let mut answers = Vec::new();
        cs.alloc_input(|| "ONE", || Ok(Scalar::ONE)).unwrap();
        for op in ops {
            match op {
                Op::Alloc(value) => {
                    let variable = cs.alloc(|| "", || Ok(Scalar::from(*value))).unwrap();
                    answers.push(format!("{:?}", variable.get_unchecked()));
                }
                Op::Input(value) => {
                    let variable = cs.alloc_input(|| "", || Ok(Scalar::from(*value))).unwrap();
                    answers.push(format!("{:?}", variable.get_unchecked()));
                }
                Op::Aux(values) => cs.extend_aux(&scalars(values)),
                Op::Inputs(values) => cs.extend_inputs(&scalars(values)),
                Op::Empty(aux, inputs) => {
                    let lent = cs.allocate_empty(aux.len(), inputs.len());
                    lent.0.copy_from_slice(&scalars(aux));
                    lent.1.copy_from_slice(&scalars(inputs));
                }
                Op::EmptyAux(values) => {
                    cs.allocate_empty_aux(values.len())
                        .copy_from_slice(&scalars(values));
                }
                Op::EmptyInputs(values) => {
                    cs.allocate_empty_inputs(values.len())
                        .copy_from_slice(&scalars(values));
                }
                Op::Slice => {
                    answers.push(format!("{:?} {:?}", cs.aux_slice(), cs.inputs_slice()));
                }
                Op::Child(ops) => {
                    let mut child = CS::new();
                    answers.extend(run(ops, &mut child));
                    cs.extend(&child);
                }
            }
        }
        answers
    }

    proptest! {
        #[test]
        fn answers_as_the_plain_one(ops in prop::collection::vec(op(), 0..12)) {
            let mut plain = WitnessCs::<Scalar>::new();
            let mut packed = PackedWitnessCs::<Scalar>::new();
            prop_assert!(plain.is_witness_generator() && packed.is_witness_generator());
            prop_assert_eq!(run(&ops, &mut plain), run(&ops, &mut packed));
            let plain = plain.finish().unwrap();
            prop_assert_eq!(packed.finish().unwrap(), PackedBuilder::pack(&plain));
        }

        #[test]
        fn witnesses_are_the_plain_ones(circuit in random_circuit()) {
            let plain = witness(circuit.clone()).unwrap();
            let packed = packed_witness(circuit).unwrap();
            prop_assert_eq!(packed, PackedBuilder::pack(&plain));
        }
    }

    /// A bit takes itself, a mark that it is not wide, and a share of a rank.
    #[test]
    fn bits_take_bits() {
        let mut cs = PackedWitnessCs::<Scalar>::new();
        cs.alloc_input(|| "ONE", || Ok(Scalar::ONE)).unwrap();
        let count = 100_000;
        for k in 0..count {
            cs.alloc(|| "bit", || Ok(Scalar::from(k % 2))).unwrap();
        }
        assert_eq!(cs.staged.capacity(), 0);
        assert!(cs.finish().unwrap().resident_bytes() < usize::try_from(count).unwrap() / 2);
    }

    #[test]
    fn one_must_have_been_allocated() {
        let empty = PackedWitnessCs::<Scalar>::new();
        assert!(matches!(empty.finish(), Err(WitnessError::NotOne)));
    }
}
