//! Checks of single fields, shared by every way a request comes in.
//!
//! Not for what needs a decoded vanilla proof. The invariant: every error
//! names the field as `SubmitProofRequest` spells it, says what was expected
//! and what came, and what to do.

use std::ops::RangeInclusive;

use blstrs::Scalar;
use ff::PrimeField;
use filecoin_proofs_api::{
    ApiFeature, PoStType, RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof,
};

use crate::Error;
use crate::proof_kind::ProofKind;
use crate::request::Commitment;
use crate::sector_size::SectorSize;

/// The seal proofs by their number on the wire.
pub(crate) const SEAL_PROOFS: [RegisteredSealProof; 20] = {
    use RegisteredSealProof::*;
    [
        StackedDrg2KiBV1,
        StackedDrg8MiBV1,
        StackedDrg512MiBV1,
        StackedDrg32GiBV1,
        StackedDrg64GiBV1,
        StackedDrg2KiBV1_1,
        StackedDrg8MiBV1_1,
        StackedDrg512MiBV1_1,
        StackedDrg32GiBV1_1,
        StackedDrg64GiBV1_1,
        StackedDrg2KiBV1_1_Feat_SyntheticPoRep,
        StackedDrg8MiBV1_1_Feat_SyntheticPoRep,
        StackedDrg512MiBV1_1_Feat_SyntheticPoRep,
        StackedDrg32GiBV1_1_Feat_SyntheticPoRep,
        StackedDrg64GiBV1_1_Feat_SyntheticPoRep,
        StackedDrg2KiBV1_2_Feat_NonInteractivePoRep,
        StackedDrg8MiBV1_2_Feat_NonInteractivePoRep,
        StackedDrg512MiBV1_2_Feat_NonInteractivePoRep,
        StackedDrg32GiBV1_2_Feat_NonInteractivePoRep,
        StackedDrg64GiBV1_2_Feat_NonInteractivePoRep,
    ]
};

/// The PoSt proofs by their number on the wire.
const POST_PROOFS: [RegisteredPoStProof; 15] = {
    use RegisteredPoStProof::*;
    [
        StackedDrgWinning2KiBV1,
        StackedDrgWinning8MiBV1,
        StackedDrgWinning512MiBV1,
        StackedDrgWinning32GiBV1,
        StackedDrgWinning64GiBV1,
        StackedDrgWindow2KiBV1,
        StackedDrgWindow8MiBV1,
        StackedDrgWindow512MiBV1,
        StackedDrgWindow32GiBV1,
        StackedDrgWindow64GiBV1,
        StackedDrgWindow2KiBV1_2,
        StackedDrgWindow8MiBV1_2,
        StackedDrgWindow512MiBV1_2,
        StackedDrgWindow32GiBV1_2,
        StackedDrgWindow64GiBV1_2,
    ]
};

/// The update proofs by their number on the wire.
const UPDATE_PROOFS: [RegisteredUpdateProof; 5] = {
    use RegisteredUpdateProof::*;
    [
        StackedDrg2KiBV1,
        StackedDrg8MiBV1,
        StackedDrg512MiBV1,
        StackedDrg32GiBV1,
        StackedDrg64GiBV1,
    ]
};

/// The number of a registered proof on the wire.
pub(crate) trait WireNumber {
    fn wire_number(self) -> u64;
}

macro_rules! wire_number {
    ($($proof:ty),*) => {$(
        impl WireNumber for $proof {
            fn wire_number(self) -> u64 {
                // The enums are append-only and numbered from zero.
                self as u64
            }
        }
    )*};
}
wire_number!(
    RegisteredSealProof,
    RegisteredPoStProof,
    RegisteredUpdateProof
);

fn numbered<P: Copy>(proofs: &[P], number: u64, what: &str) -> Result<P, Error> {
    usize::try_from(number)
        .ok()
        .and_then(|number| proofs.get(number))
        .copied()
        .ok_or_else(|| {
            Error::request(
                "registered_proof",
                format!(
                    "expected 0 to {} for a {what}, got {number}",
                    proofs.len().saturating_sub(1)
                ),
                "send the number of the sector's registered proof",
            )
        })
}

/// The seal proof of this number.
pub(crate) fn seal_proof(number: u64) -> Result<RegisteredSealProof, Error> {
    numbered(&SEAL_PROOFS, number, "seal proof")
}

