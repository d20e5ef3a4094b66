//! The rows of a circuit, folded: coefficients, tables, and what evaluation
//! makes of them.
//!
//! Invariant: the tables have been checked, or a compiler built them.

use super::{
    dimensions::{Dimensions, RowTerm},
    prepared::Prepared,
    rows::{INPUT_BIT, Item, Run, Shape, Step, Term},
    stretch::Stretch,
    tables::{Tables, View},
    walk::Walk,
};
use crate::fingerprint::{CircuitHasher, Fingerprint, push_part, row_digest};
use ff::PrimeField;

/// Folded rows.
#[derive(Debug)]
pub(super) struct Folded<S> {
    pub(super) dimensions: Dimensions,
    pub(super) coefficients: Vec<S>,
    pub(super) tables: Tables,
    pub(super) run: Prepared<S>,
}

impl<S> Folded<S> {
    /// Bytes held, or mapped from a file.
    pub(super) fn resident_bytes(&self) -> usize {
        size_of_val(&self.coefficients[..])
            + size_of_val(self.tables.words())
            + self.run.resident_bytes()
    }
}

impl<S: PrimeField> Folded<S> {
    /// Takes tables that have been checked, or that a compiler built.
    pub(super) fn new(dimensions: Dimensions, coefficients: Vec<S>, tables: Tables) -> Self {
        let run = Prepared::new(&coefficients, &tables.view());
        Folded {
            dimensions,
            coefficients,
            tables,
            run,
        }
    }

    /// The rows, in order and unfolded.
    pub(super) fn unfold(&self) -> impl Iterator<Item = [Vec<RowTerm<S>>; 3]> + '_ {
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

    /// The fingerprint of the rows, unfolded.
    pub(super) fn recompute_fingerprint(&self) -> Fingerprint {
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
        let Dimensions {
            num_inputs,
            num_aux,
            rows,
            ..
        } = self.dimensions;
        hasher.finish(num_inputs as usize, num_aux as usize, rows as usize)
    }

    /// Every row's shape, terminal and cursor.
    pub(super) fn places<'a>(
        &self,
        view: View<'a>,
    ) -> impl Iterator<Item = (Shape, u32, u32)> + use<'a, S> {
        let (walk, mut cursor) = Walk::new(view.grammar, 0, None);
        walk.flat_map(Stretch::unfold)
            .filter_map(move |terminal| Some((view.shape(terminal)?, terminal)))
            .map(move |(shape, terminal)| {
                cursor += shape.advance;
                (shape, terminal, cursor)
            })
    }

    /// The terms of a part, columns as they are stored.
    pub(super) fn part_terms<'a>(
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
