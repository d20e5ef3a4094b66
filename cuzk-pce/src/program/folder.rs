//! Repetition: the order of rows as a grammar.
//!
//! A sequence of *symbols* is folded level by level. On each level equal neighbours become
//! one *repeat*. The rest is cut into *chunks*, at places that a hash of the last few
//! symbols decides. The cut depends on content alone, so equal stretches are cut equally
//! wherever they stand. Each distinct chunk is kept once. Repeats and chunks are *nodes*,
//! and the sequence of nodes is the next level's input, until one node is left: the root.
//!
//! A symbol is either a terminal (a row, see [`super::rows`]) or, with [`NODE_BIT`] set, a
//! node. Every node has the numbers of rows and auxiliary variables that it stands for. So
//! a walk can start at any row without reading the rows before it. That is the only index.
//!
//! Invariant: a node's children are terminals and nodes of smaller number;
//! its totals are the sums over them; only the root may be empty.

use super::{
    interner::{Interner, mix},
    symbol::{NODE_BIT, REPEAT, Totals, totals_of},
};
use crate::csr::CsrError;

/// A chunk ends where four bits of its hash are zero, every 16 symbols or so. Chunks twice
/// as long save little. Chunks half as long double the walk's depth.
const CUT_BITS: u32 = 4;

/// Only the last chunk of a level is shorter. So every level is at most half as long as the
/// one below, and there is a last level.
const CHUNK_SYMBOLS_MIN: usize = 2;

/// No chunk is longer, so that a search in one is short.
const CHUNK_SYMBOLS_MAX: usize = 64;

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
    /// The rows and variables that each node stands for.
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
