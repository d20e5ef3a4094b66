//! A request to aggregate, as a file: JSON.
//!
//! Not checked beyond its types. The invariant: no key is unknown, and none is there twice.

use serde::{Deserialize, Serialize};

/// A request as a file. Bytes are in standard base64.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AggregateFile {
    pub(super) registered_proof: u64,
    #[serde(default = "second")]
    pub(super) aggregation: u64,
    pub(super) miner_id: u64,
    pub(super) sectors: Vec<SectorFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectorFile {
    pub(super) sector_number: u64,
    pub(super) comm_r: String,
    pub(super) comm_d: String,
    pub(super) ticket: String,
    /// Not there for non-interactive PoRep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<String>,
    pub(super) proof: String,
}

/// The number of the aggregation that networks take now: SnarkPack v2.
fn second() -> u64 {
    1
}
