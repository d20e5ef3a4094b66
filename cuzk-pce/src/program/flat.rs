//! A program in flat tables, in which any row can be looked up without a walk. This is the
//! form for a device that evaluates a row on each thread.
//!
//! Rows that repeat are kept once, as *units*: stretches of at most some hundreds of rows.
//! Each row of a unit has its shape, and its cursor from the unit's start. *References*
//! give the places of the units' rows. So a row is found by a search among the references
//! of its block, and costs no more than its own terms.
//!
//! Not a file format and not for the host, whose evaluation is that of
//! [`Program::evaluate_into`](crate::Program::evaluate_into).
//!
//! Invariant: unfolded, it has the rows of the program it was made of.

use super::{
    body::Body,
    coefficients::Dictionary,
    dimensions::Dimensions,
    folded::Folded,
    grammar::Grammar,
    prepared::{integer, is_little_endian},
    rows::{INPUT_BIT, Item, Term, items},
    symbol::{NODE_BIT, REPEAT},
};
use crate::{csr::CsrError, r1cs::R1cs};
use ff::PrimeField;
use std::collections::HashMap;

/// Rows whose references [`Flat::block_references`] brackets.
pub const BLOCK_ROWS: u32 = 256;

/// Most rows of a unit, of which that is taken that makes the tables smallest.
const UNIT_ROWS_MAX: [u32; 4] = [64, 256, 1024, 4096];

/// Powers of one half: more than a run has terms.
const HALVES: usize = 256;

/// A program as tables of words and scalars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flat<S> {
    /// The distinct coefficients.
    pub coefficients: Vec<S>,
    /// By coefficient: its value if it is an integer of 32 bits, else 0.
    pub integers: Vec<i32>,
    /// 2^−k by k.
    pub halves: Vec<S>,
    /// By part (one matrix's share of a row): the end of its items.
    pub part_ends: Vec<u32>,
    /// Two words for each item. The first is a column. A public input is absolute, with its
    /// highest bit set. An auxiliary variable is counted back from the cursor. The second
    /// word is the name of a coefficient. If its highest bit is set, the item is a run of
    /// auxiliary columns towards the cursor. Then follows one bit that is set if the run
    /// has every second column. Two bits tell how the coefficients go on: 0 stay, 1 double,
    /// 2 halve. Eight bits of length and twenty bits of the first coefficient's name come
    /// last.
    pub items: Vec<u32>,
    /// Two words a shape: its parts in A and in B.
    pub shapes: Vec<u32>,
    /// Two words a row of a unit: its shape, and its cursor (the auxiliary
    /// variables allocated when it was enforced) from that of its reference.
    pub unit_rows: Vec<u32>,
    /// Three words a reference: its first row, the cursor before that, and
    /// where its rows begin in the unit rows.
    pub references: Vec<u32>,
    /// By [`BLOCK_ROWS`] rows, and one more: the reference that the first of
    /// them is in; last, the last reference.
    pub block_references: Vec<u32>,
    /// Number of constraints.
    pub rows: u32,
    /// Number of public inputs, ONE among them.
    pub num_inputs: u32,
    /// Number of auxiliary variables.
    pub num_aux: u32,
}

impl<S> Flat<S> {
    /// Bytes of all tables.
    pub fn bytes(&self) -> usize {
        let words = [
            &self.part_ends,
            &self.items,
            &self.shapes,
            &self.unit_rows,
            &self.references,
            &self.block_references,
        ];
        words
            .map(|words| size_of_val(&words[..]))
            .iter()
            .sum::<usize>()
            + size_of_val(&self.coefficients[..])
            + size_of_val(&self.integers[..])
            + size_of_val(&self.halves[..])
    }
}

/// Returns A and B in flat tables.
///
/// # Errors
/// [`CsrError::TooLarge`] if a table has more entries than 32 bits can number.
pub(super) fn flatten<S: PrimeField>(
    (dimensions, body): (&Dimensions, &Body<S>),
) -> Result<Flat<S>, CsrError> {
    match body {
        Body::Folded(folded) => flatten_folded(dimensions, folded),
        Body::Plain(r1cs) => flatten_plain(dimensions, r1cs),
    }
}

