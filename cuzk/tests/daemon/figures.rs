//! The figures that a daemon gives after a proof: the call, the document and the metrics.

use cuzk_server::wire::v1;
use serde_json::{Value, json};

use crate::fixture::{Daemon, prove, request, verify};

#[tokio::test]
async fn the_figures_follow_a_proof() {
    let mut daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let before = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    let before = before.into_inner();
    assert_eq!(before.total_proofs_completed, 0);
    assert!(before.loaded_srs.is_empty(), "{before:?}");
    let response = prove(&mut client, request("window-post")).await.unwrap();
    verify("window-post", &response);
    assert!(response.synthesis_ms + response.gpu_compute_ms > 0);

    let after = client.get_status(v1::GetStatusRequest {}).await.unwrap();
    let after = after.into_inner();
    assert_eq!(
        (after.total_proofs_completed, after.total_proofs_failed),
        (1, 0)
    );
    let [srs] = &after.loaded_srs[..] else {
        panic!("{after:?}")
    };
    assert_eq!((srs.circuit_id.as_str(), srs.ref_count), ("wpost-2k", 0));
    assert_eq!(srs.tier(), v1::srs_status::Tier::Hot);
    assert!(srs.size_bytes > 0);
    let kinds: Vec<_> = after
        .queues
        .iter()
        .map(|queue| &*queue.proof_kind)
        .collect();
    for kind in ["porep-c2", "snap-update", "window-post", "winning-post"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert!(
        after
            .queues
            .iter()
            .all(|queue| queue.pending + queue.in_progress == 0)
    );
    assert!(!after.gpus.is_empty());
    assert!(
        after
            .gpus
            .iter()
            .all(|gpu| !gpu.name.is_empty() && gpu.current_job_id.is_empty())
    );
    assert!(after.pinned_memory_bytes > 0);
    assert!(after.pinned_memory_bytes <= after.pinned_memory_limit_bytes);
    pages_agree(&daemon, srs.size_bytes);
}

/// Checks the document and the metrics after one WindowPoSt.
fn pages_agree(daemon: &Daemon, srs_bytes: u64) {
    let (line, document) = daemon.page("/status");
    assert!(line.ends_with("200 OK"), "{line}");
    let document: Value = serde_json::from_str(&document).unwrap();
    let counters = &document["counters"];
    assert_eq!(counters["total_completed"], 1);
    assert_eq!(counters["completed_by_kind"], json!({"window-post": 1}));
    assert_eq!(counters["queue_depth"], 0);
    let srs = &document["allocations"]["srs"];
    assert_eq!(srs[0]["circuit_id"], "wpost-2k");
    assert_eq!(srs[0]["bytes"], srs_bytes);
    assert_eq!(srs[0]["evictable"], true);
    let pce = &document["allocations"]["pce"];
    assert_eq!(pce[0]["circuit_id"], "wpost-2k");
    assert!(pce[0]["bytes"].as_u64() > Some(0), "{pce}");
    let (_, metrics) = daemon.page("/metrics");
    for line in [
        "cuzk_proofs_completed_total 1",
        "cuzk_proofs_failed_total 0",
        "cuzk_proofs_completed{proof_kind=\"window-post\"} 1",
        "cuzk_proof_duration_seconds_count{proof_kind=\"window-post\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}: {metrics}"
        );
    }
}
