//! A request to a prover: one statement to prove, and the vanilla proof that it is true.
//!
//! Not a wire format: every kind has exactly the fields its proof needs, typed
//! and already checked one by one. [`decode`](crate::kinds::decode) checks the rest, which
//! takes a decoded vanilla proof. The invariants of a request:
//!
//! * It names a registered proof of its own kind.
//! * It agrees with that proof on the sector size.
//! * Its commitments are nonzero field elements.

mod aggregate;
mod aggregate_file;
mod aggregate_sector;
mod field;
mod json;
mod members;
mod phase1;

use std::borrow::Cow;

use filecoin_proofs_api::{RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof};

use crate::Error;
use crate::proof_kind::ProofKind;

/// A sector commitment: 32 bytes, little endian, below the field's modulus.
pub type Commitment = [u8; 32];

/// One proof to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofRequest {
    /// A sector was sealed: proof of replication, second commit phase.
    PorepC2(PorepC2),
    /// A sector that won an election is still stored.
    WinningPost(WinningPost),
    /// The sectors of one partition of a deadline are still stored.
    WindowPost(WindowPost),
    /// A sector's data was replaced.
    SnapDeals(SnapDeals),
}

/// A proof of replication to make from the output of the first commit phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PorepC2 {
    pub(crate) registered_proof: RegisteredSealProof,
    /// The miner that sealed the sector, if the request says so.
    pub(crate) miner_id: Option<u64>,
    /// The sector, if the request says so.
    pub(crate) sector_number: Option<u64>,
    /// JSON of the proofs library's `SealCommitPhase1Output`.
    pub(crate) phase1_output: Vec<u8>,
}

/// A proof of spacetime over one sector, to claim an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WinningPost {
    pub(crate) registered_proof: RegisteredPoStProof,
    pub(crate) miner_id: u64,
    pub(crate) randomness: [u8; 32],
    /// bincode of one sector each.
    pub(crate) vanilla_proofs: Vec<Vec<u8>>,
}

/// A proof of spacetime over the sectors of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPost {
    pub(crate) registered_proof: RegisteredPoStProof,
    pub(crate) miner_id: u64,
    pub(crate) randomness: [u8; 32],
    /// Which partition of the deadline these sectors are.
    pub(crate) partition_index: u32,
    /// bincode of one sector each, in ascending order of sector number.
    pub(crate) vanilla_proofs: Vec<Vec<u8>>,
}

/// A proof that a sector's replica now encodes new data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapDeals {
    pub(crate) registered_proof: RegisteredUpdateProof,
    pub(crate) comm_r_old: Commitment,
    pub(crate) comm_r_new: Commitment,
    pub(crate) comm_d_new: Commitment,
    /// bincode of one partition each.
    pub(crate) vanilla_proofs: Vec<Vec<u8>>,
}

impl ProofRequest {
    /// Reads a request file. Its keys tell which of these it is:
    ///
    /// * An object whose keys are the field names of `SubmitProofRequest`. Bytes are in
    ///   standard base64.
    /// * A bare `SealCommitPhase1Output`.
    /// * The wrapper `{"SectorNum", "Phase1Out", "SectorSize"}` around one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the field.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        json::parse(bytes)
    }

    /// Returns the kind that a request file asks for, if it says so plainly. It is for a
    /// decision on the order in which requests are read. No WinningPoSt is as large as a file that
    /// is not looked at.
    #[must_use]
    pub fn peek_kind(bytes: &[u8]) -> Option<ProofKind> {
        json::peek_kind(bytes)
    }

    /// Returns the request file that [`from_json`](Self::from_json) reads back as this
    /// request.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    /// Returns the kind of the proof.
    #[must_use]
    pub fn kind(&self) -> ProofKind {
        match self {
            Self::PorepC2(_) => ProofKind::Porep,
            Self::WinningPost(_) => ProofKind::WinningPost,
            Self::WindowPost(_) => ProofKind::WindowPost,
            Self::SnapDeals(_) => ProofKind::SnapDeals,
        }
    }
}

impl PorepC2 {
    /// Checks the fields that a client sends and makes them a request. `registered_proof`
    /// is 0 to 19. `sector_size` is its size in bytes or 0. `vanilla_proof` is the JSON
    /// wrapper around a `SealCommitPhase1Output`, or that output itself. An output that is
    /// owned is not copied.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the field.
    pub fn new<'a>(
        registered_proof: u64,
        sector_size: u64,
        miner_id: Option<u64>,
        sector_number: Option<u64>,
        vanilla_proof: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Self, Error> {
        let registered_proof = field::seal_proof(registered_proof)?;
        let size = field::sector_size(sector_size, registered_proof.sector_size().into())?;
        let (wrapped_number, phase1_output) =
            phase1::phase1_output(vanilla_proof.into(), Some(size))?;
        if let (Some(ours), Some(wrapped)) = (sector_number, wrapped_number)
            && ours != wrapped
        {
            return Err(Error::request(
                "vanilla_proof.SectorNum",
                format!("expected {ours}, the request's sector_number, got {wrapped}"),
                "send the C1 output of the sector that the request names",
            ));
        }
        Ok(Self {
            registered_proof,
            miner_id,
            sector_number: sector_number.or(wrapped_number),
            phase1_output,
        })
    }

    /// The seal proof asked for.
    #[must_use]
    pub fn registered_proof(&self) -> RegisteredSealProof {
        self.registered_proof
    }

    /// Returns true for non-interactive PoRep. The chain takes the aggregate of the proofs of
    /// its partitions in place of these proofs.
    #[must_use]
    pub fn is_non_interactive(&self) -> bool {
        is_non_interactive(self.registered_proof)
    }