fn flatten_folded<S: PrimeField>(
    dimensions: &Dimensions,
    folded: &Folded<S>,
) -> Result<Flat<S>, CsrError> {
    let view = folded.tables.view();
    let mut smallest: Option<Order> = None;
    for unit_rows_max in UNIT_ROWS_MAX {
        let order = Order::of(view.grammar, unit_rows_max)?;
        if smallest
            .as_ref()
            .is_none_or(|other| order.words() < other.words())
        {
            smallest = Some(order);
        }
    }
    let shapes = view.grammar.shapes.iter();
    flat(
        dimensions,
        folded.coefficients.clone(),
        Tables {
            part_ends: view.part_ends.to_vec(),
            items: view.items.as_flattened().to_vec(),
            shapes: shapes.flat_map(|&[_, a, b, ..]| [a, b]).collect(),
        },
        smallest.unwrap_or_default(),
    )
}

/// Every row is a shape of its own, with the cursor at the end.
fn flatten_plain<S: PrimeField>(
    dimensions: &Dimensions,
    r1cs: &R1cs<S>,
) -> Result<Flat<S>, CsrError> {
    let (num_inputs, num_aux) = (dimensions.num_inputs, dimensions.num_aux);
    let mut names = Dictionary::new()?;
    let mut tables = Tables::default();
    let mut order = Order::default();
    for (row, number) in (0..r1cs.rows()).zip(0u32..) {
        for matrix in [r1cs.a(), r1cs.b()] {
            let mut terms = Vec::new();
            let row = matrix.row(row).into_iter();
            for (&col, value) in row.flat_map(|row| row.cols.iter().zip(row.values)) {
                terms.push(Term {
                    col: match col.checked_sub(num_inputs) {
                        Some(aux) => num_aux - aux,
                        None => INPUT_BIT | col,
                    },
                    coefficient: names.name(value)?,
                });
            }
            tables.push_part(&items(&terms, names.values()))?;
        }
        order.unit_rows.extend([number, 0]);
    }
    if dimensions.rows > 0 {
        order.references.extend([0, num_aux, 0]);
    }
    flat(dimensions, names.into_values(), tables, order)
}

fn flat<S: PrimeField>(
    dimensions: &Dimensions,
    coefficients: Vec<S>,
    tables: Tables,
    order: Order,
) -> Result<Flat<S>, CsrError> {
    let little_endian = is_little_endian::<S>();
    let small = |value| i32::try_from(integer(value, little_endian)).unwrap_or(0);
    let halves = std::iter::successors(Some(S::ONE), |half| Some(*half * S::TWO_INV));
    Ok(Flat {
        integers: coefficients.iter().map(small).collect(),
        coefficients,
        halves: halves.take(HALVES).collect(),
        part_ends: tables.part_ends,
        items: tables.items,
        shapes: tables.shapes,
        block_references: order.block_references(dimensions.rows)?,
        unit_rows: order.unit_rows,
        references: order.references,
        rows: dimensions.rows,
        num_inputs: dimensions.num_inputs,
        num_aux: dimensions.num_aux,
    })
}

/// The distinct rows.
#[derive(Default)]
struct Tables {
    part_ends: Vec<u32>,
    items: Vec<u32>,
    shapes: Vec<u32>,
}

impl Tables {
    /// Adds a part, and to the last shape or a new one its name.
    fn push_part(&mut self, items: &[Item]) -> Result<(), CsrError> {
        self.shapes.push(number("parts", self.part_ends.len())?);
        self.items
            .extend(items.iter().flat_map(|item| item.encode()));
        self.part_ends.push(number("items", self.items.len() / 2)?);
        Ok(())
    }
}

/// The order of the rows.
#[derive(Default)]
struct Order {
    unit_rows: Vec<u32>,
    references: Vec<u32>,
}

impl Order {
    fn of(grammar: Grammar<'_>, unit_rows_max: u32) -> Result<Self, CsrError> {
        let mut unroller = Unroller {
            grammar,
            unit_rows_max,
            units: HashMap::new(),
            order: Order::default(),
            row: 0,
            cursor: 0,
        };
        unroller.place(grammar.root)?;
        Ok(unroller.order)
    }

