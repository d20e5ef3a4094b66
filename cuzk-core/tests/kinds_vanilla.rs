//! Requests made by sealing a sector here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cuzk_core::kinds::{ProofKind, SectorSize, decode};
use cuzk_core::{ProofRequest, vanilla};

#[test]
fn a_sealed_sector_gives_a_request_of_each_kind() {
    for kind in ProofKind::ALL {
        let request = vanilla::make(kind, SectorSize::KiB2, 1).unwrap();
        assert_eq!(request.kind(), kind);
        assert_eq!(
            ProofRequest::from_json(&request.to_json()).unwrap(),
            request,
            "{kind}"
        );
        let job = decode(&request).unwrap();
        let witness = job.witness(0).unwrap();
        assert_eq!(
            witness.inputs()[1..],
            job.public_inputs(0).unwrap(),
            "{kind}"
        );
    }
}

#[test]
fn a_seed_decides_the_request() {
    let make = |seed| vanilla::make(ProofKind::WindowPost, SectorSize::KiB2, seed).unwrap();
    assert_eq!(make(2), make(2));
    assert_ne!(make(2), make(3));
}

#[test]
fn large_sectors_are_refused() {
    let error = vanilla::make(ProofKind::Porep, SectorSize::MiB512, 1).unwrap_err();
    assert!(
        error.is_input() && error.to_string().starts_with("sector_size: "),
        "{error}"
    );
}
