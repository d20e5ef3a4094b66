//! Requests that no client of good will sends.

use cuzk_server::wire::v1;
use tonic::Code;

use crate::fixture::{Daemon, prove, request, verify};

type Change = fn(&mut v1::SubmitProofRequest);

/// Requests that can never be proved, with the key that the error names.
const BAD: [(&str, Change, &str); 12] = [
    ("porep", |bad| bad.proof_kind = 0, "proof_kind"),
    ("porep", |bad| bad.proof_kind = 5, "proof_kind"),
    ("porep", |bad| bad.priority = 9, "priority"),
    (
        "porep",
        |bad| bad.sector_size = 34_359_738_368,
        "sector_size",
    ),
    ("porep", |bad| bad.registered_proof = 99, "registered_proof"),
    (
        "porep",
        |bad| bad.vanilla_proof = "{".into(),
        "vanilla_proof",
    ),
    ("porep", |bad| bad.sector_number += 1, "SectorNum"),
    (
        "window-post",
        |bad| bad.randomness = "short".into(),
        "randomness",
    ),
    (
        "window-post",
        |bad| bad.vanilla_proofs.clear(),
        "vanilla_proofs",
    ),
    (
        "winning-post",
        |bad| bad.vanilla_proofs[0] = vec![0xff; 99].into(),
        "vanilla_proofs",
    ),
    (
        "snap-deals",
        |bad| bad.comm_r_old = "short".into(),
        "comm_r_old",
    ),
    (
        "snap-deals",
        |bad| bad.comm_d_new = vec![0xff; 32].into(),
        "comm_d_new",
    ),
];

#[tokio::test]
async fn bad_requests_are_refused_by_the_name_of_the_key() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    for (kind, change, key) in BAD {
        let mut bad = request(kind);
        change(&mut bad);
        let status = prove(&mut client, bad).await.unwrap_err();
        assert_eq!(
            status.code(),
            Code::InvalidArgument,
            "{kind} {key}: {status}"
        );
        assert!(status.message().contains(key), "{kind} {key}: {status}");
    }
    let empty = client.prove(v1::ProveRequest { submit: None }).await;
    assert_eq!(empty.unwrap_err().code(), Code::InvalidArgument);
    let nothing = v1::PreloadSrsRequest {
        circuit_id: "porep-33g".to_owned(),
    };
    let status = client.preload_srs(nothing).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("porep-32g"), "{status}");
    let good = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &good);
}

/// A circuit of which there are no parameters is the operator's to mend, not the client's.
#[tokio::test]
async fn missing_parameters_are_named() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let circuit = v1::PreloadSrsRequest {
        circuit_id: "porep-64g".to_owned(),
    };
    let status = client.preload_srs(circuit).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(status.message().contains(".params"), "{status}");
}

#[tokio::test]
async fn circuits_are_loaded_and_let_go_of() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let circuit_id = "wpost-2k".to_owned();
    let load = v1::PreloadSrsRequest {
        circuit_id: circuit_id.clone(),
    };
    let first = client.preload_srs(load.clone()).await.unwrap().into_inner();
    let second = client.preload_srs(load).await.unwrap().into_inner();
    assert!(!first.already_loaded && second.already_loaded);
    let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    let loaded = status.into_inner().loaded_srs;
    assert!(
        loaded.iter().any(|srs| srs.circuit_id == "wpost-2k"),
        "{loaded:?}"
    );
    let evict = v1::EvictSrsRequest { circuit_id };
    let first = client.evict_srs(evict.clone()).await.unwrap().into_inner();
    let second = client.evict_srs(evict).await.unwrap().into_inner();
    assert!(first.was_loaded && first.freed_bytes > 0 && !second.was_loaded);
}
