//! A program's tables: everything in it but its coefficients. They are one block of words,
//! which can be written to a file and used in place from one.
//!
//! Five sections follow each other:
//!
//! * the end of each part's items;
//! * the items, two words each;
//! * the shapes, five words each;
//! * the nodes, three words each: the end of its words, its rows, its auxiliaries;
//! * the nodes' words.
//!
//! Invariant, established by [`check_tables`](super::check_tables::check_tables):
//!
//! * Every reference leads to something.
//! * A node refers to smaller ones, and has their totals.
//! * Only the root may have no rows. So a walk takes no more steps than there are rows,
//!   times its depth, which is bounded.
//! * No row, wherever the grammar puts it, reaches back before the first auxiliary
//!   variable.

use super::{
    folder::FoldedSequence,
    grammar::Grammar,
    interner::Interner,
    rows::{Item, Shape, items, terms},
};
use crate::{bytes::Words, csr::CsrError, tables_error::TablesError};
use ff::PrimeField;

/// How many of each there are, and the root of the grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) parts: u32,
    pub(super) items: u32,
    pub(super) shapes: u32,
    pub(super) nodes: u32,
    pub(super) children: u32,
    pub(super) root: u32,
}

impl Counts {
    /// Words of all sections together.
    pub(super) fn words(&self) -> u64 {
        let sections = [
            (self.parts, 1),
            (self.items, 2),
            (self.shapes, 5),
            (self.nodes, 3),
        ];
        let sum = |words, (count, each)| words + u64::from(count) * each;
        sections.into_iter().fold(u64::from(self.children), sum)
    }
}

/// The tables of one program.
#[derive(Debug)]
pub(super) struct Tables {
    words: Words,
    counts: Counts,
}

/// The sections of the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) part_ends: &'a [u32],
    pub(super) items: &'a [[u32; 2]],
    pub(super) grammar: Grammar<'a>,
}

impl<'a> View<'a> {
    /// The items of a part, as words.
    #[inline]
    pub(super) fn part(&self, part: u32) -> &'a [[u32; 2]] {
        let part = part as usize;
        let end = self.part_ends.get(part).map_or(0, |&end| end as usize);
        let before = part
            .checked_sub(1)
            .and_then(|before| self.part_ends.get(before));
        let start = before.map_or(0, |&start| start as usize);
        self.items.get(start..end).unwrap_or(&[])
    }

    /// The shape that a terminal names.
    #[inline]
    pub(super) fn shape(&self, terminal: u32) -> Option<Shape> {
        let words = self.grammar.shapes.get((terminal >> 1) as usize)?;
        Some(Shape::decode(*words))
    }
}

impl Tables {
    /// Puts the sections one after the other.
    ///
    /// # Errors
    /// [`CsrError::TooLarge`] if a section has more entries than 32 bits can
    /// number.
    pub(super) fn assemble<S: PrimeField>(
        parts: &Interner,
        coefficients: &[S],
        shapes: impl Iterator<Item = Shape>,
        folded: &FoldedSequence,
    ) -> Result<Self, CsrError> {
        let mut part_ends = Vec::with_capacity(parts.len());
        let mut item_words = Vec::new();
        for part in 0..count("parts", parts.len())? {
            let items = items(&terms(parts, part), coefficients);
            item_words.extend(items.into_iter().flat_map(Item::encode));
            part_ends.push(count("items", item_words.len() / 2)?);
        }
        let shape_words: Vec<u32> = shapes.flat_map(Shape::encode).collect();
        let mut children = Vec::new();
        let mut node_words = Vec::new();
        for (words, totals) in folded.nodes.iter().zip(&folded.totals) {
            children.extend_from_slice(words);
            let end = count("grammar words", children.len())?;
            node_words.extend([end, totals.rows, totals.aux]);
        }
        let counts = Counts {
            parts: count("parts", part_ends.len())?,
            items: count("items", item_words.len() / 2)?,
            shapes: count("shapes", shape_words.len() / 5)?,
            nodes: count("nodes", node_words.len() / 3)?,
            children: count("grammar words", children.len())?,
            root: folded.root,
        };
        let words = [part_ends, item_words, shape_words, node_words, children].concat();
        Ok(Tables {
            words: Words::from(words),
            counts,
        })
    }

    /// Takes a block of words that came from outside. Nothing is checked but
    /// its length: see [`check_tables`](super::check_tables::check_tables).
    pub(super) fn from_words(words: Words, counts: Counts) -> Result<Self, TablesError> {
        let got = words.as_slice().len();
        let expected = counts.words();
        if got as u64 != expected {
            return Err(TablesError::Length { expected, got });
        }
        Ok(Tables { words, counts })
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn words(&self) -> &[u32] {
        self.words.as_slice()
    }

    pub(super) fn view(&self) -> View<'_> {
        let counts = self.counts;
        let (part_ends, rest) = split_at(self.words.as_slice(), counts.parts, 1);
        let (items, rest) = split_at(rest, counts.items, 2);
        let (shapes, rest) = split_at(rest, counts.shapes, 5);
        let (nodes, children) = split_at(rest, counts.nodes, 3);
        View {
            part_ends,
            items: items.as_chunks().0,
            grammar: Grammar {
                shapes: shapes.as_chunks().0,
                nodes: nodes.as_chunks().0,
                children,
                root: counts.root,
            },
        }
    }
}

/// `count` entries of `each` words, and the rest. The sum of all sections has
/// been compared with the length.
fn split_at(words: &[u32], count: u32, each: usize) -> (&[u32], &[u32]) {
    let at = (count as usize).saturating_mul(each);
    words.split_at_checked(at).unwrap_or((words, &[]))
}

fn count(what: &'static str, got: usize) -> Result<u32, CsrError> {
    u32::try_from(got).map_err(|_| CsrError::TooLarge {
        what,
        got,
        limit: u32::MAX as usize,
    })
}
