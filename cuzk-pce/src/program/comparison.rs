//! The constraint system that compares the rows of a circuit with those of a program.
//!
//! Rows are compared one by one, as they come, with the program's own: nothing is unfolded
//! or hashed. Like the compiler's, this system is not extensible, so rows come in their
//! final order.
//!
//! Invariant: there is no difference exactly if rows, terms and numbers of variables are the
//! program's.

use super::{
    body::Body,
    compiled::Program,
    folded::Folded,
    rows::{INPUT_BIT, Shape},
    tables::View,
};
use crate::r1cs::R1cs;
use bellperson::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

/// The first difference between a synthesised circuit and a compiled one. Rows are counted
/// from 0, without those that Groth16 appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeDifference {
    /// A row has other terms.
    #[error("row {row} has other terms in {matrix} than row {row} of the compiled circuit")]
    Terms {
        /// The row.
        row: usize,
        /// The first matrix that differs: A, B or C.
        matrix: char,
    },
    /// There are more rows.
    #[error("row {row} is not in the compiled circuit, which has {row} rows")]
    MoreRows {
        /// The first row that is not in the compiled circuit.
        row: usize,
    },
    /// There are fewer rows.
    #[error("row {row} is missing: the compiled circuit has {rows} rows")]
    FewerRows {
        /// The first row that is missing.
        row: usize,
        /// The rows of the compiled circuit.
        rows: usize,
    },
    /// There are more or fewer public inputs, which are in no row that was compared.
    #[error("it has {got} public inputs with ONE, and the compiled circuit has {expected}")]
    Inputs {
        /// Public inputs of the compiled circuit, ONE among them.
        expected: usize,
        /// Public inputs of the synthesised one, ONE among them.
        got: usize,
    },
    /// There are more or fewer auxiliary variables, which are in no row that was compared.
    #[error("it has {got} auxiliary variables, and the compiled circuit has {expected}")]
    Aux {
        /// Auxiliary variables of the compiled circuit.
        expected: usize,
        /// Auxiliary variables of the synthesised one.
        got: usize,
    },
}

impl ShapeDifference {
    /// Returns the row that differs, from 0, if the difference is in a row.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match *self {
            Self::Terms { row, .. } | Self::MoreRows { row } | Self::FewerRows { row, .. } => {
                Some(row)
            }
            Self::Inputs { .. } | Self::Aux { .. } => None,
        }
    }
}

/// Compares numbers of variables with those of a program.
///
/// # Errors
/// [`ShapeDifference::Inputs`], [`ShapeDifference::Aux`].
pub(crate) fn check_variables<S>(
    program: &Program<S>,
    num_inputs: usize,
    num_aux: usize,
) -> Result<(), ShapeDifference> {
    let expected = program.num_inputs();
    if num_inputs != expected {
        let got = num_inputs;
        return Err(ShapeDifference::Inputs { expected, got });
    }
    let expected = program.num_aux();
    if num_aux != expected {
        let got = num_aux;
        return Err(ShapeDifference::Aux { expected, got });
    }
    Ok(())
}

/// The rows of folded tables, each with the number of auxiliaries before it.
type Places<'a> = Box<dyn Iterator<Item = (Shape, u32)> + Send + 'a>;

/// The rows of a program that are still to come.
enum Rest<'a, S> {
    Folded {
        folded: &'a Folded<S>,
        view: View<'a>,
        places: Places<'a>,
    },
    Plain(&'a R1cs<S>),
}

/// Compares rows with those of a program.
pub(crate) struct RowComparison<'a, S> {
    program: &'a Program<S>,
    rest: Rest<'a, S>,
    num_inputs: usize,
    num_aux: usize,
    rows: usize,
    difference: Option<ShapeDifference>,
}

impl<'a, S: PrimeField> RowComparison<'a, S> {
    pub(crate) fn new(program: &'a Program<S>) -> Self {
        let rest = match &program.body {
            Body::Plain(r1cs) => Rest::Plain(r1cs),
            Body::Folded(folded) => {
                let view = folded.tables.view();
                let places = folded
                    .places(view)
                    .map(|(shape, _, cursor)| (shape, cursor));
                Rest::Folded {
                    folded,
                    view,
                    places: Box::new(places),
                }
            }
        };
        Self {
            program,
            rest,
            num_inputs: 0,
            num_aux: 0,
            rows: 0,
            difference: None,
        }
    }

