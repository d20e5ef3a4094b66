//! A shape, as the compiler knows it once it has seen the shape.

use super::{
    interner::Interner,
    rows::{INPUT_BIT, terms},
    types::{RowTerms, Rule},
};
use crate::fingerprint::{push_part, row_digest};
use ff::PrimeField;

/// The properties of a shape.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) advance: u32,
    /// Of the row, relative to its newest variable.
    pub(super) digest: [u8; 32],
    /// Its newest variable, counted back from the cursor; 0 if it has none.
    pub(super) newest: u32,
    pub(super) rule: Rule,
    /// The row, where others may build on what it fixes.
    pub(super) row: Option<RowTerms>,
    pub(super) nnz: [u64; 3],
}

impl Known {
    /// Derives the properties of a shape from its words: its advance and its three parts.
    pub(super) fn new<S: PrimeField>(
        [advance, parts @ ..]: [u32; 4],
        interned: &Interner,
        values: &[S],
    ) -> Self {
        let [a, b, c] = parts.map(|part| terms(interned, part));
        let row = RowTerms { a, b, c };
        let rule = row.rule(values);
        let newest = row.newest();
        let nnz = [&row.a, &row.b, &row.c].map(|part| part.len() as u64);
        Known {
            advance,
            digest: digest(&row, newest, values),
            newest,
            nnz,
            row: matches!(rule, Rule::Given { .. }).then_some(row),
            rule,
        }
    }
}

/// Returns the number of variables that are allocated before a terminal's row.
pub(super) fn advance(known: &[Known], terminal: u32) -> u32 {
    known
        .get((terminal >> 1) as usize)
        .map_or(0, |known| known.advance)
}

fn digest<S: PrimeField>(row: &RowTerms, newest: u32, values: &[S]) -> [u8; 32] {
    let mut bytes = Vec::new();
    for part in [&row.a, &row.b, &row.c] {
        let terms = part.iter().map(|term| {
            let value = values[term.coefficient as usize];
            match term.col & INPUT_BIT {
                0 => (false, u64::from(term.col - newest), value),
                _ => (true, u64::from(term.col & !INPUT_BIT), value),
            }
        });
        push_part(&mut bytes, terms);
    }
    row_digest(&bytes)
}
