//! The values of a circuit's rows as bellperson's prover evaluates them, digested.
//!
//! bellperson's prover keeps A·w, B·w, C·w and the witness w of a circuit. These are 128 bytes for
//! a row with a variable of its own, and 16 GB for a PoRep of 32 GiB. The constraint system here
//! evaluates the same sums of the same synthesis, and keeps the witness only.
//!
//! It is a tool for tests: it evaluates one row after the other, from the linear combinations
//! that the circuit builds. It is no way to prove.
//!
//! Invariant: rows are digested in the order of bellperson's prover. The rows of a child follow
//! those of its parent when it extends it, and those of the inputs come last.

use crate::{cell::Violation, digest::Digest};
use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

/// The result of [`digest_circuit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestedCircuit<S> {
    /// Public inputs, ONE among them.
    pub inputs: Digest<S>,
    /// Auxiliary variables.
    pub aux: Digest<S>,
    /// A·w, then the inputs: the rows `inputᵢ · 0 = 0` that Groth16 appends.
    pub a: Digest<S>,
    /// B·w, then a zero for each input.
    pub b: Digest<S>,
    /// C·w, then a zero for each input.
    pub c: Digest<S>,
    /// The first violation, and its row from 0. It is a row that does not hold, or one that
    /// names a variable before it is allocated; such a row counts as zeros.
    pub violation: Option<(usize, Violation)>,
}

/// Synthesises `circuit` as bellperson's prover does. It evaluates each row with bellperson's
/// linear combinations as it is enforced, over the variables that were allocated so far. It takes
/// 32 bytes a variable, and twice that while parts of the circuit are joined.
///
/// # Errors
/// The circuit's own error.
pub fn digest_circuit<S: PrimeField, C: Circuit<S>>(
    circuit: C,
) -> Result<DigestedCircuit<S>, SynthesisError> {
    let mut cs = DigestingCs::new();
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    for input in 0..cs.inputs.len() {
        let input = Variable::new_unchecked(Index::Input(input));
        cs.enforce(|| "", |lc| lc + input, |lc| lc, |lc| lc);
    }
    let [a, b, c] = cs.products;
    Ok(DigestedCircuit {
        inputs: Digest::of(cs.inputs.len(), |at| cs.inputs[at]),
        aux: Digest::of(cs.aux.len(), |at| cs.aux[at]),
        a,
        b,
        c,
        violation: cs.violation,
    })
}

/// The constraint system that [`digest_circuit`] hands to a circuit.
struct DigestingCs<S> {
    inputs: Vec<S>,
    aux: Vec<S>,
    /// Of the rows so far: A·w, B·w and C·w.
    products: [Digest<S>; 3],
    /// `enforce` cannot fail, so the first violation waits here for the end.
    violation: Option<(usize, Violation)>,
}

impl<S: PrimeField> DigestingCs<S> {
    /// Returns the value of a sum.
    ///
    /// # Errors
    /// [`Violation::NotAllocated`].
    fn sum(&self, terms: &LinearCombination<S>) -> Result<S, Violation> {
        let (inputs, aux) = (self.inputs.len(), self.aux.len());
        let is_missing = |(variable, _): &(Variable, &S)| match variable.get_unchecked() {
            Index::Input(at) => at >= inputs,
            Index::Aux(at) => at >= aux,
        };
        match terms.iter().find(is_missing) {
            None => Ok(terms.eval(&self.inputs, &self.aux)),
            Some((variable, _)) => {
                let variable = variable.get_unchecked();
                let allocated = match variable {
                    Index::Input(_) => inputs,
                    Index::Aux(_) => aux,
                };
                Err(Violation::NotAllocated {
                    variable,
                    allocated,
                })
            }
        }
    }

    /// Returns the values of the three sums of a row that holds.
    ///
    /// # Errors
    /// The violation, with the values that are to be digested.
    fn row(&self, terms: [LinearCombination<S>; 3]) -> Result<[S; 3], (Violation, [S; 3])> {
        let mut values = [S::ZERO; 3];
        for (value, terms) in values.iter_mut().zip(&terms) {
            *value = self
                .sum(terms)
                .map_err(|violation| (violation, [S::ZERO; 3]))?;
        }
        let [a, b, c] = values;
        if a * b == c {
            Ok(values)
        } else {
            Err((Violation::Unsatisfied, values))
        }
    }
}

