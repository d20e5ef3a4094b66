//! The announcement of a node, for people.
//!
//! Nothing depends on it: no owner decides anything by it. It is repeated, so one that is
//! lost costs nothing.

use serde::{Deserialize, Serialize};

use super::{Message, MessageError, bounded};
use crate::name::Name;
use crate::subject::Circuit;

/// The most circuits that a node names.
pub const CIRCUITS_MAX: usize = 64;
/// The most bytes of a node's version.
pub const VERSION_BYTES_MAX: usize = 64;

/// The announcement of a node: its version and its circuits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The node.
    pub node: Name,
    /// Its version.
    pub version: String,
    /// The circuits whose parameters it has in memory.
    pub loaded: Vec<Circuit>,
    /// The other circuits that it can prove.
    pub others: Vec<Circuit>,
}

impl Message for Presence {
    const KIND: u8 = 5;
    const BYTES_MAX: usize = 16 << 10;

    fn check(&self) -> Result<(), MessageError> {
        let circuits = self.loaded.len().saturating_add(self.others.len());
        bounded("circuits", "circuits", circuits, CIRCUITS_MAX)?;
        bounded("version", "bytes", self.version.len(), VERSION_BYTES_MAX)?;
        if !self.version.chars().any(char::is_control) {
            return Ok(());
        }
        let problem = "version: it has control characters".to_owned();
        Err(MessageError::Malformed(problem))
    }
}
