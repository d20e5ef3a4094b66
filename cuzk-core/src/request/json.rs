//! Requests as JSON files.
//!
//! Not the proving service's messages, though the keys are its field names.
//! The invariant: what [`write`] writes, [`parse`] reads back as the same
//! request; and a key that is unknown, or belongs to another kind, is an error.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filecoin_proofs_api::RegisteredSealProof;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::field::{self, WireNumber};
use super::{
    PorepC2, ProofRequest, PublicSector, SnapDeals, WindowPost, WinningPost, claimed_sector,
};
use crate::Error;
use crate::kinds::{ProofKind, SectorSize};

/// Names of the proof kinds on the wire, with their numbers.
const KINDS: [(&str, u64, ProofKind); 4] = [
    ("POREP_SEAL_COMMIT", 1, ProofKind::Porep),
    ("SNAP_DEALS_UPDATE", 2, ProofKind::SnapDeals),
    ("WINDOW_POST_PARTITION", 3, ProofKind::WindowPost),
    ("WINNING_POST", 4, ProofKind::WinningPost),
];

/// Keys that a request of any kind may have.
const COMMON_KEYS: [&str; 7] = [
    "proof_kind",
    "registered_proof",
    "sector_size",
    "miner_id",
    "sector_number",
    "request_id",
    "priority",
];
const POREP_KEYS: [&str; 1] = ["vanilla_proof"];
const POST_KEYS: [&str; 4] = [
    "vanilla_proofs",
    "randomness",
    "partition_index",
    "public_sectors",
];
const SNAP_KEYS: [&str; 4] = ["vanilla_proofs", "comm_r_old", "comm_r_new", "comm_d_new"];

