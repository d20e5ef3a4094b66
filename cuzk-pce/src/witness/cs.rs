//! A constraint system that keeps values and ignores rows.
//!
//! It declares itself a witness generator. So gadgets that can compute their values
//! natively, such as Poseidon, build no rows. They write the values into the space that
//! [`ConstraintSystem::allocate_empty`] lends.
//!
//! Invariant: values stand in the order of allocation, inputs and auxiliaries
//! apart. A new system is empty: whoever makes one allocates ONE first, the
//! root for good and a child temporarily, and `extend` drops the child's.

use super::{Witness, WitnessError};
use bellperson::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

/// A drop-in constraint system that computes a witness.
///
/// [`crate::witness()`] is the way to use it on a circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessCs<S> {
    inputs: Vec<S>,
    aux: Vec<S>,
}

impl<S: PrimeField> WitnessCs<S> {
    /// The witness, once the circuit has been synthesised.
    ///
    /// # Errors
    /// [`WitnessError::NotOne`] if ONE was not allocated first.
    pub fn finish(self) -> Result<Witness<S>, WitnessError> {
        let WitnessCs { inputs, aux } = self;
        let num_inputs = inputs.len();
        let mut values = aux;
        values.splice(0..0, inputs);
        Witness::new(values, num_inputs)
    }
}

/// `count` zeros at the end of `values`, lent to be overwritten.
fn grow<S: PrimeField>(values: &mut Vec<S>, count: usize) -> &mut [S] {
    let start = values.len();
    values.resize(start + count, S::ZERO);
    &mut values[start..]
}

impl<S: PrimeField> ConstraintSystem<S> for WitnessCs<S> {
    type Root = Self;

    fn new() -> Self {
        WitnessCs {
            inputs: Vec::new(),
            aux: Vec::new(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.aux.len() - 1)))
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
        self.inputs.extend(child.inputs.iter().skip(1));
        self.aux.extend_from_slice(&child.aux);
    }

    fn is_witness_generator(&self) -> bool {
        true
    }

    fn extend_inputs(&mut self, values: &[S]) {
        self.inputs.extend_from_slice(values);
    }

    fn extend_aux(&mut self, values: &[S]) {
        self.aux.extend_from_slice(values);
    }

    fn allocate_empty(&mut self, aux: usize, inputs: usize) -> (&mut [S], &mut [S]) {
        (grow(&mut self.aux, aux), grow(&mut self.inputs, inputs))
    }

    fn allocate_empty_inputs(&mut self, count: usize) -> &mut [S] {
        grow(&mut self.inputs, count)
    }

    fn allocate_empty_aux(&mut self, count: usize) -> &mut [S] {
        grow(&mut self.aux, count)
    }

    fn inputs_slice(&self) -> &[S] {
        &self.inputs
    }

    fn aux_slice(&self) -> &[S] {
        &self.aux
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::Field;

    fn scalars(values: &[u64]) -> Vec<Scalar> {
        values.iter().copied().map(Scalar::from).collect()
    }

    fn with_one() -> WitnessCs<Scalar> {
        let mut cs = WitnessCs::new();
        cs.alloc_input(|| "ONE", || Ok(Scalar::ONE)).unwrap();
        cs
    }

    /// A gadget that writes its own values does this.
    #[test]
    fn lends_space_at_the_end() {
        let mut cs = with_one();
        assert!(cs.is_witness_generator());
        cs.alloc(|| "aux", || Ok(Scalar::from(2))).unwrap();
        let (aux, inputs) = cs.allocate_empty(2, 1);
        aux.copy_from_slice(&scalars(&[3, 4]));
        inputs.copy_from_slice(&scalars(&[5]));
        cs.extend_aux(&scalars(&[6]));
        cs.extend_inputs(&scalars(&[7]));
        cs.allocate_empty_aux(1)[0] = Scalar::from(8);
        cs.allocate_empty_inputs(1)[0] = Scalar::from(9);
        assert_eq!(cs.aux_slice(), scalars(&[2, 3, 4, 6, 8]));
        assert_eq!(cs.inputs_slice(), scalars(&[1, 5, 7, 9]));
        let next = cs.alloc(|| "aux", || Ok(Scalar::ZERO)).unwrap();
        assert_eq!(next.get_unchecked(), Index::Aux(5));
        let witness = cs.finish().unwrap();
        assert_eq!(witness.values(), scalars(&[1, 5, 7, 9, 2, 3, 4, 6, 8, 0]));
        assert_eq!(witness.num_inputs(), 4);
    }

    #[test]
    fn a_child_gives_up_its_one() {
        let mut child = with_one();
        child.alloc_input(|| "in", || Ok(Scalar::from(3))).unwrap();
        child.alloc(|| "aux", || Ok(Scalar::from(4))).unwrap();
        let mut cs = with_one();
        cs.alloc(|| "aux", || Ok(Scalar::from(2))).unwrap();
        cs.extend(&child);
        cs.extend(&WitnessCs::new());
        let witness = cs.finish().unwrap();
        assert_eq!(witness.inputs(), scalars(&[1, 3]));
        assert_eq!(witness.aux(), scalars(&[2, 4]));
    }

    #[test]
    fn one_must_have_been_allocated() {
        let empty = WitnessCs::<Scalar>::new();
        assert!(matches!(empty.finish(), Err(WitnessError::NotOne)));
    }
}
