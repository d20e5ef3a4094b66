//! Repetition: the order of rows as a grammar.
//!
//! A sequence of *symbols* is folded level by level. On each level equal
//! neighbours become one *repeat*, and what remains is cut into *chunks* where
//! a hash of the last few symbols says so: the cut depends on content alone,
//! so equal stretches are cut equally wherever they stand, and each distinct
//! chunk is kept once. Repeats and chunks are *nodes*, and the sequence of
//! nodes is the next level's input, until one node is left: the root.
//!
//! A symbol is either a terminal (a row, see [`super::rows`]) or, with
//! [`NODE_BIT`] set, a node. Every node knows how many rows and auxiliary
//! variables it stands for, so a walk can start at any row without reading
//! what comes before: that is the index, and there is no other.
//!
//! Invariant: a node's children are terminals and nodes of smaller number;
//! its totals are the sums over them; only the root may be empty.

use super::{
    drift::{Drift, Drifts},
    interner::{Interner, mix},
};
use crate::csr::CsrError;

/// Marks a symbol that is a node.
pub(super) const NODE_BIT: u32 = 1 << 31;

/// First word of a repeat, followed by the symbol and how often; no symbol
/// has this value, for node numbers end before it.
pub(super) const REPEAT: u32 = u32::MAX;

/// A chunk ends where four bits of its hash are zero, every 16 symbols or so;
/// twice as many save little, half as many double the walk's depth.
const CUT_BITS: u32 = 4;

/// No chunk is shorter but the last of a level, so that every level is at most
/// half as long as the one below and there is a last one.
const CHUNK_SYMBOLS_MIN: usize = 2;

/// No chunk is longer, so that a search in one is short.
const CHUNK_SYMBOLS_MAX: usize = 64;

/// How much a symbol stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Rows.
    pub(super) rows: u32,
    /// Auxiliary variables allocated from before its first row to its last.
    pub(super) aux: u32,
}

impl Totals {
    fn times(self, count: u32) -> Option<Self> {
        Some(Totals {
            rows: self.rows.checked_mul(count)?,
            aux: self.aux.checked_mul(count)?,
        })
    }

    fn plus(self, other: Self) -> Option<Self> {
        Some(Totals {
            rows: self.rows.checked_add(other.rows)?,
            aux: self.aux.checked_add(other.aux)?,
        })
    }
}

/// The totals of a node with these words, given those of its children; `None`
/// if they overflow or a child is unknown.
pub(super) fn totals_of(words: &[u32], child: impl Fn(u32) -> Option<Totals>) -> Option<Totals> {
    match *words {
        [REPEAT, symbol, count] => child(symbol)?.times(count),
        _ => words
            .iter()
            .try_fold(Totals::default(), |sum, &symbol| sum.plus(child(symbol)?)),
    }
}

/// One level while it is being folded.
#[derive(Debug, Default)]
struct Level {
    /// The last symbol and how often it came in a row.
    pending: Option<(u32, u32)>,
    /// The open chunk.
    chunk: Vec<u32>,
    /// Hash of the last four symbols.
    hash: u64,
}

impl Level {
    /// Adds a symbol to the open chunk and says whether the chunk ends here.
    fn add(&mut self, symbol: u32) -> bool {
        self.chunk.push(symbol);
        self.hash = (self.hash << 16).wrapping_add(mix(0, symbol));
        let is_cut = self.hash >> (64 - CUT_BITS) == 0;
        let length = self.chunk.len();
        length >= CHUNK_SYMBOLS_MIN && is_cut || length >= CHUNK_SYMBOLS_MAX
    }
}

/// Folds a stream of terminals into a grammar.
#[derive(Debug, Default)]
pub(super) struct Folder {
    nodes: Interner,
    totals: Vec<Totals>,
    levels: Vec<Level>,
}

/// The grammar of a whole sequence.
#[derive(Debug)]
pub(super) struct FoldedSequence {
    /// The words of every node, by number.
    pub(super) nodes: Interner,
    /// What each node stands for.
    pub(super) totals: Vec<Totals>,
    /// The symbol that stands for the whole sequence.
    pub(super) root: u32,
}

impl Folder {
    /// Appends a terminal. `aux_of` says how many auxiliary variables a
    /// terminal was preceded by.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] past 2^32 rows or 2^31 nodes.
    pub(super) fn push(
        &mut self,
        terminal: u32,
        aux_of: &impl Fn(u32) -> u32,
    ) -> Result<(), CsrError> {
        self.push_at(0, terminal, aux_of)
    }

