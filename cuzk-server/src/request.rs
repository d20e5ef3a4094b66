//! A request of the wire, as the engine takes it.
//!
//! Not the job that comes of it. The invariants:
//!
//! * Two requests have the same job id exactly if they have the same request id and input.
//! * After a restart, [`decode`] reads the input that the client sent.

use std::sync::Arc;

use cuzk_core::engine::Decoder;
use cuzk_core::job::RequestBytes;
use cuzk_core::{Priority, ProofKind, ProofRequest};
use cuzk_filecoin::request::{PorepC2, SnapDeals, WindowPost, WinningPost};
use cuzk_filecoin::{Error, Statement};
use prost::Message;

use crate::wire::v1;

/// The part of a request id that a job id shows, in characters. The rest counts only
/// for the digest.
const SHOWN_MAX: usize = 200;

/// The bytes of the digest that a job id has.
const DIGEST_BYTES: usize = 16;

/// A request that names a kind. Nothing else of it was checked.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) kind: ProofKind,
    /// The urgency that the client asked for; by the kind if it asked for none.
    pub(crate) priority: Option<Priority>,
    request: v1::SubmitProofRequest,
}

/// The input of a job, and what its name needs besides.
#[derive(Debug)]
pub(crate) struct Input {
    request_id: String,
    kind: ProofKind,
    /// The message without what is not input. [`decode`] reads it.
    pub(crate) bytes: Vec<u8>,
}

impl Submission {
    /// Looks at the kind and the priority of a message.
    ///
    /// # Errors
    /// A kind or a priority that does not exist.
    pub(crate) fn new(request: v1::SubmitProofRequest) -> Result<Self, Error> {
        Ok(Self {
            kind: kind_of(request.proof_kind)?,
            priority: priority_of(request.priority)?,
            request,
        })
    }

    /// Returns the input. A large one is copied for some hundredths of a second, so async
    /// code calls it where it may block.
    pub(crate) fn into_input(self) -> Input {
        let mut request = self.request;
        let request_id = std::mem::take(&mut request.request_id);
        request.priority = 0;
        Input {
            request_id,
            kind: self.kind,
            bytes: request.encode_to_vec(),
        }
    }

    /// Returns true if the job may wait in the journal for as long as it takes. A PoSt is
    /// of no use later.
    pub(crate) fn may_wait(&self) -> bool {
        matches!(self.kind, ProofKind::Porep | ProofKind::SnapDeals)
    }
}

impl Input {
    /// Returns the name of the job: what people know it by, and a digest of the request id
    /// and of `bytes`, which are the input's. A client gives one request id to different
    /// inputs, so the request id alone is no key.
    pub(crate) fn job_id(&self, bytes: &RequestBytes<'_>) -> String {
        let mut digest = blake3::Hasher::new();
        // Of a fixed length, so the two cannot run into each other.
        digest.update(&bytes.digest());
        digest.update(self.request_id.as_bytes());
        let mut short = [0; DIGEST_BYTES];
        digest.finalize_xof().fill(&mut short);
        let digest = u128::from_be_bytes(short);
        let printable = |c: char| if c.is_control() { '?' } else { c };
        let shown = self.request_id.chars().take(SHOWN_MAX).map(printable);
        let shown: String = shown.collect();
        let shown = if shown.is_empty() {
            self.kind.name()
        } else {
            &shown
        };
        format!("{shown}/{digest:032x}")
    }
}

/// Reads the bytes of an [`Input`], or a request file in JSON.
///
/// # Errors
/// Everything that is wrong with the request.
pub(crate) fn decode(input: &[u8]) -> cuzk_core::Result<Arc<dyn Statement>> {
    // No message begins with this byte: it would open a group.
    let request = if input.first() == Some(&b'{') {
        ProofRequest::from_json(input)?
    } else {
        let message = v1::SubmitProofRequest::decode(input).map_err(|error| {
            let advice = "submit the request again";
            Error::request("request", error.to_string(), advice)
        })?;
        typed(message)?
    };
    Ok(Arc::from(cuzk_filecoin::decode(&request)?))
}

/// Returns the decoder of an engine that gets requests as messages of the wire.
#[must_use]
pub fn decoder() -> Decoder {
    Arc::new(decode)
}

/// Checks the fields of a message for its kind.
fn typed(message: v1::SubmitProofRequest) -> Result<ProofRequest, Error> {
    let (proof, size) = (message.registered_proof, message.sector_size);
    let vanilla_proofs = || message.vanilla_proofs.iter().map(|one| one.to_vec());
    let randomness = &message.randomness;
    Ok(match kind_of(message.proof_kind)? {
        ProofKind::Porep => ProofRequest::PorepC2(PorepC2::new(
            proof,
            size,
            given(message.miner_id),
            given(message.sector_number),
            &message.vanilla_proof[..],
        )?),
        ProofKind::SnapDeals => ProofRequest::SnapDeals(SnapDeals::new(
            proof,
            size,
            &message.comm_r_old,
            &message.comm_r_new,
            &message.comm_d_new,
            vanilla_proofs().collect(),
        )?),
        ProofKind::WindowPost => ProofRequest::WindowPost(WindowPost::new(
            proof,
            size,
            message.miner_id,
            randomness,
            message.partition_index,
            vanilla_proofs().collect(),
        )?),
        ProofKind::WinningPost => ProofRequest::WinningPost(WinningPost::new(
            proof,
            size,
            message.miner_id,
            randomness,
            vanilla_proofs().collect(),
        )?),
    })
}

/// A number that the wire cannot leave out: 0 where the client does not say it.
fn given(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

fn kind_of(number: i32) -> Result<ProofKind, Error> {
    match v1::ProofKind::try_from(number) {
        Ok(v1::ProofKind::PorepSealCommit) => Ok(ProofKind::Porep),
        Ok(v1::ProofKind::SnapDealsUpdate) => Ok(ProofKind::SnapDeals),
        Ok(v1::ProofKind::WindowPostPartition) => Ok(ProofKind::WindowPost),
        Ok(v1::ProofKind::WinningPost) => Ok(ProofKind::WinningPost),
        Ok(v1::ProofKind::Unspecified) | Err(_) => Err(Error::request(
            "proof_kind",
            format!("expected 1 to 4, got {number}"),
            "send 1 for PoRep, 2 for SnapDeals, 3 for WindowPoSt or 4 for WinningPoSt",
        )),
    }
}

fn priority_of(number: i32) -> Result<Option<Priority>, Error> {
    match v1::Priority::try_from(number) {
        Ok(v1::Priority::Unspecified) => Ok(None),
        Ok(v1::Priority::Low) => Ok(Some(Priority::Low)),
        Ok(v1::Priority::Normal) => Ok(Some(Priority::Normal)),
        Ok(v1::Priority::High) => Ok(Some(Priority::High)),
        Ok(v1::Priority::Critical) => Ok(Some(Priority::Critical)),
        Err(_) => Err(Error::request(
            "priority",
            format!("expected 0 to 4, got {number}"),
            "send 0 for the priority of the kind",
        )),
    }
}

#[cfg(test)]
mod tests;