    /// Returns the difference that was found so far.
    pub(crate) fn difference(&self) -> Option<ShapeDifference> {
        self.difference
    }

    /// Ends the comparison.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn finish(self) -> Result<(), ShapeDifference> {
        if let Some(difference) = self.difference {
            return Err(difference);
        }
        let rows = self.program.rows();
        if self.rows < rows {
            return Err(ShapeDifference::FewerRows {
                row: self.rows,
                rows,
            });
        }
        check_variables(self.program, self.num_inputs, self.num_aux)
    }

    /// Returns the first difference of the next row, if there is one.
    fn compare(&mut self, parts: [&LinearCombination<S>; 3]) -> Option<ShapeDifference> {
        let row = self.rows;
        let other = |at: usize| ShapeDifference::Terms {
            row,
            matrix: ['A', 'B', 'C'][at],
        };
        match &mut self.rest {
            Rest::Folded {
                folded,
                view,
                places,
            } => {
                let Some((shape, cursor)) = places.next() else {
                    return Some(ShapeDifference::MoreRows { row });
                };
                let same = |(part, lc): (u32, &LinearCombination<S>)| {
                    let terms = folded.part_terms(view, part);
                    is_same(lc, terms.map(|(col, value)| (named(col, cursor), value)))
                };
                let mut pairs = shape.parts.into_iter().zip(parts);
                pairs.position(|pair| !same(pair)).map(other)
            }
            Rest::Plain(r1cs) => {
                let inputs = r1cs.num_inputs();
                let matrices = [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| matrix.row(row));
                let mut pairs = matrices.into_iter().zip(parts);
                let found = pairs.position(|(plain, lc)| {
                    plain.is_none_or(|plain| {
                        let cols = plain.cols.iter().map(|&col| col as usize);
                        let named = cols.map(|col| match col.checked_sub(inputs) {
                            None => Index::Input(col),
                            Some(aux) => Index::Aux(aux),
                        });
                        !is_same(lc, named.zip(plain.values.iter().copied()))
                    })
                });
                match found {
                    Some(_) if row >= r1cs.rows() => Some(ShapeDifference::MoreRows { row }),
                    found => found.map(other),
                }
            }
        }
    }
}

/// The variable of a column that is counted back from `cursor`.
fn named(col: u32, cursor: u32) -> Index {
    match col & INPUT_BIT {
        0 => Index::Aux(cursor.wrapping_sub(col) as usize),
        _ => Index::Input((col & !INPUT_BIT) as usize),
    }
}

/// Returns true if the terms of `lc` are `terms`, in the same order.
fn is_same<S: PrimeField>(
    lc: &LinearCombination<S>,
    mut terms: impl Iterator<Item = (Index, S)>,
) -> bool {
    let inputs = lc.iter_inputs();
    let inputs = inputs.map(|(&index, value)| (Index::Input(index), value));
    let aux = lc.iter_aux();
    let aux = aux.map(|(&index, value)| (Index::Aux(index), value));
    // A term whose sum is zero is no term.
    let ours = inputs.chain(aux);
    let mut ours = ours.filter(|(_, value)| !value.is_zero_vartime());
    let all = ours.all(|(index, value)| {
        let theirs = terms.next();
        theirs.is_some_and(|(named, other)| named == index && other == *value)
    });
    all && terms.next().is_none()
}

impl<S: PrimeField> ConstraintSystem<S> for RowComparison<'_, S> {
    type Root = Self;

    /// Fails once a row differs, so that the circuit need not be synthesised to its end.
    fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if self.difference.is_some() {
            return Err(SynthesisError::Unsatisfiable);
        }
        self.num_aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.num_aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<S, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if self.difference.is_some() {
            return Err(SynthesisError::Unsatisfiable);
        }
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
        if self.difference.is_some() {
            return;
        }
        let a = a(LinearCombination::zero());
        let b = b(LinearCombination::zero());
        let c = c(LinearCombination::zero());
        self.difference = self.compare([&a, &b, &c]);
        self.rows += 1;
    }

    crate::nameless::nameless!();
}