impl<S: PrimeField> ConstraintSystem<S> for DigestingCs<S> {
    type Root = Self;

    fn new() -> Self {
        DigestingCs {
            inputs: Vec::new(),
            aux: Vec::new(),
            products: [Digest::new(); 3],
            violation: None,
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

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        let terms = [
            a(LinearCombination::zero()),
            b(LinearCombination::zero()),
            c(LinearCombination::zero()),
        ];
        let values = self.row(terms).unwrap_or_else(|(violation, values)| {
            let row = self.products[0].count();
            self.violation.get_or_insert((row, violation));
            values
        });
        for (product, value) in self.products.iter_mut().zip(values) {
            product.push(value);
        }
    }

    crate::nameless::nameless!();

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, child: &Self) {
        if let Some((row, violation)) = child.violation {
            let row = self.products[0].count() + row;
            self.violation.get_or_insert((row, violation));
        }
        for (product, childs) in self.products.iter_mut().zip(&child.products) {
            product.append(childs);
        }
        // The child's first input is its temporary ONE.
        self.inputs.extend(child.inputs.iter().skip(1));
        self.aux.extend_from_slice(&child.aux);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        naive::{check, spmv},
        record::record,
        testing::{RandomCircuit, random_circuit},
    };
    use blstrs::Scalar;
    use ff::Field;
    use proptest::prelude::*;

    fn digest(scalars: &[Scalar]) -> Digest<Scalar> {
        Digest::of(scalars.len(), |at| scalars[at])
    }

    proptest! {
        /// The oracle multiplies the recorded rows with the witness.
        #[test]
        fn products_are_those_of_the_recorded_rows(circuit in random_circuit()) {
            let rows = record(circuit.blank()).unwrap();
            let witness = crate::witness(circuit.clone()).unwrap();
            let digested = digest_circuit(circuit).unwrap();
            let product = |matrix, of_inputs: &[Scalar]| {
                let mut product = spmv(matrix, witness.values()).unwrap();
                product.extend_from_slice(of_inputs);
                digest(&product)
            };
            let zeros = vec![Scalar::ZERO; witness.num_inputs()];
            prop_assert_eq!(digested.inputs, digest(witness.inputs()));
            prop_assert_eq!(digested.aux, digest(witness.aux()));
            prop_assert_eq!(digested.a, product(rows.a(), witness.inputs()));
            prop_assert_eq!(digested.b, product(rows.b(), &zeros));
            prop_assert_eq!(digested.c, product(rows.c(), &zeros));
            let expected = check(&rows, &witness).unwrap();
            let expected = expected.map(|row| (row, Violation::Unsatisfied));
            prop_assert_eq!(digested.violation, expected);
        }
    }

    /// Enforces a row over the auxiliary variable `.0`, and allocates one after it.
    struct Early(usize);

    impl Circuit<Scalar> for Early {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            cs.alloc(|| "first", || Ok(Scalar::ZERO))?;
            let variable = Variable::new_unchecked(Index::Aux(self.0));
            cs.enforce(|| "row", |lc| lc + variable, |lc| lc, |lc| lc);
            cs.alloc(|| "second", || Ok(Scalar::ONE))?;
            Ok(())
        }
    }

    #[test]
    fn a_variable_that_is_named_before_it_is_allocated_is_a_violation() {
        assert_eq!(digest_circuit(Early(0)).unwrap().violation, None);
        let violation = Violation::NotAllocated {
            variable: Index::Aux(1),
            allocated: 1,
        };
        let digested = digest_circuit(Early(1)).unwrap();
        assert_eq!(digested.violation, Some((0, violation)));
    }

    #[test]
    fn a_failing_circuit_is_an_error() {
        let failed = digest_circuit(RandomCircuit::failing());
        assert!(matches!(failed, Err(SynthesisError::Unsatisfiable)));
    }
}
