//! A sector of an aggregate with its proof.
//!
//! Not the aggregate. The invariants of a sector:
//!
//! * Its proof has the length of its partitions.
//! * Its commitments are nonzero field elements.
//! * It has a seed, unless its proof is non-interactive.

use filecoin_proofs_api::RegisteredSealProof;
use sha2::{Digest, Sha256};

use super::aggregate_file::SectorFile;
use super::field;
use super::members::{base64, encode};
use super::phase1::Phase1Public;
use super::{Commitment, PorepC2};
use crate::Error;

/// Bytes of one partition's proof: two G1 points and one of G2, compressed.
pub(super) const PARTITION_PROOF_BYTES: usize = 192;

/// A sector with its proof, in the order of the aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AggregateSector {
    pub(super) number: u64,
    pub(super) comm_r: Commitment,
    pub(super) comm_d: Commitment,
    pub(super) ticket: [u8; 32],
    /// The chain's randomness; none for non-interactive PoRep.
    pub(super) seed: Option<[u8; 32]>,
    /// The proofs of all partitions, one after the other.
    pub(super) proof: Vec<u8>,
}

impl AggregateSector {
    /// Reads the sector of this index out of a request file.
    pub(super) fn read(
        index: usize,
        file: &SectorFile,
        registered: RegisteredSealProof,
    ) -> Result<Self, Error> {
        let name = |key: &str| format!("sectors[{index}].{key}");
        let bytes = |key: &str, text: &str| base64(&name(key), text);
        let bytes32 = |key: &str, text: &str| field::bytes32(&name(key), &bytes(key, text)?);
        let seed = match &file.seed {
            Some(seed) => seed_of(registered, bytes32("seed", seed)?),
            None if field::is_non_interactive(registered) => None,
            None => {
                return Err(Error::request(
                    name("seed"),
                    "missing",
                    "send the chain's interactive randomness; only non-interactive PoRep has none",
                ));
            }
        };
        Ok(Self {
            number: file.sector_number,
            comm_r: field::commitment(&name("comm_r"), &bytes("comm_r", &file.comm_r)?)?,
            comm_d: field::commitment(&name("comm_d"), &bytes("comm_d", &file.comm_d)?)?,
            ticket: bytes32("ticket", &file.ticket)?,
            seed,
            proof: whole(index, bytes("proof", &file.proof)?, registered)?,
        })
    }

    /// Takes the sector of this index out of the request that was proved.
    pub(super) fn of(index: usize, porep: &PorepC2, proof: Vec<u8>) -> Result<Self, Error> {
        let public = Phase1Public::of(&porep.phase1_output)?;
        let comm = |key: &str, bytes| field::commitment(&format!("sectors[{index}].{key}"), bytes);
        Ok(Self {
            number: porep
                .sector_number
                .ok_or_else(|| missing("sector_number"))?,
            comm_r: comm("comm_r", &public.comm_r)?,
            comm_d: comm("comm_d", &public.comm_d)?,
            ticket: public.ticket,
            seed: seed_of(porep.registered_proof, public.seed),
            proof: whole(index, proof, porep.registered_proof)?,
        })
    }

    /// Returns the sector as it is in a request file.
    pub(super) fn file(&self) -> SectorFile {
        SectorFile {
            sector_number: self.number,
            comm_r: encode(&self.comm_r),
            comm_d: encode(&self.comm_d),
            ticket: encode(&self.ticket),
            seed: self.seed.as_ref().map(|seed| encode(seed)),
            proof: encode(&self.proof),
        }
    }
}

/// Returns the seed of a sector. That of a non-interactive one decides nothing, and the
/// proofs library takes any.
pub(super) fn seed_of(registered: RegisteredSealProof, seed: [u8; 32]) -> Option<[u8; 32]> {
    (!field::is_non_interactive(registered)).then_some(seed)
}

/// Returns SHA-256 of the seeds, where there are any, and replica commitments of sectors.
pub(super) fn included(
    sectors: impl IntoIterator<Item = (Option<[u8; 32]>, Commitment)>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (seed, comm_r) in sectors {
        if let Some(seed) = seed {
            hash.update(seed);
        }
        hash.update(comm_r);
    }
    hash.finalize().into()
}

/// Checks the length of a sector's proof.
fn whole(index: usize, proof: Vec<u8>, registered: RegisteredSealProof) -> Result<Vec<u8>, Error> {
    let expected = usize::from(registered.partitions()) * PARTITION_PROOF_BYTES;
    if proof.len() == expected {
        return Ok(proof);
    }
    Err(Error::request(
        format!("sectors[{index}].proof"),
        format!("expected {expected} bytes, got {}", proof.len()),
        "send the proof that cuzk or the proofs library returned, of all partitions",
    ))
}

/// The error of a request that does not say which sector it is of.
pub(super) fn missing(field: &str) -> Error {
    Error::request(
        field,
        "missing, and the public inputs of a proof depend on it",
        "put it into the request file",
    )
}