    /// Returns the hash that the first challenge of an aggregate of this sector alone
    /// includes, as [`AggregateRequest::included`] does for several sectors.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`].
    pub fn included(&self) -> Result<[u8; 32], Error> {
        let public = Phase1Public::of(&self.phase1_output)?;
        let seed = seed_of(self.registered_proof, public.seed);
        Ok(aggregate_sector::included([(seed, public.comm_r)]))
    }
}

impl WinningPost {
    /// Checks the fields that a client sends and makes them a request. `registered_proof`
    /// is 0 to 4. `sector_size` is its size in bytes or 0. `randomness` has 32 bytes, and
    /// `vanilla_proofs` are those of one sector.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the field.
    pub fn new(
        registered_proof: u64,
        sector_size: u64,
        miner_id: u64,
        randomness: &[u8],
        vanilla_proofs: Vec<Vec<u8>>,
    ) -> Result<Self, Error> {
        let registered_proof = field::post_proof(registered_proof, ProofKind::WinningPost)?;
        field::sector_size(sector_size, registered_proof.sector_size().into())?;
        let randomness = field::randomness(randomness)?;
        field::proof_count(&vanilla_proofs, 1..=registered_proof.sector_count())?;
        Ok(Self {
            registered_proof,
            miner_id,
            randomness,
            vanilla_proofs,
        })
    }

    /// The PoSt proof asked for.
    #[must_use]
    pub fn registered_proof(&self) -> RegisteredPoStProof {
        self.registered_proof
    }
}

impl WindowPost {
    /// Checks the fields that a client sends and makes them a request. `registered_proof`
    /// is 5 to 14. `sector_size` is its size in bytes or 0. `randomness` has 32 bytes, and
    /// `vanilla_proofs` are those of the sectors of partition `partition_index`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the field.
    pub fn new(
        registered_proof: u64,
        sector_size: u64,
        miner_id: u64,
        randomness: &[u8],
        partition_index: u32,
        vanilla_proofs: Vec<Vec<u8>>,
    ) -> Result<Self, Error> {
        let registered_proof = field::post_proof(registered_proof, ProofKind::WindowPost)?;
        field::sector_size(sector_size, registered_proof.sector_size().into())?;
        let randomness = field::randomness(randomness)?;
        field::proof_count(&vanilla_proofs, 1..=registered_proof.sector_count())?;
        Ok(Self {
            registered_proof,
            miner_id,
            randomness,
            partition_index,
            vanilla_proofs,
        })
    }

    /// The PoSt proof asked for.
    #[must_use]
    pub fn registered_proof(&self) -> RegisteredPoStProof {
        self.registered_proof
    }
}

impl SnapDeals {
    /// Checks the fields that a client sends and makes them a request. `registered_proof`
    /// is 0 to 4. `sector_size` is its size in bytes or 0. The commitments have 32 bytes
    /// each, and there is one of the `vanilla_proofs` for each partition.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`], naming the field.
    pub fn new(
        registered_proof: u64,
        sector_size: u64,
        comm_r_old: &[u8],
        comm_r_new: &[u8],
        comm_d_new: &[u8],
        vanilla_proofs: Vec<Vec<u8>>,
    ) -> Result<Self, Error> {
        let registered_proof = field::update_proof(registered_proof)?;
        let size = field::sector_size(sector_size, registered_proof.sector_size().into())?;
        let partitions = storage_proofs_update::constants::partition_count(size.nodes());
        field::proof_count(&vanilla_proofs, partitions..=partitions)?;
        Ok(Self {
            registered_proof,
            comm_r_old: field::commitment("comm_r_old", comm_r_old)?,
            comm_r_new: field::commitment("comm_r_new", comm_r_new)?,
            comm_d_new: field::commitment("comm_d_new", comm_d_new)?,
            vanilla_proofs,
        })
    }

    /// The update proof asked for.
    #[must_use]
    pub fn registered_proof(&self) -> RegisteredUpdateProof {
        self.registered_proof
    }
}

/// The prover id of a miner: its number as unsigned LEB128, padded with zeros.
#[must_use]
pub fn prover_id(miner_id: u64) -> [u8; 32] {
    let mut id = [0; 32];
    let mut rest = miner_id;
    for byte in &mut id {
        let low = rest.to_le_bytes()[0] & 0x7f;
        rest >>= 7;
        *byte = if rest == 0 { low } else { low | 0x80 };
        if rest == 0 {
            break;
        }
    }
    id
}

/// A sector's number and replica commitment.
pub(crate) type PublicSector = (u64, Commitment);

/// The sector that a vanilla PoSt proof, by its first 40 bytes, is of.
pub(crate) fn claimed_sector(vanilla_proof: &[u8]) -> Option<PublicSector> {
    let (number, rest) = vanilla_proof.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), *rest.first_chunk()?))
}

pub use aggregate::AggregateRequest;
use aggregate_sector::seed_of;
pub(crate) use field::{
    WireNumber, commitment, field_element, is_non_interactive, post_proof, randomness, seal_proof,
    update_proof,
};
pub(crate) use phase1::{Phase1Public, bad_phase1_output};

#[cfg(test)]
mod tests {
    use super::prover_id;

    #[test]
    fn prover_id_is_leb128() {
        for (miner, expected) in [
            (0, vec![0u8]),
            (127, vec![0x7f]),
            (128, vec![0x80, 0x01]),
            (1001, vec![0xe9, 0x07]),
            (
                u64::MAX,
                vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            ),
        ] {
            let id = prover_id(miner);
            assert_eq!(&id[..expected.len()], &expected[..], "{miner}");
            assert!(
                id[expected.len()..].iter().all(|&byte| byte == 0),
                "{miner}"
            );
        }
    }
}
