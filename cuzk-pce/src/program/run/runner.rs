//! Folded rows with a witness, ready to be evaluated.

use crate::program::{prepared::Prepared, rows::Shape, tables::View};

/// Folded rows and a witness of their dimensions.
pub(super) struct Runner<'a, S, W> {
    pub(super) view: View<'a>,
    pub(super) coefficients: &'a [S],
    pub(super) prepared: &'a Prepared<S>,
    pub(super) witness: &'a W,
    /// True if results bypass the caches.
    pub(super) past_caches: bool,
    /// True if every row may be taken to hold.
    pub(super) is_satisfied: bool,
}

impl<S, W> Runner<'_, S, W> {
    #[inline]
    pub(super) fn shape(&self, terminal: u32) -> Shape {
        self.view.shape(terminal).unwrap_or(Shape::EMPTY)
    }
}
