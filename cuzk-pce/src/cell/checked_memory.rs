//! A witness in cells, to check a circuit while it is being synthesised.
//!
//! The empty flag says which variables have a value: reading one without is a violation,
//! and so is giving one a second value. The accessed flag says which variables the rows
//! read, which is what a density is. A density belongs to one matrix, and a cell has one
//! flag. So a variable has two cells, one for A and one for B, which fill a cache line.
//! Reads by C leave no mark, because no query is made of C.
//!
//! It is a tool for who writes circuits or witnesses, and for tests. It is no
//! way to make a witness: it evaluates every row, and converts every value
//! that it touches.
//!
//! Invariant: both cells of a variable hold the same value.

use super::{Canonical, MemoryCell, PackedCell, Value};
use crate::density::{Densities, Density};
use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;
use std::fmt;

/// The matrices whose reads are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// The first factor of a row.
    A,
    /// The second factor of a row.
    B,
}

/// An action that no circuit may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A variable's value is used and it has none.
    #[error("{} is read before it has a value", Name(*variable))]
    ReadBeforeWritten {
        /// The variable.
        variable: Index,
    },
    /// A variable that has a value is given another, or the same again.
    #[error("{} is written twice", Name(*variable))]
    WrittenTwice {
        /// The variable.
        variable: Index,
    },
    /// A variable is used that this constraint system never allocated.
    #[error("{} was never allocated; there are {allocated} of its kind", Name(*variable))]
    NotAllocated {
        /// The variable.
        variable: Index,
        /// Inputs or auxiliaries that there are.
        allocated: usize,
    },
    /// The values do not satisfy a row.
    #[error("the product of the first two sums of the row is not the third")]
    Unsatisfied,
}

struct Name(Index);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Index::Input(at) => write!(f, "public input {at}"),
            Index::Aux(at) => write!(f, "auxiliary variable {at}"),
        }
    }
}

/// A variable: its cell for A and its cell for B.
type Pair<S> = [PackedCell<Canonical<S>>; 2];

/// The values of a circuit's variables, where each can be written once, and
/// not be read before.
#[derive(Debug, Clone)]
pub struct CheckedMemory<S> {
    inputs: Vec<Pair<S>>,
    aux: Vec<Pair<S>>,
}

impl<S: PrimeField> Default for CheckedMemory<S> {
    fn default() -> Self {
        CheckedMemory {
            inputs: Vec::new(),
            aux: Vec::new(),
        }
    }
}

impl<S: PrimeField> CheckedMemory<S> {
    /// A memory without variables, not even ONE.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more public input, without a value.
    pub fn declare_input(&mut self) -> Variable {
        self.inputs.push([PackedCell::NONE; 2]);
        Variable::new_unchecked(Index::Input(self.inputs.len() - 1))
    }

    /// One more auxiliary variable, without a value.
    pub fn declare_aux(&mut self) -> Variable {
        self.aux.push([PackedCell::NONE; 2]);
        Variable::new_unchecked(Index::Aux(self.aux.len() - 1))
    }

    /// Gives a variable its value.
    ///
    /// # Errors
    /// [`Violation::WrittenTwice`] or [`Violation::NotAllocated`].
    pub fn write(&mut self, variable: Variable, value: S) -> Result<(), Violation> {
        let index = variable.get_unchecked();
        let cells = self.pair(index)?;
        if !cells[0].is_none() {
            return Err(Violation::WrittenTwice { variable: index });
        }
        for cell in cells {
            cell.write(Value::Int(Canonical(value)));
        }
        Ok(())
    }

    /// A variable's value, read for `query`, which is remembered even if
    /// there is no value. `None` leaves no mark.
    ///
    /// # Errors
    /// [`Violation::ReadBeforeWritten`] or [`Violation::NotAllocated`].
    pub fn read(&mut self, variable: Variable, query: Option<Query>) -> Result<S, Violation> {
        let index = variable.get_unchecked();
        let [for_a, for_b] = self.pair(index)?;
        match query {
            Some(Query::A) => for_a.mark_accessed(),
            Some(Query::B) => for_b.mark_accessed(),
            None => {}
        }
        match for_a.value() {
            Some(Value::Int(Canonical(value))) => Ok(value),
            _ => Err(Violation::ReadBeforeWritten { variable: index }),
        }
    }

    /// The variables that were read, as a prover counts them.
    pub fn densities(&self) -> Densities {
        Densities {
            a_aux: accessed(&self.aux, Query::A),
            b_input: accessed(&self.inputs, Query::B),
            b_aux: accessed(&self.aux, Query::B),
        }
    }

