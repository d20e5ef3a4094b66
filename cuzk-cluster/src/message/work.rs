//! A partition to be proved.
//!
//! It is not the statement: the input is opaque bytes, which only the engines understand. The
//! invariant: the id names the input, so one id has one right answer.

use std::fmt;

use cuzk_scheduler::priority::Priority;
use serde::{Deserialize, Serialize};

use super::{Message, MessageError, bounded};
use crate::name::Name;
use crate::subject::{Circuit, Subject};

/// The longest input that a message carries itself.
pub const INLINE_BYTES_MAX: usize = 8 << 20;
/// The most bytes of a job's id.
pub const JOB_BYTES_MAX: usize = 256;
/// The most nodes that a partition excludes.
pub const EXCLUDED_MAX: usize = 16;

/// Room for all fields of a partition except its input.
const OTHER_BYTES_MAX: usize = 4 << 10;

/// The id of a partition: a digest of its owner, job, number, circuit and input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkId(pub [u8; 32]);

/// The input of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// BLAKE3 of the bytes.
    pub digest: [u8; 32],
    /// The number of bytes.
    pub bytes_len: u64,
    /// The bytes, if the message carries them. Else the object store has them, by digest.
    pub inline: Option<Vec<u8>>,
}

/// A partition to be proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The daemon that accepted the job.
    pub owner: Name,
    /// The job, by the owner's id.
    pub job: String,
    /// The number of the partition in its job.
    pub partition: u32,
    /// The circuit.
    pub circuit: Circuit,
    /// The urgency.
    #[serde(with = "priority_number")]
    pub priority: Priority,
    /// The number of earlier tries that failed or were lost.
    pub attempt: u32,
    /// The nodes that failed to prove it.
    pub excluded: Vec<Name>,
    /// The input.
    pub input: Input,
}

impl Input {
    /// Returns an input that the message carries itself.
    #[must_use]
    pub fn inline(bytes: Vec<u8>) -> Self {
        let inline = Some(bytes);
        let bytes = inline.as_deref().unwrap_or_default();
        Self {
            digest: *blake3::hash(bytes).as_bytes(),
            bytes_len: bytes.len() as u64,
            inline,
        }
    }

    /// Returns an input without its bytes, which the object store has.
    #[must_use]
    pub fn stored(bytes: &[u8]) -> Self {
        Self {
            digest: *blake3::hash(bytes).as_bytes(),
            bytes_len: bytes.len() as u64,
            inline: None,
        }
    }

    /// Returns the name of the object that has the bytes.
    #[must_use]
    pub fn object(&self) -> String {
        blake3::Hash::from_bytes(self.digest).to_hex().to_string()
    }

    /// Returns true if `bytes` are the input.
    #[must_use]
    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes_len && blake3::hash(bytes) == self.digest
    }
}

impl Work {
    /// Returns the id. It does not depend on the attempt, or on where the input is.
    #[must_use]
    pub fn id(&self) -> WorkId {
        let mut hasher = blake3::Hasher::new_derive_key("cuzk 2026 cluster work id");
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(self.owner.as_str().as_bytes());
        field(self.job.as_bytes());
        field(&self.partition.to_le_bytes());
        field(self.circuit.name.as_str().as_bytes());
        field(&self.circuit.fingerprint.0);
        field(&self.input.digest);
        WorkId(*hasher.finalize().as_bytes())
    }

    /// Returns the trace of the partition, as the header `traceparent` of W3C has it. All
    /// partitions of a job have one trace id.
    #[must_use]
    pub fn trace_parent(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("cuzk 2026 cluster trace id");
        hasher.update(self.owner.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(self.job.as_bytes());
        let trace = hasher.finalize().to_hex();
        let id = blake3::Hash::from_bytes(self.id().0).to_hex();
        let (trace, parent) = (trace.split_at(32).0, id.split_at(16).0);
        format!("00-{trace}-{parent}-01")
    }

    /// Returns the subject.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject {
            circuit: self.circuit.clone(),
            priority: self.priority,
        }
    }
}

impl Message for Work {
    const KIND: u8 = 1;
    const BYTES_MAX: usize = INLINE_BYTES_MAX + OTHER_BYTES_MAX;

    fn check(&self) -> Result<(), MessageError> {
        bounded("job", "bytes", self.job.len(), JOB_BYTES_MAX)?;
        bounded("excluded", "nodes", self.excluded.len(), EXCLUDED_MAX)?;
        let Some(bytes) = &self.input.inline else {
            return Ok(());
        };
        bounded("input", "bytes", bytes.len(), INLINE_BYTES_MAX)?;
        if self.input.is(bytes) {
            return Ok(());
        }
        let problem = "input: its digest is wrong".to_owned();
        Err(MessageError::Malformed(problem))
    }
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().take(8);
        shown
            .into_iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkId({self})")
    }
}

/// A priority as its number in [`Priority::ALL`].
mod priority_number {
    use cuzk_scheduler::priority::Priority;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Error as _, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        priority: &Priority,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let place = Priority::ALL.iter().position(|known| known == priority);
        let number = place.and_then(|place| u8::try_from(place).ok());
        let number = number.ok_or_else(|| S::Error::custom("priority: not known"))?;
        number.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Priority, D::Error> {
        let number = u8::deserialize(deserializer)?;
        let priority = Priority::ALL.get(usize::from(number)).copied();
        priority.ok_or_else(|| D::Error::custom(format!("priority: {number} is not known")))
    }
}
