//! The circuits with their parameters, as a status shows them.
//!
//! Not the assets, and not the keys for aggregations, which only count as used memory. The
//! invariant: everything that is charged for a circuit is shown.

use cuzk_scheduler::admission::SharedThing;
use serde::Serialize;

use crate::engine::assets::AssetKey;
use crate::engine::core::Core;

/// A circuit that is loaded with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AssetStatus {
    /// The name of the circuit.
    pub circuit: String,
    /// The length of its parameters' file, with that of the multiples, in bytes.
    pub parameter_bytes: u64,
    /// The memory of the circuit, and of what devices keep for it, in bytes.
    pub circuit_bytes: u64,
    /// The comparison of its parameters with the network's digests: `not_compared`, `waits`,
    /// `comparing`, `right`, `wrong`, `not_listed` or `unreadable`.
    pub digests: &'static str,
    /// The partitions that use it, and one more while its multiples are made.
    pub uses: usize,
    /// The time since the last use, in seconds; none while it is in use.
    pub idle_s: Option<f64>,
}

pub(super) fn all(core: &Core) -> Vec<AssetStatus> {
    let things = core.dispatch.admission.shared_things().into_iter();
    let of = |thing: SharedThing<AssetKey>| {
        let AssetKey::Circuit(id) = thing.key else {
            return None;
        };
        let parts = core.assets.costs.parts(id);
        let (parameter_bytes, circuit_bytes) = parts.unwrap_or((0, thing.bytes));
        Some(AssetStatus {
            circuit: id.to_string(),
            parameter_bytes,
            circuit_bytes,
            digests: core.assets.digests.state(id).name(),
            uses: thing.users,
            idle_s: thing.idle.map(|idle| idle.as_secs_f64()),
        })
    };
    let mut assets: Vec<_> = things.filter_map(of).collect();
    assets.sort_by(|a, b| a.circuit.cmp(&b.circuit));
    assets
}
