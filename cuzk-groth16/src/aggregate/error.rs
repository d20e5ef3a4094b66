//! The errors of an aggregation, and of the inner-product SRS.
//!
//! The invariant: a message names the file or the number that is wrong, and says what to do.

use std::io;
use std::path::PathBuf;

use cuzk_kernels::KernelError;

/// Proofs that cannot be aggregated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The recursion halves the proofs, so there must be two of them at least.
    #[error("an aggregate has at least 2 proofs, got {got}; repeat the last one")]
    TooFew {
        /// The proofs that there are.
        got: usize,
    },
    /// The recursion halves the proofs until one is left.
    #[error("the number of proofs must be a power of two, got {got}; repeat the last one")]
    NotPowerOfTwo {
        /// The proofs that there are.
        got: usize,
    },
    /// The key is for another number of proofs.
    #[error("the aggregation key is for {expected} proofs, got {got}")]
    OtherNumber {
        /// The proofs that the key is for.
        expected: usize,
        /// The proofs that there are.
        got: usize,
    },
    /// The SRS is for fewer proofs.
    #[error("the inner-product SRS has {got} powers; {proofs} proofs need {needed}")]
    SrsTooShort {
        /// The proofs to aggregate.
        proofs: usize,
        /// The powers of each secret that they need.
        needed: usize,
        /// The powers that there are.
        got: usize,
    },
    /// A product of pairings is 1, which the format cannot express. Valid proofs do not lead
    /// there.
    #[error("a commitment to the proofs is the neutral element; the proofs are not valid")]
    Degenerate,
    /// A kernel failed, or was stopped.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// A file of the inner-product SRS that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SrsError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has fewer or more bytes than its counts of points say.
    #[error(
        "{}: {got} bytes, expected {expected} for its counts of points; fetch it again",
        path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// The bytes that the counts say.
        expected: u64,
        /// The bytes that there are.
        got: u64,
    },
    /// A count of points is above the largest SRS that there is.
    #[error("{}: {got} points in a vector, at most {max} are possible; fetch it again", path.display())]
    Count {
        /// The file.
        path: PathBuf,
        /// The count.
        got: u64,
        /// The most points that an SRS has.
        max: u64,
    },
    /// The SRS is for fewer proofs.
    #[error(
        "{}: {got} powers in a vector; {proofs} proofs need {needed}, so use an SRS for more proofs",
        path.display()
    )]
    TooShort {
        /// The file.
        path: PathBuf,
        /// The proofs to aggregate.
        proofs: usize,
        /// The powers of each secret that they need.
        needed: usize,
        /// The powers that there are.
        got: u64,
    },
    /// The file has another digest than the networks' list says.
    #[error("{}: another digest than the networks' list has; fetch it again", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
    },
    /// A point is not on its curve, not in the subgroup, or at infinity.
    #[error("{}: point {index} of {vector} is not in the group; fetch it again", path.display())]
    Point {
        /// The file.
        path: PathBuf,
        /// The vector of points.
        vector: &'static str,
        /// The index of the point.
        index: usize,
    },
}

impl SrsError {
    /// Returns true if the file is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
