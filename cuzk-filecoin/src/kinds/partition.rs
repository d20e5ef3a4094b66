//! One partition of a statement as bytes, for another machine to prove.
//!
//! Not a message between machines: how the bytes travel, and who sent them, is not known here.
//! The invariants:
//!
//! * Bytes of another format are refused by their first bytes.
//! * The circuit and the number of a partition are known before its body is read.
//!
//! ```text
//! "cuzkpart" ‖ format (u16) ‖ kind (u8) ‖ registered proof (u8) ‖ partition (u32) ‖ body
//! ```
//!
//! Numbers are little endian. The body is bincode: the statement's fields, and the vanilla proof
//! of this partition alone, as the proofs library serialises it.

use bincode::Options as _;
use filecoin_proofs_api::{RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::shape;
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::request::{WireNumber, post_proof, seal_proof, update_proof};
use crate::sector_size::SectorSize;

/// The number of the format. A change of any body needs another number.
pub const PARTITION_FORMAT: u16 = 1;

const MAGIC: [u8; 8] = *b"cuzkpart";
const HEADER_BYTES: usize = MAGIC.len() + 2 + 1 + 1 + 4;

/// The circuit and the number of a partition, as the first bytes of its request say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionHeader {
    /// The circuit that the partition instantiates.
    pub circuit: CircuitId,
    /// The number of the partition in its job.
    pub partition: u32,
    pub(super) proof: Registered,
}

/// A registered proof of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registered {
    Porep(RegisteredSealProof),
    WinningPost(RegisteredPoStProof),
    WindowPost(RegisteredPoStProof),
    SnapDeals(RegisteredUpdateProof),
}

impl Registered {
    fn kind(self) -> ProofKind {
        match self {
            Self::Porep(_) => ProofKind::Porep,
            Self::WinningPost(_) => ProofKind::WinningPost,
            Self::WindowPost(_) => ProofKind::WindowPost,
            Self::SnapDeals(_) => ProofKind::SnapDeals,
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Porep(proof) => proof.wire_number(),
            Self::WinningPost(proof) | Self::WindowPost(proof) => proof.wire_number(),
            Self::SnapDeals(proof) => proof.wire_number(),
        }
    }

    fn sector_size(self) -> Result<SectorSize, Error> {
        SectorSize::registered(match self {
            Self::Porep(proof) => proof.sector_size(),
            Self::WinningPost(proof) | Self::WindowPost(proof) => proof.sector_size(),
            Self::SnapDeals(proof) => proof.sector_size(),
        })
    }

    fn read(kind: u8, number: u8) -> Result<Self, Error> {
        let number = number.into();
        let place = usize::from(kind);
        match ProofKind::ALL.get(place).copied() {
            Some(ProofKind::Porep) => Ok(Self::Porep(seal_proof(number)?)),
            Some(kind @ ProofKind::WinningPost) => Ok(Self::WinningPost(post_proof(number, kind)?)),
            Some(kind @ ProofKind::WindowPost) => Ok(Self::WindowPost(post_proof(number, kind)?)),
            Some(ProofKind::SnapDeals) => Ok(Self::SnapDeals(update_proof(number)?)),
            None => Err(bad(format!("kind {kind} is not known"))),
        }
    }
}

impl PartitionHeader {
    /// Reads the first bytes of a partition's request, and nothing of its body.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for bytes that are no partition, of another format, or of a
    /// proof that is not known.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        split(bytes).map(|(header, _)| header)
    }
}

/// Returns the header of a partition's request, and the body.
pub(super) fn split(bytes: &[u8]) -> Result<(PartitionHeader, &[u8]), Error> {
    let short = || bad(format!("{} bytes are too few for a partition", bytes.len()));
    let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    if *magic != MAGIC {
        return Err(bad("the bytes are no partition of a statement".to_owned()));
    }
    let (format, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let format = u16::from_le_bytes(*format);
    if format != PARTITION_FORMAT {
        return Err(bad(format!(
            "expected format {PARTITION_FORMAT}, got {format}"
        )));
    }
    let (&[kind, number], rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (partition, body) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let proof = Registered::read(kind, number)?;
    let header = PartitionHeader {
        circuit: CircuitId {
            kind: proof.kind(),
            sector_size: proof.sector_size()?,
        },
        partition: u32::from_le_bytes(*partition),
        proof,
    };
    Ok((header, body))
}

/// Returns the request of a partition.
pub(super) fn write(
    proof: Registered,
    partition: usize,
    body: &impl Serialize,
) -> anyhow::Result<Vec<u8>> {
    let form = bincode::DefaultOptions::new().with_fixint_encoding();
    let body_bytes = usize::try_from(form.serialized_size(body)?)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body_bytes);
    let kind = ProofKind::ALL.iter().position(|kind| *kind == proof.kind());
    bytes.extend(MAGIC);
    bytes.extend(PARTITION_FORMAT.to_le_bytes());
    bytes.push(u8::try_from(kind.unwrap_or(ProofKind::ALL.len()))?);
    bytes.push(u8::try_from(proof.number())?);
    bytes.extend(u32::try_from(partition)?.to_le_bytes());
    form.serialize_into(&mut bytes, body)?;
    Ok(bytes)
}

/// Reads the body of a partition's request, all of it.
pub(super) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    shape::from_bincode(bytes).map_err(bad)
}

/// Returns the number of a partition, if its job has as many.
pub(super) fn number(header: &PartitionHeader, partitions: usize) -> Result<usize, Error> {
    let number = usize::try_from(header.partition).unwrap_or(usize::MAX);
    if number < partitions {
        return Ok(number);
    }
    let circuit = header.circuit;
    Err(bad(format!(
        "expected a number below {partitions} for {circuit}, got {number}"
    )))
}

/// The error of bytes that are no partition.
pub(super) fn bad(problem: String) -> Error {
    let advice = "run the same version of cuzk on all machines, and send its bytes unaltered";
    Error::request("partition", problem, advice)
}