    fn words(&self) -> usize {
        self.unit_rows.len() + self.references.len()
    }

    fn block_references(&self, rows: u32) -> Result<Vec<u32>, CsrError> {
        let (references, _) = self.references.as_chunks::<3>();
        let last = number("references", references.len().saturating_sub(1))?;
        let mut at = 0;
        let mut blocks = Vec::new();
        for start in (0..rows).step_by(BLOCK_ROWS as usize) {
            let next = |at: u32| references.get(at as usize + 1);
            while next(at).is_some_and(|[first, ..]| *first <= start) {
                at += 1;
            }
            blocks.push(at);
        }
        blocks.push(last);
        Ok(blocks)
    }
}

/// Puts units and references in order while a grammar is walked.
struct Unroller<'a> {
    grammar: Grammar<'a>,
    unit_rows_max: u32,
    /// By symbol and how often it comes: where its rows begin.
    units: HashMap<(u32, u32), u32>,
    order: Order,
    row: u32,
    cursor: u32,
}

impl Unroller<'_> {
    /// How many rows and auxiliary variables a symbol stands for.
    fn totals(&self, symbol: u32) -> (u32, u32) {
        let totals = self.grammar.totals(symbol);
        totals.map_or((0, 0), |totals| (totals.rows, totals.aux))
    }

    /// Appends what a symbol stands for. Nodes nest at most some 60 deep.
    fn place(&mut self, symbol: u32) -> Result<(), CsrError> {
        let (rows, _) = self.totals(symbol);
        if rows <= self.unit_rows_max {
            return self.refer(symbol, 1);
        }
        match *self.grammar.words(symbol).unwrap_or(&[]) {
            [REPEAT, inner, count] => self.place_times(inner, count),
            ref children => children.iter().try_for_each(|&child| self.place(child)),
        }
    }

    /// Appends a symbol several times, as many at once as a unit holds.
    fn place_times(&mut self, symbol: u32, mut count: u32) -> Result<(), CsrError> {
        let (rows, _) = self.totals(symbol);
        let at_once = self.unit_rows_max.checked_div(rows).unwrap_or(0);
        if at_once == 0 {
            return (0..count).try_for_each(|_| self.place(symbol));
        }
        while count > 0 {
            let some = count.min(at_once);
            self.refer(symbol, some)?;
            count -= some;
        }
        Ok(())
    }

    /// Appends a reference to the unit that is a symbol `count` times.
    fn refer(&mut self, symbol: u32, count: u32) -> Result<(), CsrError> {
        let (rows, aux) = self.totals(symbol);
        if rows == 0 {
            return Ok(());
        }
        let unit = match self.units.get(&(symbol, count)) {
            Some(unit) => *unit,
            None => {
                let unit = number("rows of units", self.order.unit_rows.len() / 2)?;
                let mut cursor = 0;
                (0..count).for_each(|_| self.unroll(symbol, &mut cursor));
                self.units.insert((symbol, count), unit);
                unit
            }
        };
        self.order.references.extend([self.row, self.cursor, unit]);
        // Sums that the grammar's own totals contain.
        self.row += rows * count;
        self.cursor += aux * count;
        Ok(())
    }

    /// Appends the rows of a symbol to the unit rows.
    fn unroll(&mut self, symbol: u32, cursor: &mut u32) {
        if symbol & NODE_BIT == 0 {
            let (_, aux) = self.totals(symbol);
            *cursor += aux;
            self.order.unit_rows.extend([symbol >> 1, *cursor]);
            return;
        }
        match *self.grammar.words(symbol).unwrap_or(&[]) {
            [REPEAT, inner, count] => (0..count).for_each(|_| self.unroll(inner, cursor)),
            ref children => children
                .iter()
                .for_each(|&child| self.unroll(child, cursor)),
        }
    }
}

fn number(what: &'static str, got: usize) -> Result<u32, CsrError> {
    u32::try_from(got).map_err(|_| CsrError::TooLarge {
        what,
        got,
        limit: u32::MAX as usize,
    })
}

#[cfg(test)]
mod tests;