/// Returns true for non-interactive PoRep. Its challenges follow from the replica instead of
/// the chain's seed, and the chain takes the aggregate of its partitions' proofs.
pub(crate) fn is_non_interactive(proof: RegisteredSealProof) -> bool {
    proof.feature_enabled(ApiFeature::NonInteractivePoRep)
}

/// A PoSt proof of the given kind.
pub(crate) fn post_proof(number: u64, kind: ProofKind) -> Result<RegisteredPoStProof, Error> {
    let proof = numbered(&POST_PROOFS, number, "PoSt proof")?;
    let (typ, numbers) = match kind {
        ProofKind::WinningPost => (PoStType::Winning, "0 to 4"),
        _ => (PoStType::Window, "5 to 14"),
    };
    if proof.typ() != typ {
        return Err(Error::request(
            "registered_proof",
            format!("expected {numbers} for {kind}, got {number} ({proof:?})"),
            "send the registered proof of the kind that proof_kind names",
        ));
    }
    Ok(proof)
}

/// An update proof.
pub(crate) fn update_proof(number: u64) -> Result<RegisteredUpdateProof, Error> {
    numbered(&UPDATE_PROOFS, number, "sector update proof")
}

/// The sector size in bytes, where 0 stands for the registered proof's.
pub(super) fn sector_size(bytes: u64, registered: u64) -> Result<SectorSize, Error> {
    if bytes != 0 && bytes != registered {
        return Err(Error::request(
            "sector_size",
            format!("expected {registered}, the registered proof's, got {bytes}"),
            "send the size in bytes of the sectors that registered_proof is for",
        ));
    }
    SectorSize::registered(filecoin_proofs::SectorSize(registered))
}

/// 32 bytes.
pub(super) fn bytes32(field: &str, bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| {
        Error::request(
            field,
            format!("expected 32 bytes, got {}", bytes.len()),
            "send the 32 bytes as they are",
        )
    })
}

/// Returns true if 32 bytes, little endian, are below the field's modulus.
pub(crate) fn field_element(bytes: [u8; 32]) -> bool {
    Option::<Scalar>::from(Scalar::from_repr(bytes)).is_some()
}

/// A commitment: 32 bytes, a nonzero field element.
pub(crate) fn commitment(field: &str, bytes: &[u8]) -> Result<Commitment, Error> {
    let bytes = bytes32(field, bytes)?;
    if bytes == [0; 32] {
        return Err(Error::request(
            field,
            "all 32 bytes are zero",
            "send the commitment that sealing returned",
        ));
    }
    if !field_element(bytes) {
        return Err(Error::request(
            field,
            "not a field element: as a little-endian number it exceeds the modulus",
            "send the commitment's raw bytes, not a CID or another byte order",
        ));
    }
    Ok(bytes)
}

/// The chain's randomness for a PoSt: 32 bytes, a field element.
pub(crate) fn randomness(bytes: &[u8]) -> Result<[u8; 32], Error> {
    let bytes = bytes32("randomness", bytes)?;
    if !field_element(bytes) {
        return Err(Error::request(
            "randomness",
            "not a field element: as a little-endian number it exceeds the modulus",
            "clear the two highest bits of the last byte, as the chain's verifier does",
        ));
    }
    Ok(bytes)
}

/// The number of vanilla proofs, none of them empty.
pub(super) fn proof_count(
    vanilla_proofs: &[Vec<u8>],
    allowed: RangeInclusive<usize>,
) -> Result<(), Error> {
    let count = vanilla_proofs.len();
    if !allowed.contains(&count) {
        let expected = if allowed.start() == allowed.end() {
            format!("{}", allowed.start())
        } else {
            format!("{} to {}", allowed.start(), allowed.end())
        };
        return Err(Error::request(
            "vanilla_proofs",
            format!("expected {expected} for this registered proof, got {count}"),
            "send one vanilla proof per sector (PoSt) or per partition (SnapDeals)",
        ));
    }
    match vanilla_proofs.iter().position(Vec::is_empty) {
        Some(index) => Err(Error::request(
            format!("vanilla_proofs[{index}]"),
            "empty",
            "send the bytes that the vanilla prover returned",
        )),
        None => Ok(()),
    }
}
