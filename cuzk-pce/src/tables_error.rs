//! The error of a program's tables.

/// The problem of a program's tables.
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
