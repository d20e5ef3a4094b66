//! Requests as JSON files.
//!
//! Not the proving service's messages, though the keys are its field names.
//! The invariants: [`parse`] reads the output of [`write()`] back as the same request. A key
//! that is unknown, or belongs to another kind, is an error.

use serde_json::{Value, json};

use super::field::{self, WireNumber};
use super::members::{Members, as_array, as_bytes, as_number, encode, shorten};
use super::phase1::{phase1_output, probe, registered_proof};
use super::{
    PorepC2, ProofRequest, PublicSector, SnapDeals, WindowPost, WinningPost, claimed_sector,
};
use crate::Error;
use crate::proof_kind::ProofKind;

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

/// No larger file is looked at before its turn: that would be as much work as
/// reading it. A WinningPoSt of a 64 GiB sector has a tenth of this.
const PEEK_BYTES_MAX: usize = 4 << 20;

/// The kind that a small file names.
pub(super) fn peek_kind(bytes: &[u8]) -> Option<ProofKind> {
    #[derive(serde::Deserialize)]
    struct Named {
        proof_kind: Value,
    }
    let small = Some(without_mark(bytes)).filter(|bytes| bytes.len() <= PEEK_BYTES_MAX)?;
    let Named { proof_kind } = serde_json::from_slice(small).ok()?;
    kind_of(&proof_kind)
}

/// Returns a text without the mark of UTF-8 that some editors put in front of it.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Reads any of the three kinds of request file.
pub(super) fn parse(bytes: &[u8]) -> Result<ProofRequest, Error> {
    let bytes = without_mark(bytes);
    let probe = probe("request", bytes)?;
    if probe.proof_kind.is_some() {
        return request(Members::parse(bytes)?);
    }
    if probe.phase1_out.is_none() && probe.replica_id.is_none() {
        return Err(Error::request(
            "proof_kind",
            "missing, and the file is neither a C1 output nor its wrapper",
            "name the kind of proof to make",
        ));
    }
    let (sector_number, phase1_output) = phase1_output(bytes.into(), None)?;
    Ok(ProofRequest::PorepC2(PorepC2 {
        registered_proof: registered_proof(&phase1_output)?,
        miner_id: None,
        sector_number,
        phase1_output,
    }))
}

/// A request from its fields.
fn request(mut members: Members) -> Result<ProofRequest, Error> {
    let kind = kind(&mut members)?;
    reject_others(&members, kind)?;
    let proof = members.number("registered_proof")?;
    let size = members.optional_number("sector_size")?.unwrap_or(0);
    match kind {
        ProofKind::Porep => PorepC2::new(
            proof,
            size,
            members.optional_number("miner_id")?,
            members.optional_number("sector_number")?,
            members.bytes("vanilla_proof")?,
        )
        .map(ProofRequest::PorepC2),
        ProofKind::WinningPost => {
            winning_post(proof, size, &mut members).map(ProofRequest::WinningPost)
        }
        ProofKind::WindowPost => {
            window_post(proof, size, &mut members).map(ProofRequest::WindowPost)
        }
        ProofKind::SnapDeals => SnapDeals::new(
            proof,
            size,
            &members.bytes("comm_r_old")?,
            &members.bytes("comm_r_new")?,
            &members.bytes("comm_d_new")?,
            members.byte_strings("vanilla_proofs")?,
        )
        .map(ProofRequest::SnapDeals),
    }
}

fn winning_post(proof: u64, size: u64, members: &mut Members) -> Result<WinningPost, Error> {
    if members.optional_number("partition_index")?.unwrap_or(0) != 0 {
        return Err(Error::request(
            "partition_index",
            "a WinningPoSt has one partition, number 0",
            "leave partition_index out",
        ));
    }
    let miner_id = members.number("miner_id")?;
    let randomness = members.bytes("randomness")?;
    let vanilla_proofs = members.byte_strings("vanilla_proofs")?;
    let request = WinningPost::new(proof, size, miner_id, &randomness, vanilla_proofs)?;
    compare_public_sectors(members, &request.vanilla_proofs)?;
    Ok(request)
}

fn window_post(proof: u64, size: u64, members: &mut Members) -> Result<WindowPost, Error> {
    let miner_id = members.number("miner_id")?;
    let randomness = members.bytes("randomness")?;
    let index = partition_index(members)?;
    let vanilla_proofs = members.byte_strings("vanilla_proofs")?;
    let request = WindowPost::new(proof, size, miner_id, &randomness, index, vanilla_proofs)?;
    compare_public_sectors(members, &request.vanilla_proofs)?;
    Ok(request)
}

