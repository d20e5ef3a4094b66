//! Work on a circuit of any type.

use bellperson::Circuit;
use blstrs::Scalar;

use crate::Error;

/// Work on a circuit of any type.
pub trait CircuitVisitor {
    /// The result.
    type Output;

    /// Does the work.
    ///
    /// # Errors
    ///
    /// The visitor's own.
    fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<Self::Output, Error>;
}
