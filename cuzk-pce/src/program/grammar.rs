//! A finished grammar, in the tables of a program.

use super::symbol::{NODE_BIT, Totals};

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

    /// Returns the rows and variables that a symbol stands for.
    pub(super) fn totals(&self, symbol: u32) -> Option<Totals> {
        if symbol & NODE_BIT == 0 {
            let [aux, ..] = *self.shapes.get((symbol >> 1) as usize)?;
            return Some(Totals { rows: 1, aux });
        }
        let [_, rows, aux] = *self.nodes.get((symbol & !NODE_BIT) as usize)?;
        Some(Totals { rows, aux })
    }
}
