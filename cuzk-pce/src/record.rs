//! Recording: from a blank circuit to its rows.
//!
//! A constraint system that keeps rows and no values: no value closure is
//! ever called, so a circuit without a witness can be recorded. It is not a
//! witness generator and does not judge the circuit.
//!
//! Invariant: rows, variables and their order are those that bellperson's
//! prover and parameter generator see. In particular
//! - the constant ONE is input 0;
//! - it is extensible, and [`ConstraintSystem::extend`] drops the child's
//!   first input, its temporary ONE, in favour of its own;
//! - `LinearCombination` has already added up the terms of one variable. A term whose sum
//!   is zero is no term: the prover skips it when it counts densities, and the generator
//!   finds nothing at its column.
//!
//! The number of inputs is known only at the end, because inputs and rows
//! interleave. Until then a column is a [`Tagged`] index.

use crate::{
    csr::{CsrError, CsrMatrix},
    r1cs::{R1cs, variables},
};
use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use cuzk_memory::Stopped;
use ff::PrimeField;

/// Why a circuit could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The circuit itself gave up.
    #[error("the circuit could not be synthesised without a witness: {0}")]
    Synthesis(#[from] SynthesisError),
    /// The circuit names variables it never allocated, or is too large.
    #[error("the circuit's rows are not a constraint system: {0}")]
    Rows(#[from] CsrError),
    /// The checkpoint stopped it.
    #[error("stopped")]
    Stopped,
}

impl From<Stopped> for RecordError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Records the rows of `circuit`, which need not have a witness.
///
/// The rows `inputᵢ · 0 = 0` that Groth16 appends are not among them.
///
/// # Errors
/// [`RecordError::Synthesis`] if the circuit fails. [`RecordError::Rows`] if it has more
/// variables or nonzeros than 32 bits can number, or names a variable that it did not
/// allocate.
pub fn record<S: PrimeField, C: Circuit<S>>(circuit: C) -> Result<R1cs<S>, RecordError> {
    let mut cs = Recorder::new();
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    Ok(cs.finish()?)
}

/// An input or auxiliary index in 32 bits: the top bit marks auxiliaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tagged(u32);

const AUX_BIT: u32 = 1 << 31;

/// The greatest index of 31 bits.
const INDEX_MAX: usize = (AUX_BIT - 1) as usize;

impl Tagged {
    fn new(index: usize, tag: u32) -> Result<Self, CsrError> {
        match u32::try_from(index) {
            Ok(i) if i < AUX_BIT => Ok(Tagged(i | tag)),
            _ => Err(CsrError::TooLarge {
                what: "variable index",
                got: index,
                limit: INDEX_MAX,
            }),
        }
    }

    fn is_aux(self) -> bool {
        self.0 & AUX_BIT != 0
    }

    fn index(self) -> u32 {
        self.0 & !AUX_BIT
    }
}

/// One matrix while it grows.
#[derive(Debug)]
struct GrowingMatrix<S> {
    row_ends: Vec<u32>,
    cols: Vec<Tagged>,
    values: Vec<S>,
}

impl<S: PrimeField> GrowingMatrix<S> {
    fn new() -> Self {
        GrowingMatrix {
            row_ends: Vec::new(),
            cols: Vec::new(),
            values: Vec::new(),
        }
    }

    fn push_row(&mut self, lc: &LinearCombination<S>) -> Result<(), CsrError> {
        for (&index, value) in lc.iter_inputs() {
            self.push_term(Tagged::new(index, 0)?, value);
        }
        for (&index, value) in lc.iter_aux() {
            self.push_term(Tagged::new(index, AUX_BIT)?, value);
        }
        let end = to_u32("nonzeros", self.cols.len())?;
        self.row_ends.push(end);
        Ok(())
    }

    fn push_term(&mut self, col: Tagged, value: &S) {
        if !value.is_zero_vartime() {
            self.cols.push(col);
            self.values.push(*value);
        }
    }

    /// Appends the rows of a child whose variables follow `inputs` inputs
    /// (ONE shared) and `aux` auxiliaries of this one.
    fn extend(&mut self, child: &Self, inputs: usize, aux: usize) -> Result<(), CsrError> {
        let before = to_u32("nonzeros", self.cols.len())?;
        to_u32("nonzeros", self.cols.len() + child.cols.len())?;
        for &col in &child.cols {
            let index = col.index() as usize;
            self.cols.push(match (col.is_aux(), index) {
                (true, _) => Tagged::new(index + aux, AUX_BIT)?,
                (false, 0) => col,
                (false, _) => Tagged::new(index - 1 + inputs, 0)?,
            });
        }
        self.values.extend_from_slice(&child.values);
        self.row_ends
            .extend(child.row_ends.iter().map(|end| end + before));
        Ok(())
    }

    fn finish(self, num_inputs: u32, num_aux: u32) -> Result<CsrMatrix<S>, CsrError> {
        let num_cols = variables(num_inputs, num_aux)?;
        let mut row_ptrs = self.row_ends;
        row_ptrs.insert(0, 0);
        let mut cols = Vec::with_capacity(self.cols.len());
        for col in self.cols {
            // An input past the last must not pass for an auxiliary.
            cols.push(match (col.is_aux(), col.index()) {
                (true, aux) => aux.saturating_add(num_inputs),
                (false, input) if input < num_inputs => input,
                (false, _) => u32::MAX,
            });
        }
        CsrMatrix::new(num_cols, row_ptrs, cols, self.values)
    }
}

fn to_u32(what: &'static str, got: usize) -> Result<u32, CsrError> {
    u32::try_from(got).map_err(|_| CsrError::TooLarge {
        what,
        got,
        limit: u32::MAX as usize,
    })
}

/// The constraint system that [`record`] hands to a circuit.
#[derive(Debug)]
struct Recorder<S> {
    num_inputs: usize,
    num_aux: usize,
    a: GrowingMatrix<S>,
    b: GrowingMatrix<S>,
    c: GrowingMatrix<S>,
    /// `enforce` cannot fail, so the first failure waits here for the end.
    failed: Option<CsrError>,
}

impl<S: PrimeField> Recorder<S> {
    fn finish(self) -> Result<R1cs<S>, CsrError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let num_inputs = to_u32("inputs", self.num_inputs)?;
        let num_aux = to_u32("auxiliary variables", self.num_aux)?;
        R1cs::new(
            self.a.finish(num_inputs, num_aux)?,
            self.b.finish(num_inputs, num_aux)?,
            self.c.finish(num_inputs, num_aux)?,
            num_inputs,
            num_aux,
        )
    }

    fn keep_first_failure(&mut self, result: Result<(), CsrError>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }
}

