//! A program in flat tables that any row can be looked up in without a walk:
//! the form for a device that evaluates a row a thread.
//!
//! Rows that repeat are kept once, as *units*: stretches of at most some
//! hundreds of rows, each with its shape and its cursor from the unit's start.
//! *References* say which unit's rows come where. So a row is found by a search
//! among the references of its block, and costs no more than its own terms.
//!
//! Not a file format and not for the host, whose evaluation is that of
//! [`Program::evaluate_into`].
//!
//! Invariant: unfolded, it has the rows of the program it was made of.

use super::{
    Body, Program,
    coefficients::Dictionary,
    folded::Folded,
    rows::{INPUT_BIT, Item, Term, items},
    run::{integer, is_little_endian},
    sequence::{Grammar, NODE_BIT, REPEAT},
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
    /// Two words an item: a column (absolute with its highest bit set if it is
    /// a public input, else counted back from the cursor), and the name of a
    /// coefficient; or with the highest bit of the second word set a run of
    /// auxiliary columns towards the cursor: then follow one bit that is set if
    /// it is every second, two bits of how its coefficients go on (0 stay,
    /// 1 double, 2 halve), eight of length and twenty of the first one's name.
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

impl<S: PrimeField> Program<S> {
    /// A and B of this program in flat tables.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] if a table has more entries than 32 bits can
    /// number.
    pub fn flatten(&self) -> Result<Flat<S>, CsrError> {
        match &self.body {
            Body::Folded(folded) => self.flatten_folded(folded),
            Body::Plain(r1cs) => self.flatten_plain(r1cs),
        }
    }

    fn flatten_folded(&self, folded: &Folded<S>) -> Result<Flat<S>, CsrError> {
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
        self.flat(
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
    fn flatten_plain(&self, r1cs: &R1cs<S>) -> Result<Flat<S>, CsrError> {
        let (num_inputs, num_aux) = (self.dimensions.num_inputs, self.dimensions.num_aux);
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
        if self.dimensions.rows > 0 {
            order.references.extend([0, num_aux, 0]);
        }
        self.flat(names.into_values(), tables, order)
    }

    fn flat(
        &self,
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
            block_references: order.block_references(self.dimensions.rows)?,
            unit_rows: order.unit_rows,
            references: order.references,
            rows: self.dimensions.rows,
            num_inputs: self.dimensions.num_inputs,
            num_aux: self.dimensions.num_aux,
        })
    }
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
mod tests {
    use super::*;
    use crate::{
        compile,
        program::{RowTerm, compile::compile_folded, rows::Step},
        testing::*,
    };
    use blstrs::Scalar;
    use ff::Field;
    use proptest::prelude::*;

    /// A and B of row `row`, found as a device finds them.
    fn look_up(flat: &Flat<Scalar>, row: u32) -> [Vec<RowTerm<Scalar>>; 2] {
        let block = (row / BLOCK_ROWS) as usize;
        let (references, _) = flat.references.as_chunks::<3>();
        let [first, last] = [0, 1].map(|k| flat.block_references[block + k] as usize);
        let in_block = &references[first..=last];
        let [start, before, unit] = *in_block.iter().rfind(|r| r[0] <= row).unwrap();
        let at = (unit + (row - start)) as usize;
        let [shape, since] = [0, 1].map(|k| flat.unit_rows[2 * at + k]);
        [0, 1].map(|k| {
            let part = flat.shapes[2 * shape as usize + k] as usize;
            let end = flat.part_ends[part] as usize;
            let start = part
                .checked_sub(1)
                .map_or(0, |before| flat.part_ends[before] as usize);
            let (items, _) = flat.items.as_chunks::<2>();
            let terms = items[start..end]
                .iter()
                .flat_map(|&words| terms(flat, words));
            let flat_col = |(col, value)| match col & INPUT_BIT {
                0 => (flat.num_inputs + (before + since - col), value),
                _ => (col & !INPUT_BIT, value),
            };
            terms.map(flat_col).collect()
        })
    }

    fn terms(flat: &Flat<Scalar>, words: [u32; 2]) -> Vec<RowTerm<Scalar>> {
        let run = Item::decode(words).unwrap().as_run();
        let mut value = flat.coefficients[run.first.coefficient as usize];
        let terms = (0..run.length).map(|k| {
            let term = (run.first.col - k * run.gap, value);
            value = match run.step {
                Step::Stay => value,
                Step::Double => value.double(),
                Step::Halve => value * flat.halves[1],
            };
            term
        });
        terms.collect()
    }

    fn check(program: &Program<Scalar>) {
        let flat = program.flatten().unwrap();
        let mut rows = 0;
        for ([a, b, _], row) in program.unfold().zip(0u32..) {
            assert_eq!(look_up(&flat, row), [a, b]);
            rows += 1;
        }
        assert_eq!(rows, flat.rows);
        for (value, integer) in flat.coefficients.iter().zip(&flat.integers) {
            let magnitude = Scalar::from(u64::from(integer.unsigned_abs()));
            let of = if *integer < 0 { -magnitude } else { magnitude };
            assert!(*integer == 0 || of == *value);
        }
        assert_eq!(flat.integers[..2], [1, -1]);
        assert_eq!(flat.halves.len(), HALVES);
        assert_eq!(flat.halves[7] * Scalar::from(128), Scalar::ONE);
    }

    proptest! {
        #[test]
        fn flat_rows_are_the_programs(circuit in random_circuit()) {
            check(&compile_folded(circuit.blank()).unwrap());
            check(&compile(circuit.blank()).unwrap());
        }
    }

    /// Longer than any unit: references begin within blocks, and a repeat is
    /// cut into several.
    #[test]
    fn long_circuits_are_found_block_by_block() {
        check(&compile_folded(RandomCircuit::long().blank()).unwrap());
        let squares = compile_folded(RandomCircuit::squares(10_000).blank()).unwrap();
        check(&squares);
        let flat = squares.flatten().unwrap();
        assert!(flat.bytes() < squares.rows() * 2, "{}", flat.bytes());
    }
}