    fn push_at(
        &mut self,
        mut at: usize,
        mut symbol: u32,
        aux_of: &impl Fn(u32) -> u32,
    ) -> Result<(), CsrError> {
        loop {
            if at == self.levels.len() {
                self.levels.push(Level::default());
            }
            let level = &mut self.levels[at];
            match &mut level.pending {
                Some((last, count)) if *last == symbol => {
                    *count += 1;
                    return Ok(());
                }
                pending => {
                    let Some(before) = pending.replace((symbol, 1)) else {
                        return Ok(());
                    };
                    let repeated = self.repeat(before, aux_of)?;
                    if !self.levels[at].add(repeated) {
                        return Ok(());
                    }
                    symbol = self.close_chunk(at, aux_of)?;
                    at += 1;
                }
            }
        }
    }

    /// Ends the sequence.
    ///
    /// # Errors
    /// As [`Folder::push`].
    pub(super) fn finish(
        mut self,
        aux_of: &impl Fn(u32) -> u32,
    ) -> Result<FoldedSequence, CsrError> {
        let mut at = 0;
        let root = loop {
            let Some(level) = self.levels.get_mut(at) else {
                break self.node(&[], aux_of)?;
            };
            if let Some(last) = level.pending.take() {
                let symbol = self.repeat(last, aux_of)?;
                self.levels[at].add(symbol);
            }
            let is_last = at + 1 == self.levels.len();
            if is_last || !self.levels[at].chunk.is_empty() {
                let symbol = self.close_chunk(at, aux_of)?;
                if is_last {
                    break symbol;
                }
                self.push_at(at + 1, symbol, aux_of)?;
            }
            at += 1;
        };
        Ok(FoldedSequence {
            nodes: self.nodes,
            totals: self.totals,
            root,
        })
    }

    fn close_chunk(&mut self, at: usize, aux_of: &impl Fn(u32) -> u32) -> Result<u32, CsrError> {
        let mut chunk = std::mem::take(&mut self.levels[at].chunk);
        let symbol = match chunk[..] {
            [only] => Ok(only),
            _ => self.node(&chunk, aux_of),
        };
        chunk.clear();
        self.levels[at].chunk = chunk;
        symbol
    }

    fn repeat(
        &mut self,
        (symbol, count): (u32, u32),
        aux_of: &impl Fn(u32) -> u32,
    ) -> Result<u32, CsrError> {
        if count == 1 {
            return Ok(symbol);
        }
        self.node(&[REPEAT, symbol, count], aux_of)
    }

    fn node(&mut self, words: &[u32], aux_of: &impl Fn(u32) -> u32) -> Result<u32, CsrError> {
        let (name, new) = self.nodes.intern(words)?;
        if new {
            let child = |symbol: u32| match symbol & NODE_BIT {
                0 => Some(Totals {
                    rows: 1,
                    aux: aux_of(symbol),
                }),
                _ => self.totals.get((symbol & !NODE_BIT) as usize).copied(),
            };
            let totals = totals_of(words, child).ok_or(CsrError::TooLarge {
                what: "rows",
                got: usize::MAX,
                limit: u32::MAX as usize,
            })?;
            self.totals.push(totals);
        }
        Ok(name | NODE_BIT)
    }
}

/// A finished grammar, as a program's tables hold it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar<'a> {
    /// By shape: five words, of which the first is how far it advances.
    pub(super) shapes: &'a [[u32; 5]],
    /// By node: the end of its words in `children`, its rows and auxiliaries.
    pub(super) nodes: &'a [[u32; 3]],
    /// The words of all nodes.
    pub(super) children: &'a [u32],
    /// The symbol that stands for everything.
    pub(super) root: u32,
}

impl<'a> Grammar<'a> {
    /// The words of a node, if `symbol` is one.
    #[inline]
    pub(super) fn words(&self, symbol: u32) -> Option<&'a [u32]> {
        if symbol & NODE_BIT == 0 {
            return None;
        }
        let node = (symbol & !NODE_BIT) as usize;
        let end = self.nodes.get(node)?[0] as usize;
        let start = match node.checked_sub(1) {
            Some(before) => self.nodes.get(before)?[0] as usize,
            None => 0,
        };
        self.children.get(start..end)
    }

    /// What a symbol stands for.
    pub(super) fn totals(&self, symbol: u32) -> Option<Totals> {
        if symbol & NODE_BIT == 0 {
            let [aux, ..] = *self.shapes.get((symbol >> 1) as usize)?;
            return Some(Totals { rows: 1, aux });
        }
        let [_, rows, aux] = *self.nodes.get((symbol & !NODE_BIT) as usize)?;
        Some(Totals { rows, aux })
    }

    /// The terminals from `row` on, and the cursor before that row. With
    /// `drifts`, which are those of this grammar, rows come in stretches as
    /// long as these know.
    pub(super) fn walk(self, row: u32, drifts: Option<&'a Drifts>) -> (Walk<'a>, u32) {
        let mut walk = Walk {
            grammar: self,
            drifts,
            stack: Vec::new(),
        };
        let cursor = walk.descend(self.root, row).unwrap_or(0);
        (walk, cursor)
    }
}

