//! The names of what is charged once for all work that uses it.

use cuzk_filecoin::CircuitId;

/// An asset that pieces of work share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine) enum AssetKey {
    /// A circuit with its parameters.
    Circuit(CircuitId),
    /// The keys of the inner-product SRS, which all aggregations share.
    Aggregation,
}

impl From<CircuitId> for AssetKey {
    fn from(id: CircuitId) -> Self {
        Self::Circuit(id)
    }
}
