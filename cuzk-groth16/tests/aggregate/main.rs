//! Aggregates against bellperson's: the same bytes, and its verifier accepts them. Files of
//! the inner-product SRS.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

mod oracle;
mod page;
mod proofs;
mod srs_file;

use bellperson::groth16::aggregate::{AggregateVersion as TheirVersion, GenericSRS};
use blstrs::Bls12;
use cuzk_groth16::aggregate::{AggregateVersion, InnerProductSrs, write_srs};

/// Proofs that the SRS of most tests is for.
const PROOFS_MAX: usize = 16;

/// A small SRS.
fn srs() -> InnerProductSrs {
    InnerProductSrs::insecure(7, PROOFS_MAX).unwrap()
}

/// The bytes of its file.
fn srs_bytes(srs: &InnerProductSrs) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_srs(srs, &mut bytes).unwrap();
    bytes
}

/// The SRS, as bellperson reads it.
fn their_srs(srs: &InnerProductSrs) -> GenericSRS<Bls12> {
    GenericSRS::read(&mut srs_bytes(srs).as_slice()).unwrap()
}

/// Both versions, with bellperson's names of them.
const VERSIONS: [(AggregateVersion, TheirVersion); 2] = [
    (AggregateVersion::V1, TheirVersion::V1),
    (AggregateVersion::V2, TheirVersion::V2),
];
