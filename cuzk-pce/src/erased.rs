//! A circuit of any type, behind one type.
//!
//! A compiler translates a circuit once for each constraint system that it is synthesised in.
//! Filecoin's circuits are large and in three shapes each, and this crate has several systems. An
//! [`ErasedCircuit`] is translated for one system, which passes each call on to the real one.
//!
//! Not for a system that can be extended: its children would need to know the real one. A circuit
//! that synthesises parts in children where it can does so in place here.
//!
//! Invariant: the real system sees the calls of the circuit, all of them and in their order.

use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

/// A circuit whose type is not known to who synthesises it.
pub struct ErasedCircuit<'a, S: PrimeField>(Box<dyn Synthesize<S> + Send + 'a>);

impl<'a, S: PrimeField> ErasedCircuit<'a, S> {
    /// Takes a circuit.
    pub fn new<C: Circuit<S> + Send + 'a>(circuit: C) -> Self {
        Self(Box::new(circuit))
    }
}

impl<S: PrimeField> Circuit<S> for ErasedCircuit<'_, S> {
    fn synthesize<CS: ConstraintSystem<S>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        self.0.synthesize_in(&mut Relay(cs.get_root()))
    }
}

/// [`Circuit`] for one system, so that a circuit can be a trait object.
trait Synthesize<S: PrimeField> {
    fn synthesize_in(self: Box<Self>, cs: &mut Relay<'_, S>) -> Result<(), SynthesisError>;
}

impl<S: PrimeField, C: Circuit<S>> Synthesize<S> for C {
    fn synthesize_in(self: Box<Self>, cs: &mut Relay<'_, S>) -> Result<(), SynthesisError> {
        (*self).synthesize(cs)
    }
}

type Name<'a> = &'a mut dyn FnMut() -> String;
type Value<'a, S> = &'a mut dyn FnMut() -> Result<S, SynthesisError>;
type Terms<'a, S> = &'a mut dyn FnMut(LinearCombination<S>) -> LinearCombination<S>;

/// The methods of a [`ConstraintSystem`] that a circuit calls, without generics. A function is
/// called once at most: the second call gives an empty name, no value, or no terms.
trait System<S: PrimeField>: Send {
    fn alloc(&mut self, name: Name<'_>, value: Value<'_, S>) -> Result<Variable, SynthesisError>;
    fn alloc_input(
        &mut self,
        name: Name<'_>,
        value: Value<'_, S>,
    ) -> Result<Variable, SynthesisError>;
    fn enforce(&mut self, name: Name<'_>, terms: [Terms<'_, S>; 3]);
    fn push_namespace(&mut self, name: Name<'_>);
    fn pop_namespace(&mut self);
}

impl<S: PrimeField, CS: ConstraintSystem<S>> System<S> for CS {
    fn alloc(&mut self, name: Name<'_>, value: Value<'_, S>) -> Result<Variable, SynthesisError> {
        ConstraintSystem::alloc(self, name, value)
    }

    fn alloc_input(
        &mut self,
        name: Name<'_>,
        value: Value<'_, S>,
    ) -> Result<Variable, SynthesisError> {
        ConstraintSystem::alloc_input(self, name, value)
    }

    fn enforce(&mut self, name: Name<'_>, [a, b, c]: [Terms<'_, S>; 3]) {
        ConstraintSystem::enforce(self, name, a, b, c);
    }

    fn push_namespace(&mut self, name: Name<'_>) {
        ConstraintSystem::push_namespace(self, name);
    }

    fn pop_namespace(&mut self) {
        ConstraintSystem::pop_namespace(self);
    }
}

/// The one system that an erased circuit is synthesised in.
struct Relay<'a, S: PrimeField>(&'a mut dyn System<S>);

impl<S: PrimeField> ConstraintSystem<S> for Relay<'_, S> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, name: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.0.alloc(&mut once(name), &mut once_valued(value))
    }

    fn alloc_input<F, A, AR>(&mut self, name: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.0.alloc_input(&mut once(name), &mut once_valued(value))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, name: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        let terms: [Terms<'_, S>; 3] = [
            &mut once_summed(a),
            &mut once_summed(b),
            &mut once_summed(c),
        ];
        self.0.enforce(&mut once(name), terms);
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.0.push_namespace(&mut once(name));
    }

    fn pop_namespace(&mut self) {
        self.0.pop_namespace();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

fn once<T: Into<String>>(name: impl FnOnce() -> T) -> impl FnMut() -> String {
    let mut name = Some(name);
    move || name.take().map_or_else(String::new, |name| name().into())
}

fn once_valued<S>(
    value: impl FnOnce() -> Result<S, SynthesisError>,
) -> impl FnMut() -> Result<S, SynthesisError> {
    let mut value = Some(value);
    move || value.take().ok_or(SynthesisError::AssignmentMissing)?()
}

fn once_summed<S: PrimeField>(
    terms: impl FnOnce(LinearCombination<S>) -> LinearCombination<S>,
) -> impl FnMut(LinearCombination<S>) -> LinearCombination<S> {
    let mut terms = Some(terms);
    move |sum| match terms.take() {
        Some(terms) => terms(sum),
        None => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{compile, packed_witness, record, row_name};
    use bellperson::util_cs::test_cs::TestConstraintSystem;
    use blstrs::Scalar;
    use proptest::prelude::*;

    /// Synthesises a circuit in a namespace, as a gadget is.
    struct Inside<C>(C);

    impl<C: Circuit<Scalar>> Circuit<Scalar> for Inside<C> {
        fn synthesize<CS>(self, cs: &mut CS) -> Result<(), SynthesisError>
        where
            CS: ConstraintSystem<Scalar>,
        {
            self.0.synthesize(&mut cs.namespace(|| "inside"))
        }
    }

    /// Everything that a system of tests keeps: names, values and rows.
    fn seen(circuit: impl Circuit<Scalar>) -> (Result<(), String>, String, bool) {
        let mut system = TestConstraintSystem::new();
        let end = circuit.synthesize(&mut system).map_err(|e| e.to_string());
        (end, system.pretty_print(), system.is_satisfied())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_system_sees_the_circuit(circuit in random_circuit()) {
            let erased = || ErasedCircuit::new(circuit.clone());
            prop_assert_eq!(seen(Inside(erased())), seen(Inside(circuit.clone())));
            prop_assert_eq!(packed_witness(erased()).ok(), packed_witness(circuit.clone()).ok());
        }

        #[test]
        fn a_blank_circuit_has_the_same_rows(circuit in random_circuit(), row in 0..20_usize) {
            let erased = || ErasedCircuit::new(circuit.blank());
            prop_assert_eq!(record(erased()).ok(), record(circuit.blank()).ok());
            prop_assert_eq!(
                compile(erased()).ok().map(|program| program.fingerprint()),
                compile(circuit.blank()).ok().map(|program| program.fingerprint())
            );
            prop_assert_eq!(
                row_name::<Scalar, _>(erased(), row).ok(),
                row_name::<Scalar, _>(circuit.blank(), row).ok()
            );
        }
    }
}