    /// Appends the variables of a child, whose ONE is this memory's ONE.
    fn extend(&mut self, child: &Self) {
        if let (Some(one), Some(childs_one)) = (self.inputs.first_mut(), child.inputs.first()) {
            for (cell, childs) in one.iter_mut().zip(childs_one) {
                if childs.is_accessed() {
                    cell.mark_accessed();
                }
            }
        }
        self.inputs.extend(child.inputs.iter().skip(1));
        self.aux.extend_from_slice(&child.aux);
    }

    fn pair(&mut self, variable: Index) -> Result<&mut Pair<S>, Violation> {
        let (cells, at) = match variable {
            Index::Input(at) => (&mut self.inputs, at),
            Index::Aux(at) => (&mut self.aux, at),
        };
        let allocated = cells.len();
        cells.get_mut(at).ok_or(Violation::NotAllocated {
            variable,
            allocated,
        })
    }
}

fn accessed<S: PrimeField>(cells: &[Pair<S>], query: Query) -> Density {
    let mut density = Density::new(cells.len());
    for (at, [for_a, for_b]) in cells.iter().enumerate() {
        let cell = match query {
            Query::A => for_a,
            Query::B => for_b,
        };
        if cell.is_accessed() {
            density.insert(at);
        }
    }
    density
}

/// The result of [`check_circuit`].
#[derive(Debug, Clone)]
pub struct CheckedCircuit {
    /// Rows enforced.
    pub rows: usize,
    /// The variables that rows read.
    pub densities: Densities,
    /// The first violation, and the row (from 0) during which or, if it was
    /// not a row that violated, before which it happened.
    pub violation: Option<(usize, Violation)>,
}

/// Synthesises `circuit` in a [`CheckedMemory`] and evaluates each row as it is enforced. A
/// variable whose value is missing is left without one. That is no violation until a row
/// reads it, so a blank circuit has densities too.
///
/// # Errors
/// The circuit's own error.
pub fn check_circuit<S: PrimeField, C: Circuit<S>>(
    circuit: C,
) -> Result<CheckedCircuit, SynthesisError> {
    let mut cs = CheckingCs::new();
    cs.alloc_input(|| "ONE", || Ok(S::ONE))?;
    circuit.synthesize(&mut cs)?;
    Ok(CheckedCircuit {
        rows: cs.rows,
        densities: cs.memory.densities(),
        violation: cs.violation,
    })
}

/// The constraint system that [`check_circuit`] hands to a circuit.
#[derive(Debug)]
struct CheckingCs<S> {
    memory: CheckedMemory<S>,
    rows: usize,
    /// `enforce` cannot fail, so the first violation waits here for the end.
    violation: Option<(usize, Violation)>,
}

impl<S: PrimeField> CheckingCs<S> {
    fn assign(
        &mut self,
        variable: Variable,
        value: Result<S, SynthesisError>,
    ) -> Result<Variable, SynthesisError> {
        match value {
            Ok(value) => {
                let written = self.memory.write(variable, value);
                self.keep_first(written);
                Ok(variable)
            }
            Err(SynthesisError::AssignmentMissing) => Ok(variable),
            Err(error) => Err(error),
        }
    }

    /// The value of a sum; every term is read, even after a violation.
    fn sum(&mut self, terms: &LinearCombination<S>, query: Option<Query>) -> Result<S, Violation> {
        let mut sum = Ok(S::ZERO);
        for (variable, coefficient) in terms.iter() {
            // A term that cancelled out is no term: the prover skips it.
            if coefficient.is_zero_vartime() {
                continue;
            }
            let value = self.memory.read(variable, query);
            sum = sum.and_then(|sum| Ok(sum + value? * coefficient));
        }
        sum
    }

    fn keep_first(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert((self.rows, violation));
        }
    }
}

impl<S: PrimeField> ConstraintSystem<S> for CheckingCs<S> {
    type Root = Self;

    fn new() -> Self {
        CheckingCs {
            memory: CheckedMemory::new(),
            rows: 0,
            violation: None,
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let variable = self.memory.declare_aux();
        self.assign(variable, value())
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let variable = self.memory.declare_input();
        self.assign(variable, value())
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LB: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
        LC: FnOnce(LinearCombination<S>) -> LinearCombination<S>,
    {
        let a = self.sum(&a(LinearCombination::zero()), Some(Query::A));
        let b = self.sum(&b(LinearCombination::zero()), Some(Query::B));
        let c = self.sum(&c(LinearCombination::zero()), None);
        let satisfied = a.and_then(|a| {
            if a * b? == c? {
                Ok(())
            } else {
                Err(Violation::Unsatisfied)
            }
        });
        self.keep_first(satisfied);
        self.rows += 1;
    }

    crate::nameless::nameless!();

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, child: &Self) {
        if let Some((row, violation)) = child.violation {
            self.violation.get_or_insert((self.rows + row, violation));
        }
        self.memory.extend(&child.memory);
        self.rows += child.rows;
    }
}

#[cfg(test)]
mod tests;
