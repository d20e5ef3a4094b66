//! A compiled circuit: the same rows, as small as their repetition allows.
//!
//! Reading order: `rows` (distinct rows in relative form), `sequence` (their
//! order as a grammar that can be entered at any row), `tables` (both as one
//! checked block of words), `compile` (from a blank circuit, streaming),
//! `types` (which columns are boolean), `drift` and `run` (evaluation), `file`.
//!
//! Invariant: a program unfolds to exactly the rows that [`crate::record()`]
//! records of the same circuit, terms in the same order; it is immutable and
//! checked, whether compiled or read from a file.

mod coefficients;
mod compile;
mod drift;
mod file;
mod interner;
mod rows;
mod run;
mod sequence;
mod tables;
#[cfg(test)]
mod tests;
mod types;

pub use compile::compile;
pub use file::{ProgramHeader, inspect, read, write};
pub use run::check;
pub use tables::TablesError;

use crate::{
    csr::{CsrError, CsrMatrix},
    density::{Densities, Density},
    fingerprint::{CircuitHasher, Fingerprint, push_part, row_digest},
    r1cs::{R1cs, variables},
};
use ff::PrimeField;
use rows::{INPUT_BIT, Item, PROVEN, Run, Shape, Step, Term};
use sequence::Stretch;
use tables::{Tables, View};

/// The dimensions of a compiled circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimensions {
    num_inputs: u32,
    num_aux: u32,
    rows: u32,
    nnz: [u64; 3],
}

/// The constraints of one circuit, in compiled form.
#[derive(Debug)]
pub struct Program<S> {
    dimensions: Dimensions,
    fingerprint: Fingerprint,
    coefficients: Vec<S>,
    tables: Tables,
    run: run::Prepared<S>,
}

/// How a program comes to be as large as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Distinct coefficients.
    pub coefficients: usize,
    /// Distinct shares of a row in one matrix.
    pub parts: usize,
    /// Items of all parts: single terms and runs.
    pub items: usize,
    /// Distinct rows.
    pub shapes: usize,
    /// Distinct repeats and chunks of rows.
    pub nodes: usize,
    /// Words of all repeats and chunks.
    pub node_words: usize,
}

/// A term of a row: the column in `[inputs | aux]` and the coefficient.
pub type RowTerm<S> = (u32, S);

impl<S> Program<S> {
    /// Number of public inputs, ONE among them.
    pub fn num_inputs(&self) -> usize {
        self.dimensions.num_inputs as usize
    }

    /// Number of auxiliary variables.
    pub fn num_aux(&self) -> usize {
        self.dimensions.num_aux as usize
    }

    /// Length of the witness `[inputs | aux]`.
    pub fn num_variables(&self) -> usize {
        self.num_inputs() + self.num_aux()
    }

    /// Number of constraints, without the rows that Groth16 appends.
    pub fn rows(&self) -> usize {
        self.dimensions.rows as usize
    }

    /// Nonzeros of A, B and C.
    pub fn nnz(&self) -> [u64; 3] {
        self.dimensions.nnz
    }

    /// A hash of the dimensions and of every row, the same as that of the
    /// recorded system.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Bytes held, or mapped from a file.
    pub fn resident_bytes(&self) -> usize {
        size_of_val(&self.coefficients[..])
            + size_of_val(self.tables.words())
            + self.run.resident_bytes()
    }

    /// What the bytes are made of.
    pub fn sizes(&self) -> Sizes {
        let counts = self.tables.counts();
        Sizes {
            coefficients: self.coefficients.len(),
            parts: counts.parts as usize,
            items: counts.items as usize,
            shapes: counts.shapes as usize,
            nodes: counts.nodes as usize,
            node_words: counts.children as usize,
        }
    }
}

impl<S: PrimeField> Program<S> {
    /// Takes tables that have been checked, or that a compiler built.
    fn new(
        dimensions: Dimensions,
        fingerprint: Fingerprint,
        coefficients: Vec<S>,
        tables: Tables,
    ) -> Self {
        let run = run::Prepared::new(&coefficients, &tables.view());
        Program {
            dimensions,
            fingerprint,
            coefficients,
            tables,
            run,
        }
    }