/// What is left to do in one node.
#[derive(Debug, Clone, Copy)]
enum Frame<'a> {
    Chunk(&'a [u32]),
    Repeat { symbol: u32, left: u32 },
}

/// Rows that follow each other and are run together: of one shape, or of
/// shapes that take turns and drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch<'a> {
    /// The first terminals, one or two of them.
    pub(super) terminals: [u32; 2],
    /// How many terminals take turns: 1 or 2.
    pub(super) period: usize,
    /// How often they do.
    pub(super) count: usize,
    /// How they change from turn to turn; `None` if they do not.
    pub(super) drift: Option<Drift<'a>>,
}

impl Stretch<'_> {
    fn of_one(terminal: u32, count: u32) -> Self {
        Stretch {
            terminals: [terminal; 2],
            period: 1,
            count: count as usize,
            drift: None,
        }
    }

    /// The terminal in place `at` of turn `turn`.
    #[inline]
    pub(super) fn terminal(&self, turn: usize, at: usize) -> u32 {
        let first = self.terminals[at % 2];
        self.drift.map_or(first, |drift| {
            let terminal = drift.terminals.get(turn * self.period + at);
            terminal.copied().unwrap_or(first)
        })
    }

    /// Every terminal in order.
    pub(super) fn unfold(self) -> impl Iterator<Item = u32> {
        (0..self.count)
            .flat_map(move |turn| (0..self.period).map(move |at| self.terminal(turn, at)))
    }
}

/// Walks the terminals of a grammar in order, a stretch at a time.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    grammar: Grammar<'a>,
    drifts: Option<&'a Drifts>,
    stack: Vec<Frame<'a>>,
}

impl<'a> Walk<'a> {
    /// Goes down to the row `row` rows after the start of `symbol`; returns
    /// how many auxiliaries come before it, or `None` if it has fewer rows.
    fn descend(&mut self, mut symbol: u32, mut row: u32) -> Option<u32> {
        if row >= self.grammar.totals(symbol)?.rows {
            return None;
        }
        let mut cursor = 0;
        while let Some(words) = self.grammar.words(symbol) {
            let frame;
            (symbol, frame) = if let &[REPEAT, inner, count] = words {
                let one = self.grammar.totals(inner)?;
                let done = row.checked_div(one.rows)?;
                row -= done * one.rows;
                cursor += done * one.aux;
                let left = count.checked_sub(done + 1)?;
                (
                    inner,
                    Frame::Repeat {
                        symbol: inner,
                        left,
                    },
                )
            } else {
                let (child, rest) = self.child_with_row(words, &mut row, &mut cursor)?;
                (child, Frame::Chunk(rest))
            };
            self.stack.push(frame);
        }
        self.stack.push(Frame::Repeat { symbol, left: 1 });
        Some(cursor)
    }

    /// The child that `row` falls into and those after it; `row` and `cursor`
    /// move past those before it.
    fn child_with_row(
        &self,
        words: &'a [u32],
        row: &mut u32,
        cursor: &mut u32,
    ) -> Option<(u32, &'a [u32])> {
        let mut rest = words;
        loop {
            let (&child, after) = rest.split_first()?;
            let one = self.grammar.totals(child)?;
            if *row < one.rows {
                return Some((child, after));
            }
            *row -= one.rows;
            *cursor += one.aux;
            rest = after;
        }
    }