/// The keys that tell the three kinds of file apart.
#[derive(Deserialize)]
struct Probe {
    proof_kind: Option<IgnoredAny>,
    #[serde(rename = "Phase1Out")]
    phase1_out: Option<IgnoredAny>,
    replica_id: Option<IgnoredAny>,
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

/// Reads any of the three kinds of request file.
pub(super) fn parse(bytes: &[u8]) -> Result<ProofRequest, Error> {
    let probe = probe("request", bytes)?;
    if probe.proof_kind.is_some() {
        return Fields::parse(bytes)?.into_request();
    }
    if probe.phase1_out.is_none() && probe.replica_id.is_none() {
        return Err(Error::request(
            "proof_kind",
            "missing, and the file is neither a C1 output nor its wrapper",
            "name the kind of proof to make",
        ));
    }
    let (sector_number, phase1_output) = phase1_output(bytes, None)?;
    let header: Phase1Header = serde_json::from_slice(&phase1_output)
        .map_err(|problem| bad_phase1_output(&problem.to_string()))?;
    Ok(ProofRequest::PorepC2(PorepC2 {
        registered_proof: field::interactive(header.registered_proof)?,
        miner_id: None,
        sector_number,
        phase1_output,
    }))
}

fn probe(what: &str, bytes: &[u8]) -> Result<Probe, Error> {
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
    bytes: &[u8],
    size: Option<SectorSize>,
) -> Result<(Option<u64>, Vec<u8>), Error> {
    let probe = probe("vanilla_proof", bytes)?;
    if probe.phase1_out.is_none() {
        if probe.replica_id.is_none() {
            return Err(Error::request(
                "vanilla_proof",
                "has neither Phase1Out nor replica_id",
                "send the output of seal_commit_phase1, or the wrapper around it",
            ));
        }
        return Ok((None, bytes.to_vec()));
    }
    let wrapper: Wrapper = serde_json::from_slice(bytes).map_err(|problem| {
        Error::request(
            "vanilla_proof",
            format!("not the C1 wrapper: {problem}"),
            "send {\"SectorNum\": n, \"Phase1Out\": \"base64\", \"SectorSize\": n}",
        )
    })?;
    let output = base64("vanilla_proof.Phase1Out", &wrapper.phase1_out)?;
    let size = match size {
        Some(size) => size,
        None => {
            let header: Phase1Header = serde_json::from_slice(&output)
                .map_err(|problem| bad_phase1_output(&problem.to_string()))?;
            SectorSize::registered(header.registered_proof.sector_size())?
        }
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

fn base64(field: &str, text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|problem| {
        Error::request(
            field,
            format!("not base64: {problem}"),
            "send standard base64 with padding (RFC 4648, section 4)",
        )
    })
}

/// A request file's fields, taken out one by one.
struct Fields(Map<String, Value>);

impl Fields {
    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map(Self).map_err(|problem| {
            Error::request(
                "request",
                format!("not valid JSON: {problem}"),
                "send a JSON object whose keys are the fields of SubmitProofRequest",
            )
        })
    }

    fn into_request(mut self) -> Result<ProofRequest, Error> {
        let kind = self.kind()?;
        self.reject_others(kind)?;
        let registered_proof = self.number("registered_proof")?;
        let sector_size = self.optional_number("sector_size")?.unwrap_or(0);
        Ok(match kind {
            ProofKind::Porep => ProofRequest::PorepC2(PorepC2::new(
                registered_proof,
                sector_size,
                self.optional_number("miner_id")?,
                self.optional_number("sector_number")?,
                &self.bytes("vanilla_proof")?,
            )?),
            ProofKind::WinningPost => {
                if self.optional_number("partition_index")?.unwrap_or(0) != 0 {
                    return Err(Error::request(
                        "partition_index",
                        "a WinningPoSt has one partition, number 0",
                        "leave partition_index out",
                    ));
                }
                let public = self.public_sectors()?;
                let request = WinningPost::new(
                    registered_proof,
                    sector_size,
                    self.number("miner_id")?,
                    &self.bytes("randomness")?,
                    self.byte_strings("vanilla_proofs")?,
                )?;
                compare_public_sectors(public, &request.vanilla_proofs)?;
                ProofRequest::WinningPost(request)
            }
            ProofKind::WindowPost => {
                let public = self.public_sectors()?;
                let request = WindowPost::new(
                    registered_proof,
                    sector_size,
                    self.number("miner_id")?,
                    &self.bytes("randomness")?,
                    self.partition_index()?,
                    self.byte_strings("vanilla_proofs")?,
                )?;
                compare_public_sectors(public, &request.vanilla_proofs)?;
                ProofRequest::WindowPost(request)
            }
            ProofKind::SnapDeals => ProofRequest::SnapDeals(SnapDeals::new(
                registered_proof,
                sector_size,
                &self.bytes("comm_r_old")?,
                &self.bytes("comm_r_new")?,
                &self.bytes("comm_d_new")?,
                self.byte_strings("vanilla_proofs")?,
            )?),
        })
    }

    fn kind(&mut self) -> Result<ProofKind, Error> {
        let value = self.take("proof_kind").unwrap_or(Value::Null);
        KINDS
            .iter()
            .find(|(name, number, _)| {
                value.as_str() == Some(name) || value.as_u64() == Some(*number)
            })
            .map(|(_, _, kind)| *kind)
            .ok_or_else(|| {
                let names: Vec<_> = KINDS.iter().map(|(name, _, _)| *name).collect();
                Error::request(
                    "proof_kind",
                    format!(
                        "expected one of {}, got {}",
                        names.join(", "),
                        shorten(&value)
                    ),
                    "name the kind of proof to make",
                )
            })
    }

    /// Refuses keys that this kind of request does not have.
    fn reject_others(&self, kind: ProofKind) -> Result<(), Error> {
        let own: &[&str] = match kind {
            ProofKind::Porep => &POREP_KEYS,
            ProofKind::WinningPost | ProofKind::WindowPost => &POST_KEYS,
            ProofKind::SnapDeals => &SNAP_KEYS,
        };
        let known = || COMMON_KEYS.iter().chain(own);
        let Some(key) = self.0.keys().find(|key| !known().any(|known| known == key)) else {
            return Ok(());
        };
        let nearest = known()
            .map(|known| (strsim::jaro_winkler(known, key), known))
            .filter(|(similarity, _)| *similarity > 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        Err(Error::request(
            key,
            format!("a {kind} request has no such field"),
            match nearest {
                Some((_, nearest)) => format!("did you mean {nearest}?"),
                None => format!("its own fields are {}", own.join(", ")),
            },
        ))
    }

    /// A field's value; an explicit null is an absent field.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    fn require(&mut self, key: &str) -> Result<Value, Error> {
        self.take(key).ok_or_else(|| {
            Error::request(
                key,
                "missing",
                "send every field that this kind of proof needs",
            )
        })
    }

    fn number(&mut self, key: &str) -> Result<u64, Error> {
        let value = self.require(key)?;
        as_number(key, &value)
    }

    fn optional_number(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.take(key)
            .map(|value| as_number(key, &value))
            .transpose()
    }

    fn partition_index(&mut self) -> Result<u32, Error> {
        let index = self.optional_number("partition_index")?.unwrap_or(0);
        u32::try_from(index).map_err(|_| {
            Error::request(
                "partition_index",
                format!("expected at most {}, got {index}", u32::MAX),
                "send the number of the partition within its deadline",
            )
        })
    }

    fn bytes(&mut self, key: &str) -> Result<Vec<u8>, Error> {
        let value = self.require(key)?;
        as_bytes(key, &value)
    }

    fn byte_strings(&mut self, key: &str) -> Result<Vec<Vec<u8>>, Error> {
        let value = self.require(key)?;
        as_array(key, &value)?
            .iter()
            .enumerate()
            .map(|(index, item)| as_bytes(&format!("{key}[{index}]"), item))
            .collect()
    }

    /// What the caller says the sectors are, if it says so.
    fn public_sectors(&mut self) -> Result<Option<Vec<PublicSector>>, Error> {
        let Some(value) = self.take("public_sectors") else {
            return Ok(None);
        };
        let sectors =
            as_array("public_sectors", &value)?
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    let member = |key: &str| {
                        let name = format!("public_sectors[{index}].{key}");
                        (name, item.get(key).cloned().unwrap_or(Value::Null))
                    };
                    let (name, number) = member("sector_number");
                    let number = as_number(&name, &number)?;
                    let (name, comm_r) = member("comm_r");
                    let comm_r = field::commitment(&name, &as_bytes(&name, &comm_r)?)?;
                    Ok((number, comm_r))
                });
        sectors.collect::<Result<_, Error>>().map(Some)
    }
}

