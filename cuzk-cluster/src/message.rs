//! The messages between machines: a compact binary form with a version and a digest.
//!
//! A message is not trusted: any machine can send any bytes. The invariants:
//!
//! * A message that decodes has the schema of this version and an intact body.
//! * Its fields are within their bounds.
//! * A message that does not decode is an error that names the reason.
//!
//! ```text
//! "CUZK" ‖ schema (u16, little endian) ‖ kind (u8) ‖ first 16 bytes of BLAKE3(kind ‖ body) ‖ body
//! ```
//!
//! The body is the postcard form of the message.

mod notice;
mod outcome;
mod presence;
mod work;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::subject::SCHEMA;
pub use notice::{Control, IDS_MAX, Sign};
pub use outcome::{Failure, Outcome, PROOF_BYTES_MAX, REASON_BYTES_MAX, WorkResult};
pub use presence::{CIRCUITS_MAX, Presence, VERSION_BYTES_MAX};
pub use work::{EXCLUDED_MAX, INLINE_BYTES_MAX, Input, JOB_BYTES_MAX, Work, WorkId};

const MAGIC: [u8; 4] = *b"CUZK";
const DIGEST_BYTES: usize = 16;
const HEADER_BYTES: usize = MAGIC.len() + 2 + 1 + DIGEST_BYTES;

/// The reason for which a message cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It does not begin as a message of a cluster does.
    #[error("message of {bytes} bytes: not a message of cuzk; check who else uses the subject")]
    Foreign {
        /// Its length.
        bytes: usize,
    },
    /// It has another schema.
    #[error("message: expected schema {SCHEMA}, got {found}; run the same version on all machines")]
    Schema {
        /// Its schema.
        found: u16,
    },
    /// It is another message.
    #[error("message: expected kind {expected}, got {found}; check the subjects of the machines")]
    Kind {
        /// The kind that was expected.
        expected: u8,
        /// Its kind.
        found: u8,
    },
    /// It is longer than any message of its kind.
    #[error("message of {bytes} bytes: this kind has at most {bytes_max}; it is not used")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest body of the kind.
        bytes_max: usize,
    },
    /// The digest is not that of the body.
    #[error("message of {bytes} bytes: its digest is wrong; it was damaged on its way")]
    Damaged {
        /// Its length.
        bytes: usize,
    },
    /// A field is missing, or has a value out of its bounds.
    #[error("message: {0}; it is not used")]
    Malformed(String),
}

/// A message that can be encoded and decoded.
pub trait Message: Serialize + DeserializeOwned {
    /// The number of the kind.
    const KIND: u8;
    /// The longest body, in bytes.
    const BYTES_MAX: usize;

    /// Checks the bounds of the fields.
    ///
    /// # Errors
    /// [`MessageError::Malformed`].
    fn check(&self) -> Result<(), MessageError>;

    /// Returns the bytes of the message.
    ///
    /// # Errors
    /// [`MessageError::Malformed`] or [`MessageError::TooLong`].
    fn encode(&self) -> Result<Vec<u8>, MessageError> {
        self.check()?;
        let body = postcard::to_allocvec(self).map_err(malformed)?;
        check_length(body.len(), Self::BYTES_MAX)?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&SCHEMA.to_le_bytes());
        bytes.push(Self::KIND);
        bytes.extend_from_slice(&digest(Self::KIND, &body));
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Returns the message that `bytes` encode.
    ///
    /// # Errors
    /// Any [`MessageError`].
    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let length = bytes.len();
        let foreign = MessageError::Foreign { bytes: length };
        let rest = bytes.strip_prefix(&MAGIC).ok_or(foreign.clone())?;
        let (schema, rest) = rest.split_first_chunk().ok_or(foreign.clone())?;
        let found = u16::from_le_bytes(*schema);
        if found != SCHEMA {
            return Err(MessageError::Schema { found });
        }
        let (&kind, rest) = rest.split_first().ok_or(foreign.clone())?;
        if kind != Self::KIND {
            let (expected, found) = (Self::KIND, kind);
            return Err(MessageError::Kind { expected, found });
        }
        let (expected, body) = rest.split_first_chunk().ok_or(foreign)?;
        check_length(body.len(), Self::BYTES_MAX)?;
        if digest(kind, body) != *expected {
            return Err(MessageError::Damaged { bytes: length });
        }
        let (message, left) = postcard::take_from_bytes::<Self>(body).map_err(malformed)?;
        if !left.is_empty() {
            let problem = format!("{} bytes follow its last field", left.len());
            return Err(MessageError::Malformed(problem));
        }
        message.check()?;
        Ok(message)
    }
}

fn digest(kind: u8, body: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(body);
    let mut short = [0; DIGEST_BYTES];
    hasher.finalize_xof().fill(&mut short);
    short
}

fn malformed(problem: impl fmt::Display) -> MessageError {
    MessageError::Malformed(problem.to_string())
}

fn check_length(bytes: usize, bytes_max: usize) -> Result<(), MessageError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(MessageError::TooLong { bytes, bytes_max })
}

/// Returns an error if `field` has more than `max` of `units`.
fn bounded(field: &str, units: &str, found: usize, max: usize) -> Result<(), MessageError> {
    if found <= max {
        return Ok(());
    }
    let problem = format!("{field}: expected at most {max} {units}, got {found}");
    Err(MessageError::Malformed(problem))
}

#[cfg(test)]
mod tests;
