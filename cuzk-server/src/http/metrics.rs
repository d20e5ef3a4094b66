//! Metrics in Prometheus' text format.
//!
//! The engine's metrics come from the process' recorder. Those that the existing daemon
//! exports are made of the status at each scrape, in [`existing`], and those of the other
//! machines in [`cluster`]. The invariants: each
//! family is described once, and histograms have buckets of 0.1 s to 1 h or finer.

mod cluster;
mod disks;
mod existing;
mod family;

use std::thread;
use std::time::Duration;

use cuzk_core::metrics::{JOB_SECONDS, STAGE_SECONDS, describe};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::Sources;

/// Upper bounds for jobs, in seconds: about three for a factor of ten.
const JOB_BUCKETS_S: [f64; 16] = [
    0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0,
    3_600.0,
];

/// Upper bounds for stages, in seconds. Most stages of small circuits take milliseconds.
const STAGE_BUCKETS_S: [f64; 16] = [
    0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_200.0,
    3_600.0,
];

/// The time between two calls of `run_upkeep`. Without them it would keep every
/// sample until somebody scrapes.
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// The recorder of metrics of this process.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Installs the recorder and describes the engine's metrics to it, before the engine
    /// starts. It starts a thread that empties its buffers, and that lives as long as the process.
    ///
    /// # Errors
    /// A recorder is installed already, or the thread could not be started.
    pub fn install() -> Result<Self, InstallError> {
        let builder = PrometheusBuilder::new();
        let of = |name: &str| Matcher::Full(name.to_owned());
        let handle = builder
            .set_buckets_for_metric(of(JOB_SECONDS), &JOB_BUCKETS_S)?
            .set_buckets_for_metric(of(STAGE_SECONDS), &STAGE_BUCKETS_S)?
            .install_recorder()?;
        describe();
        let kept = handle.clone();
        let upkeep = move || {
            loop {
                thread::sleep(UPKEEP_PERIOD);
                kept.run_upkeep();
            }
        };
        let thread = thread::Builder::new().name("cuzk-metrics".to_owned());
        thread.spawn(upkeep)?;
        Ok(Self(handle))
    }

    /// Returns what was recorded, in Prometheus' text format.
    #[must_use]
    pub fn recorded(&self) -> String {
        self.0.render()
    }
}

/// A recorder that could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The process has another recorder, or the buckets are wrong.
    #[error("the recorder of metrics: {0}")]
    Recorder(#[from] BuildError),
    /// The operating system started no thread.
    #[error("the thread of the recorder of metrics: {0}")]
    Thread(#[from] std::io::Error),
}

/// Returns all metrics in Prometheus' text format: the document of `GET /metrics`.
#[must_use]
pub fn text(sources: &dyn Sources) -> String {
    let mut text = sources.recorded_metrics();
    let added = existing::families(&sources.status(), &text);
    let cluster = sources.cluster();
    let of_cluster = cluster.as_ref().map(cluster::families).unwrap_or_default();
    let disks = disks::families(&sources.folders());
    for family in added.into_iter().chain(disks).chain(of_cluster) {
        family.write(&mut text);
    }
    text
}
