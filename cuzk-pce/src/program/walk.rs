//! A walk over the rows of a grammar, from any row on.

use super::{
    drift::Drifts,
    grammar::Grammar,
    stretch::Stretch,
    symbol::{NODE_BIT, REPEAT},
};

/// The rest of the walk in one node.
#[derive(Debug, Clone, Copy)]
enum Frame<'a> {
    Chunk(&'a [u32]),
    Repeat { symbol: u32, left: u32 },
}

/// Walks the terminals of a grammar in order, a stretch at a time.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    grammar: Grammar<'a>,
    drifts: Option<&'a Drifts>,
    stack: Vec<Frame<'a>>,
}

impl<'a> Walk<'a> {
    /// Begins at `row`. Returns the walk, and the cursor before that row. With `drifts`,
    /// which are those of this grammar, rows come in stretches as long as these know.
    pub(super) fn new(grammar: Grammar<'a>, row: u32, drifts: Option<&'a Drifts>) -> (Self, u32) {
        let mut walk = Walk {
            grammar,
            drifts,
            stack: Vec::new(),
        };
        let cursor = walk.descend(grammar.root, row).unwrap_or(0);
        (walk, cursor)
    }

    /// Goes down to the row `row` rows after the start of `symbol`. Returns the number of
    /// auxiliaries before it, or `None` if the symbol has fewer rows.
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
    use super::super::folder::Folder;
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
            let (walk, cursor) = Walk::new(self.grammar(), from, None);
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
        let body: Vec<u32> = (0..500u32)
            .map(|i| ((i * i).wrapping_mul(40_503) >> 7) % 97)
            .collect();
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