impl<S: PrimeField> ConstraintSystem<S> for Recorder<S> {
    type Root = Self;

    fn new() -> Self {
        Recorder {
            num_inputs: 0,
            num_aux: 0,
            a: GrowingMatrix::new(),
            b: GrowingMatrix::new(),
            c: GrowingMatrix::new(),
            failed: None,
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.num_aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.num_aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.num_inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.num_inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        if self.failed.is_some() {
            return;
        }
        let pushed = self
            .a
            .push_row(&a(LinearCombination::zero()))
            .and_then(|()| self.b.push_row(&b(LinearCombination::zero())))
            .and_then(|()| self.c.push_row(&c(LinearCombination::zero())));
        self.keep_first_failure(pushed);
    }

    crate::nameless::nameless!();

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, child: &Self) {
        let (inputs, aux) = (self.num_inputs, self.num_aux);
        let extended = match child.failed.clone() {
            Some(error) => Err(error),
            None => self
                .a
                .extend(&child.a, inputs, aux)
                .and_then(|()| self.b.extend(&child.b, inputs, aux))
                .and_then(|()| self.c.extend(&child.c, inputs, aux)),
        };
        self.keep_first_failure(extended);
        self.num_inputs += child.num_inputs.saturating_sub(1);
        self.num_aux += child.num_aux;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RandomCircuit, random_circuit};
    use bellpepper_core::Comparable;
    use bellperson::util_cs::test_cs::TestConstraintSystem;
    use blstrs::Scalar;
    use ff::Field;
    use proptest::prelude::*;

    /// The terms of a row as bellperson's own constraint system holds them.
    fn terms(lc: &LinearCombination<Scalar>, num_inputs: usize) -> Vec<(usize, Scalar)> {
        lc.iter()
            .filter(|(_, value)| !value.is_zero_vartime())
            .map(|(variable, value)| match variable.get_unchecked() {
                Index::Input(i) => (i, *value),
                Index::Aux(i) => (i + num_inputs, *value),
            })
            .collect()
    }

    fn row_terms(m: &CsrMatrix<Scalar>, row: usize) -> Vec<(usize, Scalar)> {
        let row = m.row(row).unwrap();
        let cols = row.cols.iter().map(|&col| col as usize);
        cols.zip(row.values.iter().copied()).collect()
    }

    proptest! {
        /// Rows and variables are bellperson's, although this system takes
        /// the circuit's extensible branch and bellperson's does not.
        #[test]
        fn records_what_bellperson_sees(circuit in random_circuit()) {
            let r1cs = record(circuit.blank()).unwrap();
            let mut theirs = TestConstraintSystem::new();
            circuit.synthesize(&mut theirs).unwrap();
            prop_assert_eq!(r1cs.num_inputs(), theirs.num_inputs());
            prop_assert_eq!(r1cs.num_aux(), theirs.aux().len());
            prop_assert_eq!(r1cs.rows(), theirs.num_constraints());
            for (i, (a, b, c, _)) in theirs.constraints().iter().enumerate() {
                let inputs = r1cs.num_inputs();
                prop_assert_eq!(row_terms(r1cs.a(), i), terms(a, inputs));
                prop_assert_eq!(row_terms(r1cs.b(), i), terms(b, inputs));
                prop_assert_eq!(row_terms(r1cs.c(), i), terms(c, inputs));
            }
        }
    }

    struct Names(Index);

    impl Circuit<Scalar> for Names {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            cs.alloc(|| "aux", || Err(SynthesisError::AssignmentMissing))?;
            let variable = Variable::new_unchecked(self.0);
            cs.enforce(|| "row", |lc| lc + variable, |lc| lc, |lc| lc);
            Ok(())
        }
    }

    #[test]
    fn refuses_a_variable_that_was_never_allocated() {
        assert!(record(Names(Index::Aux(0))).is_ok());
        assert!(record(Names(Index::Input(0))).is_ok());
        for index in [
            Index::Input(1),
            Index::Aux(1),
            Index::Input(INDEX_MAX),
            Index::Aux(INDEX_MAX),
        ] {
            assert!(matches!(
                record(Names(index)),
                Err(RecordError::Rows(CsrError::ColumnOutOfRange { row: 0, .. }))
            ));
        }
        assert!(matches!(
            record(Names(Index::Aux(INDEX_MAX + 1))),
            Err(RecordError::Rows(CsrError::TooLarge { .. }))
        ));
    }

    #[test]
    fn a_failing_circuit_is_an_error() {
        assert!(matches!(
            record(RandomCircuit::failing()),
            Err(RecordError::Synthesis(SynthesisError::Unsatisfiable))
        ));
    }
}
