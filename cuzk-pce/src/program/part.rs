//! A part of few terms with small integer coefficients, ready to run.

/// Greatest sum of absolute coefficients that counts as small. Rows of bits
/// hardly ever have more than 8; the table is 4 KB.
pub(super) const SMALL_MAX: i32 = 63;

/// Most variables of a small part. Rows of bits hardly ever have more.
pub(super) const VARIABLES_MAX: usize = 3;

/// A part in the form in which it is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The variables, counted back from the cursor.
    pub(super) cols: [u32; VARIABLES_MAX],
    /// How many of `cols` there are, or [`GENERAL`].
    pub(super) variables: u8,
    /// By choice of the variables, the first the lowest bit: which integer.
    pub(super) sums: [u8; 1 << VARIABLES_MAX],
}

/// In place of a number of variables: the part must be run from its items.
pub(super) const GENERAL: u8 = u8::MAX;

pub(super) const GENERAL_PART: Part = Part {
    cols: [0; VARIABLES_MAX],
    variables: GENERAL,
    sums: [0; 1 << VARIABLES_MAX],
};

impl Part {
    /// The variables of a small part, counted back from the cursor.
    #[inline]
    pub(super) fn cols(&self) -> &[u32] {
        self.cols.get(..usize::from(self.variables)).unwrap_or(&[])
    }

    /// The integer that a small part is for a choice of its variables.
    pub(super) fn integer(&self, choice: usize) -> i32 {
        i32::from(self.sums[choice & (self.sums.len() - 1)]) - SMALL_MAX
    }
}
