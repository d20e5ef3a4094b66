//! A made-up engine, and questions to the router about it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use cuzk_core::engine::{
    AssetStatus, DeviceStatus, EndedJob, JobSeconds, JobStatus, KindTotals, MemoryStatus,
    PartitionStatus, Status,
};
use cuzk_core::timeline::Timeline;
use cuzk_filecoin::CircuitId;
use cuzk_server::http::{Sources, router};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

pub(crate) const GIB: u64 = 1 << 30;

/// Sources whose answers a test sets.
pub(crate) struct MadeUp {
    pub(crate) status: Mutex<Status>,
    pub(crate) timeline: Timeline,
    pub(crate) missing: Vec<String>,
    pub(crate) recorded: String,
    /// The folder whose parameters are served.
    pub(crate) served: Option<PathBuf>,
    /// How often anything was asked.
    pub(crate) asked: AtomicUsize,
}

impl Default for MadeUp {
    fn default() -> Self {
        Self {
            status: Mutex::new(status()),
            timeline: Timeline::default(),
            missing: Vec::new(),
            recorded: String::new(),
            served: None,
            asked: AtomicUsize::new(0),
        }
    }
}

impl MadeUp {
    fn count(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Sources for MadeUp {
    fn status(&self) -> Status {
        self.count();
        self.status.lock().unwrap().clone()
    }

    fn timeline(&self) -> Timeline {
        self.count();
        self.timeline.clone()
    }

    fn synthesis_workers(&self) -> usize {
        self.count();
        3
    }

    fn missing(&self, circuit: Option<CircuitId>) -> Vec<String> {
        self.count();
        let circuit = circuit.map(|circuit| format!("{circuit}: parameters"));
        self.missing.iter().cloned().chain(circuit).collect()
    }

    fn served_params(&self) -> Option<PathBuf> {
        self.count();
        self.served.clone()
    }

    fn recorded_metrics(&self) -> String {
        self.count();
        self.recorded.clone()
    }
}

fn part(index: usize, stage: Option<&'static str>, done: bool) -> PartitionStatus {
    PartitionStatus {
        index,
        stage,
        since_s: 0.5,
        synthesis_s: 1.25,
        device_s: 0.75,
        done,
    }
}

pub(crate) fn ended(number: u64, outcome: &'static str, error: Option<&str>) -> EndedJob {
    EndedJob {
        number,
        id: None,
        circuit: "winning-post-2KiB".to_owned(),
        kind: "winning-post",
        outcome,
        error: error.map(str::to_owned),
        ended_s_ago: 3.0,
        times: JobSeconds {
            queue_wait_s: 0.1,
            srs_load_s: 0.2,
            synthesis_s: 0.3,
            device_s: 0.4,
            total_s: 1.0,
        },
    }
}

/// Returns the status of an engine that proves one job, while another waits.
pub(crate) fn status() -> Status {
    let job = |number: u64, state| JobStatus {
        number,
        id: Some(format!("porep-1000-{number}")),
        circuit: "porep-32GiB".to_owned(),
        kind: "porep",
        priority: "normal",
        state,
        accepted_s_ago: 61.9,
        waits_for: (state == "waiting").then(|| "waits for 12 partitions".to_owned()),
        parts: vec![
            part(0, None, true),
            part(1, Some("finish"), false),
            part(2, Some("msm"), false),
            part(3, Some("ready_wait"), false),
            part(4, Some("evaluate"), false),
            part(5, Some("queue_wait"), false),
            part(6, None, false),
        ],
        partitions_done: 1,
        partitions: 7,
    };
    let totals = |kind, proved, failed| KindTotals {
        kind,
        proved,
        failed,
        cancelled: 0,
    };
    Status {
        started_s: 100.7,
        draining: false,
        partitions_waiting: 7,
        partitions_running: 4,
        jobs: vec![job(7, "running"), job(8, "waiting")],
        devices: vec![device(0, Some(2)), device(1, None)],
        making_multiples: Vec::new(),
        memory: MemoryStatus {
            total_bytes: 64 * GIB,
            used_bytes: 40 * GIB,
            idle_bytes: GIB,
            kept_bytes: 2 * GIB,
            pool_bytes: 20 * GIB,
            mappings: 5,
        },
        assets: vec![AssetStatus {
            circuit: "porep-32GiB".to_owned(),
            parameter_bytes: 48 * GIB,
            circuit_bytes: GIB,
            digests: "not_compared",
            uses: 0,
            idle_s: Some(7.5),
        }],
        ended: vec![ended(6, "proved", None), ended(5, "failed", Some("no"))],
        totals: vec![totals("porep", 4, 1), totals("snap-deals", 2, 0)],
    }
}

fn device(device: usize, partition: Option<usize>) -> DeviceStatus {
    DeviceStatus {
        device,
        backend: "cuda",
        role: "device",
        quarantined: false,
        proved: 12,
        faults: 0,
        last_fault: None,
        job: partition.map(|_| "porep-1000-7".to_owned()),
        partition,
        busy_s: partition.map(|_| 2.75),
    }
}

/// Asks a router, and returns the reply with its body not read yet.
pub(crate) async fn ask(router: Router, method: &str, path: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Body::empty()).unwrap();
    router.oneshot(request).await.unwrap()
}

pub(crate) async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Gets `path`, and returns the reply's status and text.
pub(crate) async fn get(sources: MadeUp, path: &str) -> (u16, String) {
    let response = ask(router(Arc::new(sources)), "GET", path).await;
    (response.status().as_u16(), text(response).await)
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
