//! A circuit with values, beside the compiled circuit.
//!
//! Not its proof. The invariant: a witness that comes out has as many variables as the
//! compiled circuit.

use bellperson::Circuit as Instance;
use blstrs::Scalar;
use cuzk_pce::{PackedWitness, counted_witness_of, packed_witness_of};

use super::ProveError;
use crate::circuit::Circuit;

/// How an instance is compared with the compiled circuit before it is proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowCheck {
    /// Every row, term by term.
    #[default]
    Rows,
    /// The numbers of variables only. The instance builds no rows that its gadgets can do
    /// without, which saves time. For circuits that are known to have one shape. A proof of
    /// another shape does not verify, unless the witness satisfies the compiled rows. The
    /// error then names the first row that it does not satisfy.
    Counts,
}

/// Computes the witness of an instance of `circuit`, on the current thread.
///
/// # Errors
/// [`ProveError::Synthesis`], [`ProveError::Shape`].
pub(super) fn witness<C: Instance<Scalar>>(
    circuit: &Circuit,
    instance: C,
    check: RowCheck,
) -> Result<PackedWitness<Scalar>, ProveError> {
    let program = circuit.program();
    let witness = match check {
        RowCheck::Rows => packed_witness_of(program, instance),
        RowCheck::Counts => counted_witness_of(program, instance),
    };
    witness.map_err(|error| ProveError::of_instance(circuit.name(), error))
}