    /// The words of a node as they are walked, if `symbol` is one.
    #[inline]
    fn words(&self, symbol: u32) -> Option<&'a [u32]> {
        match self.drifts {
            Some(drifts) if symbol & NODE_BIT != 0 => drifts.words(symbol & !NODE_BIT),
            _ => self.grammar.words(symbol),
        }
    }

    /// Puts what a symbol stands for on the stack, unless that is a stretch.
    #[inline]
    fn enter(&mut self, symbol: u32) -> Option<Stretch<'a>> {
        if symbol & NODE_BIT == 0 {
            let drift = self
                .drifts
                .and_then(|drifts| drifts.stretch(symbol, self.grammar));
            return Some(drift.unwrap_or_else(|| Stretch::of_one(symbol, 1)));
        }
        match *self.words(symbol)? {
            [REPEAT, symbol, count] if symbol & NODE_BIT == 0 => {
                return Some(Stretch::of_one(symbol, count));
            }
            [REPEAT, symbol, left] => self.stack.push(Frame::Repeat { symbol, left }),
            ref words => self.stack.push(Frame::Chunk(words)),
        }
        None
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Stretch<'a>;

    fn next(&mut self) -> Option<Stretch<'a>> {
        loop {
            let symbol = match self.stack.last_mut()? {
                Frame::Repeat { left: 0, .. } | Frame::Chunk([]) => {
                    self.stack.pop();
                    continue;
                }
                &mut Frame::Repeat { symbol, left } if symbol & NODE_BIT == 0 => {
                    self.stack.pop();
                    return Some(Stretch::of_one(symbol, left));
                }
                Frame::Repeat { symbol, left } => {
                    *left -= 1;
                    *symbol
                }
                Frame::Chunk(words) => {
                    let (&first, rest) = words.split_first()?;
                    *words = rest;
                    first
                }
            };
            if let Some(stretch) = self.enter(symbol) {
                return Some(stretch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Terminal t is row of shape t / 2, which advances by t / 2.
    fn aux_of(terminal: u32) -> u32 {
        terminal >> 1
    }

    struct Owned {
        shapes: Vec<[u32; 5]>,
        nodes: Vec<[u32; 3]>,
        children: Vec<u32>,
        root: u32,
    }

    fn fold(terminals: &[u32]) -> Owned {
        let mut folder = Folder::default();
        for &terminal in terminals {
            folder.push(terminal, &aux_of).unwrap();
        }
        let folded = folder.finish(&aux_of).unwrap();
        let mut children = vec![];
        let mut nodes = vec![];
        for (words, totals) in folded.nodes.iter().zip(&folded.totals) {
            children.extend_from_slice(words);
            let end = u32::try_from(children.len()).unwrap();
            nodes.push([end, totals.rows, totals.aux]);
        }
        Owned {
            shapes: (0..64).map(|advance| [advance, 0, 0, 0, 0]).collect(),
            nodes,
            children,
            root: folded.root,
        }
    }

    impl Owned {
        fn grammar(&self) -> Grammar<'_> {
            Grammar {
                shapes: &self.shapes,
                nodes: &self.nodes,
                children: &self.children,
                root: self.root,
            }
        }

        fn unfold(&self, from: u32) -> (Vec<u32>, u32) {
            let (walk, cursor) = self.grammar().walk(from, None);
            (walk.flat_map(Stretch::unfold).collect(), cursor)
        }
    }

    /// Sequences with loops in loops, and without any.
    fn terminals() -> impl Strategy<Value = Vec<u32>> {
        let block = prop::collection::vec(0..100u32, 1..30);
        let repeated = (block, 1..40usize).prop_map(|(block, times)| block.repeat(times));
        let twice = (prop::collection::vec(repeated, 0..6), 1..4usize);
        twice.prop_map(|(blocks, times)| blocks.concat().repeat(times))
    }

    proptest! {
        #[test]
        fn unfolds_to_what_was_folded_from_any_row(terminals in terminals(), at in any::<prop::sample::Index>()) {
            let owned = fold(&terminals);
            prop_assert_eq!(owned.unfold(0), (terminals.clone(), 0));
            let from = at.index(terminals.len() + 1);
            let (rest, cursor) = owned.unfold(u32::try_from(from).unwrap());
            prop_assert_eq!(&rest[..], &terminals[from..]);
            if from < terminals.len() {
                prop_assert_eq!(cursor, terminals[..from].iter().map(|&t| aux_of(t)).sum::<u32>());
            }
            let totals = owned.grammar().totals(owned.root).unwrap();
            prop_assert_eq!(totals.rows as usize, terminals.len());
            prop_assert_eq!(totals.aux, terminals.iter().map(|&t| aux_of(t)).sum::<u32>());
        }
    }

    #[test]
    fn a_loop_folds_to_almost_nothing() {
        // A sequence without a period: the high bits of a quadratic residue.
        let body: Vec<u32> = (0..500u32).map(|i| ((i * i * 40_503) >> 7) % 97).collect();
        let once = fold(&body).children.len();
        let often = fold(&body.repeat(1_000)).children.len();
        assert!(often < 2 * once + 200, "{often} words against {once}");
    }

    #[test]
    fn alternation_ends() {
        let terminals: Vec<u32> = (0..100u32)
            .flat_map(|k| [k, (k + 1) % 100].repeat(300))
            .collect();
        assert_eq!(fold(&terminals).unfold(0).0, terminals);
    }
}
