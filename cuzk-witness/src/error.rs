//! The errors of writers: inputs of another shape than the circuit's, and a stop.

use std::fmt;

use cuzk_memory::Stopped;

/// Why there is no witness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The inputs are of another shape than the circuit's.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The checkpoint stopped the writer.
    #[error("the witness was stopped")]
    Stopped,
}

impl From<Stopped> for WriteError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Inputs that the circuit has no variables for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part}: expected {expected}, got {got}")]
pub struct ShapeError {
    part: String,
    expected: String,
    got: String,
}

impl ShapeError {
    /// `part` is what is wrong, beginning with the noun.
    pub fn new(
        part: impl Into<String>,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> ShapeError {
        ShapeError {
            part: part.into(),
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }

    /// Returns the error as one of a part of `outer`.
    pub fn within(mut self, outer: impl fmt::Display) -> ShapeError {
        self.part = format!("{outer}, {}", self.part);
        self
    }
}

/// Checks a length.
pub(crate) fn expect_len(
    part: impl Into<String>,
    expected: usize,
    got: usize,
) -> Result<(), ShapeError> {
    if expected == got {
        return Ok(());
    }
    Err(ShapeError::new(part, expected, got))
}
