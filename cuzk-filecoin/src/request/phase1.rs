//! The output of the first commit phase, as clients wrap it.
//!
//! Not decoded here beyond what says which sector and proof it is for.

use std::borrow::Cow;

use filecoin_proofs_api::RegisteredSealProof;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::members::base64;
use crate::Error;
use crate::sector_size::SectorSize;

/// The keys that tell the three kinds of file apart.
#[derive(Deserialize)]
pub(super) struct Probe {
    pub(super) proof_kind: Option<IgnoredAny>,
    #[serde(rename = "Phase1Out")]
    pub(super) phase1_out: Option<IgnoredAny>,
    pub(super) replica_id: Option<IgnoredAny>,
}

/// The client's wrapper around the output of the first commit phase.
#[derive(Deserialize)]
struct Wrapper<'a> {
    #[serde(rename = "SectorNum")]
    sector_num: u64,
    #[serde(rename = "Phase1Out", borrow)]
    phase1_out: Cow<'a, str>,
    #[serde(rename = "SectorSize")]
    sector_size: u64,
}

/// The part of a first commit phase's output that says what it is for.
#[derive(Deserialize)]
struct Phase1Header {
    registered_proof: RegisteredSealProof,
}

/// Looks at a file's keys.
pub(super) fn probe(what: &str, bytes: &[u8]) -> Result<Probe, Error> {
    let advice = "send a JSON object: a request with proof_kind, the output of \
                  seal_commit_phase1, or the wrapper {SectorNum, Phase1Out, SectorSize}";
    if bytes.is_empty() {
        return Err(Error::request(what, "empty", advice));
    }
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Error::request(what, "not a JSON object", advice));
    }
    serde_json::from_slice(bytes)
        .map_err(|problem| Error::request(what, format!("not valid JSON: {problem}"), advice))
}

/// A C1 output that is none.
pub(crate) fn bad_phase1_output(problem: &str) -> Error {
    Error::request(
        "vanilla_proof",
        format!("not the JSON of a SealCommitPhase1Output: {problem}"),
        "send what seal_commit_phase1 of filecoin-proofs-api 19 returned, unaltered",
    )
}

/// Unwraps the output of the first commit phase: the sector number that the
/// wrapper states, if there is a wrapper, and the output's own JSON.
pub(super) fn phase1_output(
    bytes: Cow<'_, [u8]>,
    size: Option<SectorSize>,
) -> Result<(Option<u64>, Vec<u8>), Error> {
    let probe = probe("vanilla_proof", &bytes)?;
    if probe.phase1_out.is_none() {
        if probe.replica_id.is_none() {
            return Err(Error::request(
                "vanilla_proof",
                "has neither Phase1Out nor replica_id",
                "send the output of seal_commit_phase1, or the wrapper around it",
            ));
        }
        return Ok((None, bytes.into_owned()));
    }
    let wrapper: Wrapper = serde_json::from_slice(&bytes).map_err(|problem| {
        Error::request(
            "vanilla_proof",
            format!("not the C1 wrapper: {problem}"),
            "send {\"SectorNum\": n, \"Phase1Out\": \"base64\", \"SectorSize\": n}",
        )
    })?;
    let output = base64("vanilla_proof.Phase1Out", &wrapper.phase1_out)?;
    let size = match size {
        Some(size) => size,
        None => SectorSize::registered(registered_proof(&output)?.sector_size())?,
    };
    if wrapper.sector_size != size.bytes() {
        return Err(Error::request(
            "vanilla_proof.SectorSize",
            format!(
                "expected {}, the registered proof's, got {}",
                size.bytes(),
                wrapper.sector_size
            ),
            "send the wrapper and the registered proof of the same sector",
        ));
    }
    Ok((Some(wrapper.sector_num), output))
}

/// The seal proof that an output states.
pub(super) fn registered_proof(output: &[u8]) -> Result<RegisteredSealProof, Error> {
    let header: Phase1Header = serde_json::from_slice(output)
        .map_err(|problem| bad_phase1_output(&problem.to_string()))?;
    Ok(header.registered_proof)
}

/// The part of a first commit phase's output that the chain knows too.
#[derive(Deserialize)]
pub(crate) struct Phase1Public {
    pub(crate) comm_r: [u8; 32],
    pub(crate) comm_d: [u8; 32],
    pub(crate) seed: [u8; 32],
    pub(crate) ticket: [u8; 32],
}

impl Phase1Public {
    /// Reads it out of the JSON of an output.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`].
    pub(crate) fn of(phase1_output: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(phase1_output)
            .map_err(|problem| bad_phase1_output(&problem.to_string()))
    }
}
