//! Shapes that drift: neighbours that differ only in how far back their
//! columns are, and always by the same.
//!
//! Columns count back from the cursor. A row may allocate more variables, or fewer, than
//! lie between the bits of the word that it reads. A majority, for example, allocates two
//! for each bit. Then every bit's row is another shape. A grammar sees no repetition there.
//! An evaluation does: the columns still go forward by the same number of variables from
//! row to row, their *stride*.
//!
//! [`Drifts`] is a second reading of a grammar, made together with the program. It has the
//! words of each node. Stretches of drifting shapes, or of two that take turns, are one
//! symbol.
//!
//! Invariant: unfolded it is the grammar itself.

use super::{
    grammar::Grammar,
    part::{GENERAL, Part, VARIABLES_MAX},
    rows::Shape,
    stretch::{Drift, Stretch, Strides},
    symbol::{NODE_BIT, REPEAT},
};

/// Marks a symbol that is a drift. Terminals end before it, or there are no
/// drifts.
const DRIFT_BIT: u32 = 1 << 30;

/// Fewer rows are not worth a symbol.
const ROWS_MIN: usize = 4;

/// Greatest stride, in variables: what an evaluation gathers at a time.
const STRIDE_MAX: i64 = 2;

/// Where a drift's terminals are in the grammar, and how they change.
#[derive(Debug, Clone, Copy)]
struct Found {
    start: u32,
    period: u8,
    count: u32,
    strides: Strides,
}

/// The words of all nodes, drifts put together.
#[derive(Debug, Default)]
pub(super) struct Drifts {
    ends: Vec<u32>,
    symbols: Vec<u32>,
    found: Vec<Found>,
}

impl Drifts {
    /// Finds the drifts in a grammar that has been checked. `None` if it has
    /// none, or more shapes than they can be told from.
    pub(super) fn find(grammar: Grammar<'_>, parts: &[Part]) -> Option<Self> {
        if grammar.shapes.len() >= (DRIFT_BIT / 2) as usize {
            return None;
        }
        let finder = Finder { grammar, parts };
        let mut drifts = Drifts::default();
        let mut start = 0;
        for &[end, ..] in grammar.nodes {
            let words = grammar.children.get(start as usize..end as usize)?;
            drifts.push_node(start, words, &finder)?;
            start = end;
        }
        (!drifts.found.is_empty()).then_some(drifts)
    }

    fn push_node(&mut self, start: u32, words: &[u32], finder: &Finder<'_>) -> Option<()> {
        let mut rest = words;
        let mut at = start;
        while let Some(&first) = rest.first() {
            let is_chunk = words.first() != Some(&REPEAT);
            let found = is_chunk.then(|| finder.longest(at, rest)).flatten();
            let length = match found {
                None => {
                    self.symbols.push(first);
                    1
                }
                Some(found) => {
                    let name = u32::try_from(self.found.len()).ok()?;
                    self.symbols.push(DRIFT_BIT | name);
                    self.found.push(found);
                    found.count * u32::from(found.period)
                }
            };
            rest = rest.get(length as usize..)?;
            at += length;
        }
        self.ends.push(u32::try_from(self.symbols.len()).ok()?);
        Some(())
    }

    /// The words of a node.
    #[inline]
    pub(super) fn words(&self, node: u32) -> Option<&[u32]> {
        let node = node as usize;
        let end = *self.ends.get(node)? as usize;
        let start = match node.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.symbols.get(start..end)
    }

    /// Returns the stretch that a symbol stands for, if it is a drift.
    #[inline]
    pub(super) fn stretch<'a>(&self, symbol: u32, grammar: Grammar<'a>) -> Option<Stretch<'a>> {
        if symbol & DRIFT_BIT == 0 {
            return None;
        }
        let found = self.found.get((symbol & !DRIFT_BIT) as usize)?;
        let period = usize::from(found.period);
        let start = found.start as usize;
        let rows = found.count as usize * period;
        let terminals = grammar.children.get(start..start + rows)?;
        Some(Stretch {
            terminals: [*terminals.first()?, *terminals.get(period - 1)?],
            period,
            count: found.count as usize,
            drift: Some(Drift {
                terminals,
                strides: found.strides,
            }),
        })
    }

    /// Bytes held.
    pub(super) fn resident_bytes(&self) -> usize {
        size_of_val(&self.ends[..]) + size_of_val(&self.symbols[..]) + size_of_val(&self.found[..])
    }
}

struct Finder<'a> {
    grammar: Grammar<'a>,
    parts: &'a [Part],
}

impl Finder<'_> {
    /// The longest drift that some words of a chunk begin with.
    fn longest(&self, start: u32, words: &[u32]) -> Option<Found> {
        let found = [1, 2].map(|period| self.drift(start, words, period));
        let rows = |found: &Found| found.count as usize * usize::from(found.period);
        let found = found.into_iter().flatten().max_by_key(rows)?;
        (rows(&found) >= ROWS_MIN).then_some(found)
    }

    fn drift(&self, start: u32, words: &[u32], period: u8) -> Option<Found> {
        let turns = words.chunks_exact(usize::from(period));
        let advance = turns.clone().next()?.iter().try_fold(0, |sum, &terminal| {
            Some(sum + i64::from(self.shape(terminal)?.advance))
        })?;
        let mut strides = turns
            .clone()
            .zip(turns.skip(1))
            .map_while(|(from, to)| self.strides([from, to], advance));
        let first = strides.next()?;
        let more = strides.take_while(|strides| *strides == first).count();
        Some(Found {
            start,
            period,
            count: u32::try_from(more + 2).ok()?,
            strides: first,
        })
    }

    fn shape(&self, symbol: u32) -> Option<Shape> {
        if symbol & NODE_BIT != 0 {
            return None;
        }
        let words = self.grammar.shapes.get((symbol >> 1) as usize)?;
        Some(Shape::decode(*words))
    }

    /// How the columns of a turn move to those of the next.
    fn strides(&self, [from, to]: [&[u32]; 2], advance: i64) -> Option<Strides> {
        let mut all = Strides::default();
        for (at, (&from, &to)) in from.iter().zip(to).enumerate() {
            let (from, to) = (self.shape(from)?, self.shape(to)?);
            if from.advance != to.advance {
                return None;
            }
            // Columns and their strides, to see that equal ones stay equal.
            let mut known = [(0, 0); 3 * VARIABLES_MAX];
            let mut columns = 0;
            for (matrix, (from_part, to_part)) in from.parts.into_iter().zip(to.parts).enumerate() {
                let from = self.parts.get(from_part as usize)?;
                let to = self.parts.get(to_part as usize)?;
                let same_form = from.sums == to.sums && from.variables == to.variables;
                if from_part != to_part && (from.variables == GENERAL || !same_form) {
                    return None;
                }
                for (variable, (&from, &to)) in from.cols().iter().zip(to.cols()).enumerate() {
                    let stride = advance - (i64::from(to) - i64::from(from));
                    if !(0..=STRIDE_MAX).contains(&stride)
                        || known[..columns]
                            .iter()
                            .any(|&(col, other)| col == from && other != stride)
                    {
                        return None;
                    }
                    known[columns] = (from, stride);
                    columns += 1;
                    all.set(at, matrix, variable, u64::try_from(stride).ok()?);
                }
            }
        }
        Some(all)
    }
}
