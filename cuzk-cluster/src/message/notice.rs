//! Short messages that may be lost: signs of life, and orders of an owner.
//!
//! Nothing depends on one such message. A sign is repeated. A cancellation that is lost costs
//! work only.

use serde::{Deserialize, Serialize};

use super::{Message, MessageError, WorkId, bounded};
use crate::name::Name;

/// The most partitions that one message names.
pub const IDS_MAX: usize = 256;

/// A node's sign of life to an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sign {
    /// The node.
    pub node: Name,
    /// The owner's partitions that advance on the node.
    pub running: Vec<WorkId>,
}

/// An order of an owner to nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    /// Stop these partitions: their results are not needed.
    Cancel(Vec<WorkId>),
    /// A node is to pull nothing for a time, because its results were wrong.
    Rest {
        /// The node.
        node: Name,
        /// The time.
        rest_ms: u64,
    },
}

impl Message for Sign {
    const KIND: u8 = 3;
    const BYTES_MAX: usize = 16 << 10;

    fn check(&self) -> Result<(), MessageError> {
        bounded("running", "partitions", self.running.len(), IDS_MAX)
    }
}

impl Message for Control {
    const KIND: u8 = 4;
    const BYTES_MAX: usize = 16 << 10;

    fn check(&self) -> Result<(), MessageError> {
        match self {
            Self::Cancel(ids) => bounded("cancelled", "partitions", ids.len(), IDS_MAX),
            Self::Rest { .. } => Ok(()),
        }
    }
}
