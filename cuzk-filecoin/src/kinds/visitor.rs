//! Something to do with a circuit of any type.

use bellperson::Circuit;
use blstrs::Scalar;

use crate::Error;

/// Something to do with a circuit whatever its type.
pub trait CircuitVisitor {
    /// What comes of it.
    type Output;

    /// Does it.
    ///
    /// # Errors
    ///
    /// The visitor's own.
    fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<Self::Output, Error>;
}
