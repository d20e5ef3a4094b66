//! The symbols of a grammar, and what each stands for.

/// Marks a symbol that is a node.
pub(super) const NODE_BIT: u32 = 1 << 31;

/// First word of a repeat, followed by the symbol and how often; no symbol
/// has this value, for node numbers end before it.
pub(super) const REPEAT: u32 = u32::MAX;

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
