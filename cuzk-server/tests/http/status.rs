//! The document of `/status`: the keys of the existing daemon, and the engine's own status.

use std::collections::BTreeSet;

use cuzk_bounded::Bound;
use serde_json::{Value, json};

use crate::made_up::{self, GIB, MadeUp, get, json as parse};

async fn document() -> Value {
    let (code, text) = get(MadeUp::default(), "/status").await;
    assert_eq!(code, 200);
    parse(&text)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let map = value.as_object().unwrap();
    map.keys().map(String::as_str).collect()
}

#[tokio::test]
async fn the_keys_are_those_of_the_existing_daemon() {
    let _bound = Bound::default();
    let document = document().await;
    let expected: [(&str, &[&str]); 9] = [
        (
            "",
            &[
                "uptime_secs",
                "memory",
                "synthesis",
                "pipelines",
                "gpu_workers",
                "allocations",
                "counters",
                "buffers",
                "engine",
            ],
        ),
        ("/memory", &["total_bytes", "used_bytes", "available_bytes"]),
        ("/synthesis", &["max_concurrent", "active"]),
        (
            "/pipelines/0",
            &[
                "job_id",
                "proof_kind",
                "started_secs_ago",
                "total_partitions",
                "partitions_done",
                "partitions",
            ],
        ),
        (
            "/pipelines/0/partitions/0",
            &["index", "state", "synth_ms", "gpu_ms"],
        ),
        (
            "/gpu_workers/0",
            &[
                "worker_id",
                "gpu_ordinal",
                "state",
                "current_job",
                "current_partition",
                "busy_secs",
            ],
        ),
        ("/allocations", &["srs", "pce"]),
        (
            "/allocations/srs/0",
            &["circuit_id", "bytes", "last_used_secs_ago", "evictable"],
        ),
        (
            "/counters",
            &[
                "total_completed",
                "total_failed",
                "completed_by_kind",
                "failed_by_kind",
                "queue_depth",
            ],
        ),
    ];
    for (place, names) in expected {
        let found = keys(document.pointer(place).unwrap());
        assert_eq!(found, names.iter().copied().collect(), "{place}");
    }
}

#[tokio::test]
async fn the_values_are_the_engines() {
    let _bound = Bound::default();
    let document = document().await;
    let values = [
        ("/uptime_secs", json!(100)),
        ("/memory/available_bytes", json!(24 * GIB)),
        ("/synthesis", json!({"max_concurrent": 3, "active": 2})),
        ("/pipelines/0/job_id", json!("porep-1000-7")),
        ("/pipelines/0/proof_kind", json!("porep-c2")),
        ("/pipelines/0/started_secs_ago", json!(61)),
        ("/pipelines/0/partitions/0/synth_ms", json!(1250)),
        ("/pipelines/0/partitions/0/gpu_ms", json!(750)),
        ("/gpu_workers/0/state", json!("proving")),
        ("/gpu_workers/0/current_partition", json!(2)),
        ("/gpu_workers/0/busy_secs", json!(2)),
        ("/gpu_workers/1/state", json!("idle")),
        ("/gpu_workers/1/current_job", Value::Null),
        (
            "/allocations/srs",
            json!([{
                "circuit_id": "porep-32g", "bytes": 48 * GIB, "last_used_secs_ago": 7,
                "evictable": true,
            }]),
        ),
        ("/allocations/pce/0/bytes", json!(GIB)),
        ("/counters/total_completed", json!(6)),
        (
            "/counters/completed_by_kind",
            json!({"porep-c2": 4, "snap-update": 2}),
        ),
        ("/counters/failed_by_kind", json!({"porep-c2": 1})),
        ("/counters/queue_depth", json!(1)),
    ];
    for (place, value) in values {
        assert_eq!(document.pointer(place), Some(&value), "{place}");
    }
    let engine = serde_json::to_value(made_up::status()).unwrap();
    assert_eq!(document["engine"], engine);
}

#[tokio::test]
async fn partitions_have_the_existing_daemons_states() {
    let _bound = Bound::default();
    let document = document().await;
    let parts = document["pipelines"][0]["partitions"].as_array().unwrap();
    let states: Vec<_> = parts
        .iter()
        .map(|part| part["state"].as_str().unwrap())
        .collect();
    let expected = [
        "done",
        "gpu",
        "gpu",
        "synth_done",
        "synthesizing",
        "pending",
        "pending",
    ];
    assert_eq!(states, expected);
}
