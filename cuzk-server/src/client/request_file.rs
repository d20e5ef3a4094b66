//! Request files, as messages of the wire.
//!
//! Not their check, which `cuzk-filecoin` makes. The invariant: the bytes of a vanilla proof
//! are sent as the file has them.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_core::{ProofKind, ProofRequest};
use cuzk_filecoin::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::wire::v1;

/// The mark of UTF-8 that some editors put in front of a text.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The key that a request has, and a C1 output and its wrapper have not.
#[derive(Deserialize)]
struct Form {
    proof_kind: Option<IgnoredAny>,
}

/// The fields of a request file. A field that is null is not there.
#[derive(Deserialize)]
struct Fields<'a> {
    request_id: Option<Value>,
    sector_size: Option<u64>,
    registered_proof: Option<u64>,
    priority: Option<Value>,
    #[serde(borrow)]
    vanilla_proof: Option<Cow<'a, str>>,
    #[serde(borrow)]
    vanilla_proofs: Option<Vec<Cow<'a, str>>>,
    sector_number: Option<u64>,
    miner_id: Option<u64>,
    #[serde(borrow)]
    randomness: Option<Cow<'a, str>>,
    partition_index: Option<u32>,
    #[serde(borrow)]
    comm_r_old: Option<Cow<'a, str>>,
    #[serde(borrow)]
    comm_r_new: Option<Cow<'a, str>>,
    #[serde(borrow)]
    comm_d_new: Option<Cow<'a, str>>,
}

/// Reads a request file: an object with the fields of a request, a bare C1 output, or the
/// wrapper around one.
///
/// # Errors
/// [`Error::InvalidRequest`], with the name of the field.
pub fn read_request(mut bytes: Vec<u8>) -> Result<v1::SubmitProofRequest, Error> {
    if bytes.starts_with(UTF8_MARK) {
        bytes.drain(..UTF8_MARK.len());
    }
    let request = ProofRequest::from_json(&bytes)?;
    let form: Form = parse(&bytes)?;
    let mut message = if form.proof_kind.is_some() {
        parse::<Fields<'_>>(&bytes)?.message(request.kind())?
    } else {
        let written = request.to_json();
        v1::SubmitProofRequest {
            vanilla_proof: Default::default(),
            ..parse::<Fields<'_>>(&written)?.message(request.kind())?
        }
    };
    if message.request_id.is_empty() {
        message.request_id = default_id(request.kind(), &message, &bytes);
    }
    if message.vanilla_proof.is_empty() && message.vanilla_proofs.is_empty() {
        message.vanilla_proof = bytes.into();
    }
    Ok(message)
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|problem| {
        let advice = "send a JSON object whose keys are the fields of SubmitProofRequest";
        Error::request("request", problem.to_string(), advice)
    })
}

impl Fields<'_> {
    fn message(self, kind: ProofKind) -> Result<v1::SubmitProofRequest, Error> {
        let vanilla_proofs = self.vanilla_proofs.unwrap_or_default().into_iter();
        let vanilla_proofs = vanilla_proofs.map(|proof| decode("vanilla_proofs", Some(proof)));
        Ok(v1::SubmitProofRequest {
            request_id: request_id(self.request_id)?,
            proof_kind: wire_kind(kind).into(),
            sector_size: self.sector_size.unwrap_or_default(),
            registered_proof: self.registered_proof.unwrap_or_default(),
            priority: priority(self.priority)?.into(),
            vanilla_proof: decode("vanilla_proof", self.vanilla_proof)?,
            vanilla_proofs: vanilla_proofs.collect::<Result<_, _>>()?,
            sector_number: self.sector_number.unwrap_or_default(),
            miner_id: self.miner_id.unwrap_or_default(),
            randomness: decode("randomness", self.randomness)?,
            partition_index: self.partition_index.unwrap_or_default(),
            comm_r_old: decode("comm_r_old", self.comm_r_old)?,
            comm_r_new: decode("comm_r_new", self.comm_r_new)?,
            comm_d_new: decode("comm_d_new", self.comm_d_new)?,
        })
    }
}

fn decode(field: &str, text: Option<Cow<'_, str>>) -> Result<bytes::Bytes, Error> {
    let bytes = STANDARD.decode(text.as_deref().unwrap_or_default());
    bytes.map(Into::into).map_err(|problem| {
        let advice = "send standard base64 with padding (RFC 4648, section 4)";
        Error::request(field, format!("not base64: {problem}"), advice)
    })
}

fn request_id(value: Option<Value>) -> Result<String, Error> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(id)) => Ok(id),
        Some(_) => {
            let advice = "write a text, or leave it out";
            Err(Error::request("request_id", "not a text", advice))
        }
    }
}

fn wire_kind(kind: ProofKind) -> v1::ProofKind {
    match kind {
        ProofKind::Porep => v1::ProofKind::PorepSealCommit,
        ProofKind::SnapDeals => v1::ProofKind::SnapDealsUpdate,
        ProofKind::WindowPost => v1::ProofKind::WindowPostPartition,
        ProofKind::WinningPost => v1::ProofKind::WinningPost,
    }
}

fn priority(value: Option<Value>) -> Result<v1::Priority, Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(v1::Priority::Unspecified);
    };
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
    let by_number = number.and_then(|number| v1::Priority::try_from(number).ok());
    let by_name = value.as_str().and_then(v1::Priority::from_str_name);
    by_number.or(by_name).ok_or_else(|| {
        let advice = "write LOW, NORMAL, HIGH or CRITICAL, or leave it out";
        Error::request("priority", format!("{value} is no priority"), advice)
    })
}

/// Names a request that has no name: by its sector if it says one, else by its content. The
/// same file has the same name.
fn default_id(kind: ProofKind, message: &v1::SubmitProofRequest, bytes: &[u8]) -> String {
    let (miner, sector) = (message.miner_id, message.sector_number);
    if miner != 0 && sector != 0 {
        return format!("{kind}-{miner}-{sector}");
    }
    let digest = blake3::hash(bytes).to_hex();
    format!("{kind}-{}", digest.get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests;
