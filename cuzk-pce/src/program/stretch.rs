//! Rows that follow each other and are run together.

use super::part::VARIABLES_MAX;

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
    pub(super) fn of_one(terminal: u32, count: u32) -> Self {
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

/// How the shapes of a stretch change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drift<'a> {
    /// The terminals of all its rows.
    pub(super) terminals: &'a [u32],
    /// The strides of all columns.
    pub(super) strides: Strides,
}

/// The distances that columns move from turn to turn, two bits each. There is one for each
/// of two shapes that take turns, each matrix, and each variable of a small part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Strides(u64);

impl Strides {
    /// The stride of a variable, in variables.
    #[inline]
    pub(super) fn of(self, at: usize, matrix: usize, variable: usize) -> usize {
        let place = (at * 3 + matrix) * VARIABLES_MAX + variable;
        // Two bits.
        usize::try_from(self.0 >> (2 * place) & 3).unwrap_or(0)
    }

    pub(super) fn set(&mut self, at: usize, matrix: usize, variable: usize, stride: u64) {
        let place = (at * 3 + matrix) * VARIABLES_MAX + variable;
        self.0 |= stride << (2 * place);
    }
}