    /// The rows of A, B and C, in order and unfolded.
    pub fn unfold(&self) -> impl Iterator<Item = [Vec<RowTerm<S>>; 3]> + '_ {
        let view = self.tables.view();
        self.places(view).map(move |(shape, _, cursor)| {
            shape.parts.map(|part| {
                let terms = self.part_terms(&view, part);
                let flat = |(col, value): RowTerm<S>| match col & INPUT_BIT {
                    0 => (self.dimensions.num_inputs + (cursor - col), value),
                    _ => (col & !INPUT_BIT, value),
                };
                terms.map(flat).collect()
            })
        })
    }

    /// The plain form. It may be a thousand times as large.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] if a matrix has more nonzeros than 32 bits can
    /// number.
    pub fn to_r1cs(&self) -> Result<R1cs<S>, CsrError> {
        let num_cols = variables(self.dimensions.num_inputs, self.dimensions.num_aux)?;
        let mut parts = [(); 3].map(|()| (vec![0u32], Vec::new(), Vec::new()));
        for row in self.unfold() {
            for ((row_ptrs, cols, values), terms) in parts.iter_mut().zip(row) {
                for (col, value) in terms {
                    cols.push(col);
                    values.push(value);
                }
                row_ptrs.push(u32::try_from(cols.len()).map_err(|_| CsrError::TooLarge {
                    what: "nonzeros",
                    got: cols.len(),
                    limit: u32::MAX as usize,
                })?);
            }
        }
        let [a, b, c] =
            parts.map(|(row_ptrs, cols, values)| CsrMatrix::new(num_cols, row_ptrs, cols, values));
        R1cs::new(
            a?,
            b?,
            c?,
            self.dimensions.num_inputs,
            self.dimensions.num_aux,
        )
    }

    /// The fingerprint of the rows that are really in here, unfolded again.
    ///
    /// [`Program::fingerprint`] is what was announced; this takes seconds at
    /// full size, and tells whether that was true.
    pub fn recompute_fingerprint(&self) -> Fingerprint {
        let view = self.tables.view();
        let shapes = view.grammar.shapes.iter();
        let digests: Vec<_> = shapes
            .map(|&words| self.digest(&view, Shape::decode(words)))
            .collect();
        let mut hasher = CircuitHasher::new();
        for (_, terminal, cursor) in self.places(view) {
            if let Some((digest, newest)) = digests.get((terminal >> 1) as usize) {
                let base = if *newest == 0 { 0 } else { cursor - newest };
                hasher.push(digest, base.into());
            }
        }
        hasher.finish(self.num_inputs(), self.num_aux(), self.rows())
    }

    /// The auxiliary variables that the rows prove to be 0 or 1.
    pub fn boolean_columns(&self) -> Density {
        let mut columns = Density::new(self.num_aux());
        for (shape, terminal, cursor) in self.places(self.tables.view()) {
            if terminal & PROVEN != 0 && shape.boolean != 0 {
                columns.insert((cursor - shape.boolean) as usize);
            }
        }
        columns
    }

    /// Which variables the A and B queries of a Groth16 prover range over.
    pub fn densities(&self) -> Densities {
        let view = self.tables.view();
        let mut densities = Densities {
            a_aux: Density::new(self.num_aux()),
            b_input: Density::new(self.num_inputs()),
            b_aux: Density::new(self.num_aux()),
        };
        for (shape, _, cursor) in self.places(view) {
            let [a, b, _] = shape.parts;
            for (part, aux_set, is_b) in [
                (a, &mut densities.a_aux, false),
                (b, &mut densities.b_aux, true),
            ] {
                for item in view
                    .part(part)
                    .iter()
                    .filter_map(|&words| Item::decode(words))
                {
                    let Run {
                        first, length, gap, ..
                    } = item.as_run();
                    match first.col & INPUT_BIT {
                        0 => (0..length).for_each(|k| {
                            aux_set.insert((cursor - first.col + k * gap) as usize);
                        }),
                        _ if is_b => densities.b_input.insert((first.col & !INPUT_BIT) as usize),
                        _ => {}
                    }
                }
            }
        }
        densities
    }

    /// Every row's shape, terminal and cursor.
    fn places<'a>(&self, view: View<'a>) -> impl Iterator<Item = (Shape, u32, u32)> + use<'a, S> {
        let (walk, mut cursor) = view.grammar.walk(0, None);
        walk.flat_map(Stretch::unfold)
            .filter_map(move |terminal| Some((view.shape(terminal)?, terminal)))
            .map(move |(shape, terminal)| {
                cursor += shape.advance;
                (shape, terminal, cursor)
            })
    }

    /// The terms of a part, columns as they are stored.
    fn part_terms<'a>(
        &'a self,
        view: &View<'a>,
        part: u32,
    ) -> impl Iterator<Item = RowTerm<S>> + 'a {
        let items = view
            .part(part)
            .iter()
            .filter_map(|&words| Item::decode(words));
        items.flat_map(move |item| {
            let Run {
                first,
                length,
                gap,
                step,
            } = item.as_run();
            let value = self.coefficient(first);
            let next = move |value: &S| {
                Some(match step {
                    Step::Stay => *value,
                    Step::Double => value.double(),
                    Step::Halve => *value * S::TWO_INV,
                })
            };
            let values = std::iter::successors(Some(value), next);
            (0..length)
                .zip(values)
                .map(move |(k, value)| (first.col - k * gap, value))
        })
    }

    fn coefficient(&self, term: Term) -> S {
        let value = self.coefficients.get(term.coefficient as usize);
        value.copied().unwrap_or(S::ZERO)
    }

    /// A row's digest, and how far back its newest variable is.
    fn digest(&self, view: &View<'_>, shape: Shape) -> ([u8; 32], u32) {
        let parts = shape
            .parts
            .map(|part| self.part_terms(view, part).collect::<Vec<_>>());
        let aux = parts
            .iter()
            .flatten()
            .filter(|(col, _)| col & INPUT_BIT == 0);
        let newest = aux.map(|&(col, _)| col).min().unwrap_or(0);
        let mut bytes = Vec::new();
        for part in parts {
            let terms = part.into_iter().map(|(col, value)| match col & INPUT_BIT {
                0 => (false, u64::from(col - newest), value),
                _ => (true, u64::from(col & !INPUT_BIT), value),
            });
            push_part(&mut bytes, terms);
        }
        (row_digest(&bytes), newest)
    }
}