/// The kind that a request names.
fn kind(members: &mut Members) -> Result<ProofKind, Error> {
    let value = members.take("proof_kind").unwrap_or(Value::Null);
    kind_of(&value).ok_or_else(|| {
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

/// The kind of this name or number.
fn kind_of(value: &Value) -> Option<ProofKind> {
    let is_it = |(name, number, _): &&(&str, u64, ProofKind)| {
        value.as_str() == Some(name) || value.as_u64() == Some(*number)
    };
    KINDS.iter().find(is_it).map(|(_, _, kind)| *kind)
}

/// Refuses keys that this kind of request does not have.
fn reject_others(members: &Members, kind: ProofKind) -> Result<(), Error> {
    let own: &[&str] = match kind {
        ProofKind::Porep => &POREP_KEYS,
        ProofKind::WinningPost | ProofKind::WindowPost => &POST_KEYS,
        ProofKind::SnapDeals => &SNAP_KEYS,
    };
    let known = [&COMMON_KEYS, own].concat();
    let Some(key) = members.unknown(&known) else {
        return Ok(());
    };
    let nearest = known
        .iter()
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

fn partition_index(members: &mut Members) -> Result<u32, Error> {
    let index = members.optional_number("partition_index")?.unwrap_or(0);
    u32::try_from(index).map_err(|_| {
        Error::request(
            "partition_index",
            format!("expected at most {}, got {index}", u32::MAX),
            "send the number of the partition within its deadline",
        )
    })
}

/// The sectors that the caller names, if it does, must be those of the vanilla
/// proofs.
fn compare_public_sectors(members: &mut Members, vanilla_proofs: &[Vec<u8>]) -> Result<(), Error> {
    let Some(value) = members.take("public_sectors") else {
        return Ok(());
    };
    let advice = "name the sectors in the order of their vanilla proofs";
    let public = as_array("public_sectors", &value)?;
    if public.len() != vanilla_proofs.len() {
        return Err(Error::request(
            "public_sectors",
            format!(
                "expected {}, one per vanilla proof, got {}",
                vanilla_proofs.len(),
                public.len()
            ),
            advice,
        ));
    }
    for (index, (item, vanilla)) in public.iter().zip(vanilla_proofs).enumerate() {
        let name = format!("public_sectors[{index}]");
        let (number, comm_r) = public_sector(&name, item)?;
        let problem = match claimed_sector(vanilla) {
            Some(claimed) if claimed == (number, comm_r) => continue,
            Some((claimed, _)) if claimed == number => {
                format!("its comm_r is not that of vanilla_proofs[{index}]")
            }
            Some((claimed, _)) => {
                format!("expected {claimed}, the sector of vanilla_proofs[{index}], got {number}")
            }
            None => format!("vanilla_proofs[{index}] is too short to be of a sector"),
        };
        return Err(Error::request(name, problem, advice));
    }
    Ok(())
}

fn public_sector(name: &str, item: &Value) -> Result<PublicSector, Error> {
    let (number, comm_r) = (format!("{name}.sector_number"), format!("{name}.comm_r"));
    let member = |key| item.get(key).unwrap_or(&Value::Null);
    Ok((
        as_number(&number, member("sector_number"))?,
        field::commitment(&comm_r, &as_bytes(&comm_r, member("comm_r"))?)?,
    ))
}

/// A request as a file.
pub(super) fn write(request: &ProofRequest) -> Vec<u8> {
    let mut value = match request {
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
    if let Some((name, _, _)) = KINDS.iter().find(|(_, _, kind)| *kind == request.kind()) {
        value["proof_kind"] = Value::from(*name);
    }
    format!("{value:#}\n").into_bytes()
}

/// The C1 output goes in as it is: its wrapper would say the same once more,
/// and make the file a third larger.
fn porep(request: &PorepC2) -> Value {
    json!({
        "registered_proof": request.registered_proof.wire_number(),
        "sector_size": u64::from(request.registered_proof.sector_size()),
        "miner_id": request.miner_id,
        "sector_number": request.sector_number,
        "vanilla_proof": encode(&request.phase1_output),
    })
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

#[cfg(test)]
mod tests {
    use super::{PEEK_BYTES_MAX, peek_kind};
    use crate::proof_kind::ProofKind;

    #[test]
    fn a_look_tells_the_kind_of_what_is_small_and_names_it() {
        let winning = include_bytes!("../../../data/sector-2kib/winning-post.json");
        assert_eq!(peek_kind(winning), Some(ProofKind::WinningPost));
        assert_eq!(
            peek_kind(br#"{"proof_kind": 3}"#),
            Some(ProofKind::WindowPost)
        );
        let none: [&[u8]; 5] = [
            b"",
            b"12",
            br#"{"proof_kind": 9}"#,
            b"{}",
            b"{\"proof_kind\": 3",
        ];
        assert!(none.iter().all(|bytes| peek_kind(bytes).is_none()));
        let mut large = winning.to_vec();
        large.resize(PEEK_BYTES_MAX, b' ');
        assert_eq!(peek_kind(&large), Some(ProofKind::WinningPost));
        large.push(b' ');
        assert_eq!(peek_kind(&large), None);
    }
}