fn as_number(field: &str, value: &Value) -> Result<u64, Error> {
    value
        .as_u64()
        .ok_or_else(|| wrong_type(field, "an unsigned 64-bit integer", value))
}

fn as_array<'a>(field: &str, value: &'a Value) -> Result<&'a Vec<Value>, Error> {
    value
        .as_array()
        .ok_or_else(|| wrong_type(field, "an array", value))
}

fn as_bytes(field: &str, value: &Value) -> Result<Vec<u8>, Error> {
    match value.as_str() {
        Some(text) => base64(field, text),
        None => Err(wrong_type(field, "a string of base64", value)),
    }
}

fn wrong_type(field: &str, expected: &str, value: &Value) -> Error {
    Error::request(
        field,
        format!("expected {expected}, got {}", shorten(value)),
        "correct the field's type",
    )
}

/// A value in a message, which must not be as long as the request.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The sectors that the caller names must be those of the vanilla proofs.
fn compare_public_sectors(
    public: Option<Vec<PublicSector>>,
    vanilla_proofs: &[Vec<u8>],
) -> Result<(), Error> {
    let Some(public) = public else {
        return Ok(());
    };
    if public.len() != vanilla_proofs.len() {
        return Err(Error::request(
            "public_sectors",
            format!(
                "expected {}, one per vanilla proof, got {}",
                vanilla_proofs.len(),
                public.len()
            ),
            "name the sectors in the order of their vanilla proofs",
        ));
    }
    for (index, (sector, vanilla)) in public.iter().zip(vanilla_proofs).enumerate() {
        if claimed_sector(vanilla) != Some(*sector) {
            return Err(Error::request(
                format!("public_sectors[{index}]"),
                format!(
                    "sector {} with this comm_r is not the one of vanilla_proofs[{index}]",
                    sector.0
                ),
                "name the sectors in the order of their vanilla proofs",
            ));
        }
    }
    Ok(())
}

