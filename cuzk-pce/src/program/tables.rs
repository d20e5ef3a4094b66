//! A program's tables: all that is in it but its coefficients, as one block
//! of words that can be written to a file and used from one in place.
//!
//! Five sections follow each other: the end of each part's items, the items
//! (two words each), the shapes (five), the nodes (three: the end of its
//! words, its rows, its auxiliaries), and the nodes' words.
//!
//! Invariant, established by [`Tables::check`]: every reference leads to
//! something; a node refers to smaller ones and has their sums; only the root has
//! no rows, so that a walk takes no more steps than there are rows, times its depth,
//! which is at most [`DEPTH_MAX`]; and no row, wherever the grammar puts it, reaches
//! back before the first auxiliary variable.

use super::{
    interner::Interner,
    rows::{INPUT_BIT, Item, Shape, items},
    sequence::{FoldedSequence, Grammar, NODE_BIT, REPEAT, Totals, totals_of},
};
use crate::{bytes::Words, csr::CsrError, program::compile::terms};
use ff::PrimeField;

/// Deepest nesting of nodes. Every level of a grammar at most halves its
/// length and nests a repeat and a chunk, so 2^32 rows need 64.
const DEPTH_MAX: u8 = 66;

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

/// What is wrong with a program's tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TablesError {
    /// The block is not as long as its sections.
    #[error("sections: expected {expected} words, got {got}")]
    Length {
        /// The sum of the sections.
        expected: u64,
        /// Length of the block.
        got: usize,
    },
    /// A section does not begin, grow or end as it must.
    #[error("{section} {at}: its extent runs backwards or past the end of its section")]
    Extent {
        /// Which kind of entry.
        section: &'static str,
        /// Which one, from 0.
        at: usize,
    },
    /// An entry refers to what is not there, or has values out of range.
    #[error("{section} {at}: it refers to something that does not exist")]
    Reference {
        /// Which kind of entry.
        section: &'static str,
        /// Which one, from 0.
        at: usize,
    },
    /// A node's totals are not its children's, or nothing.
    #[error(
        "node {at}: its totals are not the sums over its children, or none, or it nests too deep"
    )]
    Node {
        /// Which one, from 0.
        at: usize,
    },
    /// The rows do not fit the circuit's dimensions.
    #[error("rows: they are not {rows}, or reach outside {num_aux} auxiliary variables")]
    Dimensions {
        /// Rows announced.
        rows: u32,
        /// Auxiliary variables announced.
        num_aux: u32,
    },
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
    /// its length: see [`Tables::check`].
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

    /// Checks the invariant on [the module](self).
    ///
    /// # Errors
    /// The first violation, as a [`TablesError`].
    pub(super) fn check(
        &self,
        num_coefficients: usize,
        num_inputs: u32,
        num_aux: u32,
        rows: u32,
    ) -> Result<(), TablesError> {
        let view = self.view();
        let part_reach = part_reaches(&view, num_coefficients, num_inputs)?;
        let shape_reach = shape_reaches(&view, &part_reach)?;
        let reach = root_reach(&view, &shape_reach)?;
        let totals = view.grammar.totals(view.grammar.root);
        let fits = totals.is_some_and(|totals| totals.rows == rows && totals.aux <= num_aux);
        if fits && reach <= 0 {
            Ok(())
        } else {
            Err(TablesError::Dimensions { rows, num_aux })
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

/// For each part, how far back its oldest auxiliary variable is, 0 for none.
fn part_reaches(
    view: &View<'_>,
    num_coefficients: usize,
    num_inputs: u32,
) -> Result<Vec<u32>, TablesError> {
    check_extents("part", view.part_ends, view.items.len())?;
    let mut reaches = Vec::with_capacity(view.part_ends.len());
    let parts = 0..view.part_ends.len();
    for (at, part) in parts.zip(0u32..) {
        let mut reach = 0;
        for &words in view.part(part) {
            let first = Item::decode(words).map(|item| item.as_run().first);
            let first = first.filter(|first| {
                let is_col = match first.col & INPUT_BIT {
                    0 => first.col > 0,
                    _ => first.col & !INPUT_BIT < num_inputs,
                };
                is_col && (first.coefficient as usize) < num_coefficients
            });
            let Some(first) = first else {
                let section = "part";
                return Err(TablesError::Reference { section, at });
            };
            if first.col & INPUT_BIT == 0 {
                reach = reach.max(first.col);
            }
        }
        reaches.push(reach);
    }
    Ok(reaches)
}

/// For each shape, how many auxiliary variables must come before its row's
/// advance; negative if it needs none.
fn shape_reaches(view: &View<'_>, part_reach: &[u32]) -> Result<Vec<i64>, TablesError> {
    let shapes = view.grammar.shapes.iter().enumerate();
    shapes
        .map(|(at, &words)| {
            let shape = Shape::decode(words);
            let mut reach = shape.boolean;
            for part in shape.parts {
                let section = "shape";
                let part = part_reach.get(part as usize);
                reach = reach.max(*part.ok_or(TablesError::Reference { section, at })?);
            }
            Ok(i64::from(reach) - i64::from(shape.advance))
        })
        .collect()
}

/// How many auxiliary variables must come before the first row.
fn root_reach(view: &View<'_>, shape_reach: &[i64]) -> Result<i64, TablesError> {
    let grammar = view.grammar;
    let ends: Vec<u32> = grammar.nodes.iter().map(|node| node[0]).collect();
    check_extents("node", &ends, grammar.children.len())?;
    // By node: how far it reaches back, and how deep it nests.
    let mut known: Vec<(i64, u8)> = Vec::with_capacity(grammar.nodes.len());
    for (at, node) in (0u32..).zip(grammar.nodes) {
        let broken = || TablesError::Node { at: at as usize };
        let words = grammar.words(at | NODE_BIT).ok_or_else(broken)?;
        let [_, rows, aux] = *node;
        let child = |symbol: u32| {
            // Nodes come after their children.
            let is_earlier = symbol & NODE_BIT == 0 || symbol & !NODE_BIT < at;
            grammar.totals(symbol).filter(|_| is_earlier)
        };
        let is_root = at | NODE_BIT == grammar.root;
        if totals_of(words, child) != Some(Totals { rows, aux }) || (rows == 0 && !is_root) {
            return Err(broken());
        }
        let reach_of = |symbol: u32| match symbol & NODE_BIT {
            0 => shape_reach
                .get((symbol >> 1) as usize)
                .map(|&reach| (reach, 0)),
            _ => known.get((symbol & !NODE_BIT) as usize).copied(),
        };
        let children = match words {
            &[REPEAT, ref symbol, _] => std::slice::from_ref(symbol),
            words => words,
        };
        let (mut before, mut reach, mut depth) = (0, i64::MIN, 0);
        for &symbol in children {
            let (child_reach, child_depth) = reach_of(symbol).ok_or_else(broken)?;
            reach = reach.max(child_reach - before);
            depth = depth.max(child_depth + 1);
            before += child(symbol).map_or(0, |totals| i64::from(totals.aux));
        }
        if depth > DEPTH_MAX {
            return Err(broken());
        }
        known.push((reach, depth));
    }
    match view.grammar.root & NODE_BIT {
        0 => shape_reach.get((grammar.root >> 1) as usize).copied(),
        _ => known
            .get((grammar.root & !NODE_BIT) as usize)
            .map(|known| known.0),
    }
    .ok_or(TablesError::Reference {
        section: "root",
        at: 0,
    })
}

/// Ends never decrease and the last is the length of what they divide.
fn check_extents(section: &'static str, ends: &[u32], length: usize) -> Result<(), TablesError> {
    if let Some(at) = ends.windows(2).position(|w| w[1] < w[0]) {
        return Err(TablesError::Extent {
            section,
            at: at + 1,
        });
    }
    match ends.last() {
        Some(&last) if last as usize != length => Err(TablesError::Extent {
            section,
            at: ends.len() - 1,
        }),
        None if length > 0 => Err(TablesError::Extent { section, at: 0 }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of nodes, as the words of each with its rows, over one shape that reads
    /// nothing. The last node is the root.
    fn of_nodes(nodes: &[(&[u32], u32)]) -> Tables {
        let shape = Shape {
            parts: [0; 3],
            boolean: 0,
            advance: 0,
        };
        let mut words = vec![0]; // The part's end.
        words.extend(shape.encode());
        let mut end = 0;
        for (children, rows) in nodes {
            end += u32::try_from(children.len()).unwrap();
            words.extend([end, *rows, 0]);
        }
        words.extend(nodes.iter().flat_map(|(children, _)| *children));
        let counts = Counts {
            parts: 1,
            items: 0,
            shapes: 1,
            nodes: u32::try_from(nodes.len()).unwrap(),
            children: end,
            root: NODE_BIT | u32::try_from(nodes.len() - 1).unwrap(),
        };
        Tables::from_words(Words::from(words), counts).unwrap()
    }

    /// Two nested repeats of nothing would be walked for 2^64 steps.
    #[test]
    fn a_node_without_rows_is_refused_unless_it_is_the_root() {
        const ROW: u32 = 0;
        let node = |number: u32| NODE_BIT | number;
        let check = |nodes: &[(&[u32], u32)]| {
            let rows = nodes.last().unwrap().1;
            of_nodes(nodes).check(0, 1, 0, rows)
        };
        assert_eq!(check(&[(&[], 0)]), Ok(()));
        assert_eq!(check(&[(&[ROW], 1), (&[node(0), node(0)], 2)]), Ok(()));
        let nested: &[(&[u32], u32)] = &[
            (&[], 0),
            (&[REPEAT, node(0), u32::MAX], 0),
            (&[REPEAT, node(1), u32::MAX], 0),
            (&[node(2), ROW], 1),
            (&[ROW, node(3)], 2),
        ];
        assert_eq!(check(nested), Err(TablesError::Node { at: 0 }));
        let none_of_some: &[(&[u32], u32)] = &[(&[REPEAT, ROW, 0], 0), (&[ROW, node(0)], 1)];
        assert_eq!(check(none_of_some), Err(TablesError::Node { at: 0 }));
    }
}
