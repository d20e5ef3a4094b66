//! Requests over sectors that were never sealed.

use cuzk_filecoin::blank;
use cuzk_filecoin::{ProofKind, SectorSize, Statement, decode};
use cuzk_filecoin::{ProofRequest, vanilla};

fn decoded(kind: ProofKind, size: SectorSize) -> Box<dyn Statement> {
    let request = vanilla::make_sparse(kind, size, 1).unwrap();
    assert_eq!(request.kind(), kind);
    let job = decode(&request).unwrap();
    assert_eq!(job.circuit().sector_size, size);
    job
}

/// A small sparse sector satisfies every constraint, and the same seed makes
/// it again.
#[test]
fn small_sectors_satisfy_their_circuits() {
    for kind in ProofKind::ALL {
        let job = decoded(kind, SectorSize::KiB2);
        let witness = job.witness(0).unwrap();
        let circuit = blank::compile(job.circuit()).unwrap();
        assert_eq!(
            cuzk_pce::program::check(&circuit, &witness).unwrap(),
            None,
            "{kind}"
        );
        assert_eq!(
            witness.inputs()[1..],
            job.public_inputs(0).unwrap(),
            "{kind}"
        );
        let request = |seed| vanilla::make_sparse(kind, SectorSize::KiB2, seed).unwrap();
        assert_eq!(request(1), request(1), "{kind}");
        assert_ne!(request(1), request(2), "{kind}");
        assert_eq!(
            ProofRequest::from_json(&request(1).to_json()).unwrap(),
            request(1),
            "{kind}"
        );
    }
}

/// A partition of 2 KiB has room for two sectors.
#[test]
fn a_window_post_is_over_the_sectors_that_were_asked_for() {
    for (asked, expected) in [(1, 1), (2, 2), (9, 2)] {
        let request = vanilla::make_window_post(SectorSize::KiB2, asked, 3).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&request.to_json()).unwrap();
        assert_eq!(json["vanilla_proofs"].as_array().unwrap().len(), expected);
        decode(&request).unwrap();
    }
    let error = vanilla::make_window_post(SectorSize::KiB2, 0, 3).unwrap_err();
    assert!(error.to_string().contains("sectors"), "{error}");
}

#[test]
fn posts_of_32gib() {
    for kind in [ProofKind::WinningPost, ProofKind::WindowPost] {
        assert_eq!(decoded(kind, SectorSize::GiB32).partitions(), 1);
    }
}

#[test]
fn snap_deals_of_32gib() {
    assert_eq!(
        decoded(ProofKind::SnapDeals, SectorSize::GiB32).partitions(),
        16
    );
}

#[test]
fn porep_of_32gib() {
    assert_eq!(
        decoded(ProofKind::Porep, SectorSize::GiB32).partitions(),
        10
    );
}