/// A request as a file.
pub(super) fn write(request: &ProofRequest) -> Vec<u8> {
    let value = match request {
        ProofRequest::PorepC2(request) => porep(request),
        ProofRequest::WinningPost(request) => json!({
            "registered_proof": request.registered_proof.wire_number(),
            "sector_size": u64::from(request.registered_proof.sector_size()),
            "miner_id": request.miner_id,
            "randomness": encode(&request.randomness),
            "vanilla_proofs": encode_all(&request.vanilla_proofs),
            "public_sectors": public_sectors(&request.vanilla_proofs),
        }),
        ProofRequest::WindowPost(request) => json!({
            "registered_proof": request.registered_proof.wire_number(),
            "sector_size": u64::from(request.registered_proof.sector_size()),
            "miner_id": request.miner_id,
            "partition_index": request.partition_index,
            "randomness": encode(&request.randomness),
            "vanilla_proofs": encode_all(&request.vanilla_proofs),
            "public_sectors": public_sectors(&request.vanilla_proofs),
        }),
        ProofRequest::SnapDeals(request) => json!({
            "registered_proof": request.registered_proof.wire_number(),
            "sector_size": u64::from(request.registered_proof.sector_size()),
            "comm_r_old": encode(&request.comm_r_old),
            "comm_r_new": encode(&request.comm_r_new),
            "comm_d_new": encode(&request.comm_d_new),
            "vanilla_proofs": encode_all(&request.vanilla_proofs),
        }),
    };
    let mut value = value;
    if let (Some(object), Some((name, _, _))) = (
        value.as_object_mut(),
        KINDS.iter().find(|(_, _, kind)| *kind == request.kind()),
    ) {
        object.insert("proof_kind".into(), Value::from(*name));
    }
    format!("{value:#}\n").into_bytes()
}

fn porep(request: &PorepC2) -> Value {
    let size = u64::from(request.registered_proof.sector_size());
    let mut value = json!({
        "registered_proof": request.registered_proof.wire_number(),
        "sector_size": size,
    });
    // Only a sector with a number has a wrapper to put it in.
    let vanilla_proof = match request.sector_number {
        Some(number) => {
            value["sector_number"] = Value::from(number);
            encode(
                json!({
                    "SectorNum": number,
                    "Phase1Out": encode(&request.phase1_output),
                    "SectorSize": size,
                })
                .to_string()
                .as_bytes(),
            )
        }
        None => encode(&request.phase1_output),
    };
    value["vanilla_proof"] = Value::from(vanilla_proof);
    if let Some(miner_id) = request.miner_id {
        value["miner_id"] = Value::from(miner_id);
    }
    value
}

fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn encode_all(all: &[Vec<u8>]) -> Vec<String> {
    all.iter().map(|bytes| encode(bytes)).collect()
}

fn public_sectors(vanilla_proofs: &[Vec<u8>]) -> Vec<Value> {
    vanilla_proofs
        .iter()
        .filter_map(|vanilla| claimed_sector(vanilla))
        .map(|(number, comm_r)| json!({ "sector_number": number, "comm_r": encode(&comm_r) }))
        .collect()
}
