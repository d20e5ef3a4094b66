//! The errors of kernels.

use cuzk_memory::Stopped;

use crate::bases::BasesError;

/// A kernel was asked for something it cannot do.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// Two slices that must have the same length have not.
    #[error("{what} has {got} elements, expected {expected}")]
    LengthMismatch {
        /// The slice that disagrees.
        what: &'static str,
        /// The length it should have.
        expected: usize,
        /// The length it has.
        got: usize,
    },
    /// The field has no root of unity of this order.
    #[error(
        "a domain of 2^{log_size} points is too large: this operation is defined up to 2^{log_size_max}"
    )]
    DomainTooLarge {
        /// Logarithm of the size asked for.
        log_size: u32,
        /// Logarithm of the largest possible size.
        log_size_max: u32,
    },
    /// More terms than a 32-bit index can name.
    #[error("{got} terms are too many for one multi-scalar multiplication, at most {max}")]
    TooManyTerms {
        /// Number of terms asked for.
        got: usize,
        /// Largest number of terms.
        max: usize,
    },
    /// A Poseidon state that there are no registers for.
    #[error("a Poseidon state of {got} elements, expected 2 to {max}")]
    PoseidonWidth {
        /// Elements of the state.
        got: usize,
        /// The largest width.
        max: usize,
    },
    /// Packed scalars that say two things about one scalar, or anything about
    /// one that is not there.
    #[error("packed scalars: a scalar is both one and wide, or past the end")]
    PackedScalars,
    /// Rows of multiples that cannot be used.
    #[error("multiples of bases: {0}")]
    Multiples(&'static str),
    /// A [`Checkpoint`](cuzk_memory::Checkpoint) stopped the kernel. Its output is of no
    /// use.
    #[error("stopped")]
    Stopped,
    /// There is no working memory to be had.
    #[error("no working memory for a kernel: {0}")]
    Memory(#[from] std::io::Error),
    /// The bases could not be read.
    #[error(transparent)]
    Bases(#[from] BasesError),
}

impl From<Stopped> for KernelError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Checks a slice's length.
pub(crate) fn expect_len(
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), KernelError> {
    if expected == got {
        Ok(())
    } else {
        Err(KernelError::LengthMismatch {
            what,
            expected,
            got,
        })
    }
}
