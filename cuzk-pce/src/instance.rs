//! A circuit with its values: one synthesis gives the packed witness and the rows.
//!
//! The rows go to another constraint system, which compiles them or compares them with those
//! of a compiled circuit. Values are packed as in [`PackedWitnessCs`], but the system here is
//! no witness generator: gadgets build all their rows.
//!
//! Invariant: both systems have allocated the same variables.

use crate::{
    program::{Program, RowComparison, ShapeDifference, check_variables, compile_by},
    record::RecordError,
    witness::{Columns, PackedWitness, PackedWitnessCs, WitnessError, packed_witness},
};
use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

/// The reason why an instance of a circuit has no witness or no rows.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// Its values could not be computed.
    #[error(transparent)]
    Witness(#[from] WitnessError),
    /// Its rows could not be compiled.
    #[error(transparent)]
    Rows(#[from] RecordError),
    /// It is not the compiled circuit.
    #[error("the circuit has another shape than the compiled one: {0}")]
    Shape(#[from] ShapeDifference),
}

/// Computes the packed witness of `circuit`, and compares each of its rows with that of
/// `program`. Gadgets build all their rows, which takes longer than the values alone. A
/// circuit with a difference is not synthesised to its end.
///
/// # Errors
/// [`InstanceError::Witness`] if the circuit has no complete witness, and
/// [`InstanceError::Shape`] with the first row that differs.
pub fn packed_witness_of<S: PrimeField, C: Circuit<S>>(
    program: &Program<S>,
    circuit: C,
) -> Result<PackedWitness<S>, InstanceError> {
    let mut rows = RowComparison::new(program);
    let witness = synthesize_beside(circuit, &mut rows);
    // A circuit that was ended by a difference fails for that reason.
    if let Some(difference) = rows.difference() {
        return Err(difference.into());
    }
    let witness = witness?;
    rows.finish()?;
    Ok(witness)
}

/// As [`packed_witness()`], and compares the numbers of variables with those of `program`. Rows
/// are not compared, and gadgets need not build them.
///
/// # Errors
/// [`InstanceError::Witness`] if the circuit has no complete witness, and
/// [`InstanceError::Shape`] without a row.
pub fn counted_witness_of<S: PrimeField, C: Circuit<S>>(
    program: &Program<S>,
    circuit: C,
) -> Result<PackedWitness<S>, InstanceError> {
    let witness = packed_witness(circuit)?;
    check_variables(program, witness.num_inputs(), witness.num_aux())?;
    Ok(witness)
}

/// Compiles `circuit`, which has a witness, and computes that witness in the same synthesis.
///
/// # Errors
/// [`InstanceError::Witness`] if the circuit has no complete witness, and
/// [`InstanceError::Rows`] as [`compile`](crate::compile()).
pub fn compile_with_witness<S: PrimeField, C: Circuit<S>>(
    circuit: C,
) -> Result<(Program<S>, PackedWitness<S>), InstanceError> {
    compile_by(|rows| Ok(synthesize_beside(circuit, rows)?))
}

/// Synthesises `circuit` into both systems, after ONE. `rows` gets no value.
fn synthesize_beside<S: PrimeField, R: ConstraintSystem<S>, C: Circuit<S>>(
    circuit: C,
    rows: &mut R,
) -> Result<PackedWitness<S>, WitnessError> {
    let mut cs = BesideRows {
        values: PackedWitnessCs::new(),
        rows,
    };
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    cs.values.finish()
}

/// A constraint system that packs values while `rows` gets the rows.
struct BesideRows<'r, S, R> {
    values: PackedWitnessCs<S>,
    rows: &'r mut R,
}

fn no_value<S>() -> Result<S, SynthesisError> {
    Err(SynthesisError::AssignmentMissing)
}

impl<S: PrimeField, R: ConstraintSystem<S>> ConstraintSystem<S> for BesideRows<'_, S, R> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.rows.alloc(|| "", no_value)?;
        self.values.alloc(annotation, value)
    }

    fn alloc_input<F, A, AR>(&mut self, annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.rows.alloc_input(|| "", no_value)?;
        self.values.alloc_input(annotation, value)
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        self.rows.enforce(annotation, a, b, c);
    }

    crate::nameless::nameless!();
}

#[cfg(test)]
mod tests;
