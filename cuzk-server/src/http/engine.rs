//! The engine as the source of everything that HTTP shows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuzk_core::Engine;
use cuzk_core::engine::Status;
use cuzk_core::timeline::Timeline;
use cuzk_filecoin::CircuitId;

use super::Sources;
use super::metrics::Metrics;
use super::readiness::{Readiness, missing_parameters};
use crate::cluster::{ClusterStatus, Place};

/// The sources of a daemon that runs an engine.
#[derive(Debug)]
pub struct EngineSources {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The other machines, if the daemon is in a cluster.
    pub cluster: Option<Arc<Place>>,
    /// The phase of the daemon.
    pub readiness: Readiness,
    /// The recorder of metrics of the process.
    pub metrics: Metrics,
}

impl Sources for EngineSources {
    fn status(&self) -> Status {
        self.engine.status()
    }

    fn cluster(&self) -> Option<ClusterStatus> {
        self.cluster.as_ref().map(|place| place.status())
    }

    fn timeline(&self) -> Timeline {
        self.engine.timeline().clone()
    }

    fn synthesis_workers(&self) -> usize {
        self.engine.config().synthesis.partition_workers
    }

    fn missing(&self, circuit: Option<CircuitId>) -> Vec<String> {
        let mut missing: Vec<_> = self
            .readiness
            .missing()
            .map(str::to_owned)
            .into_iter()
            .collect();
        if self.engine.is_draining() {
            missing.push("the engine is draining; resume it to begin new work".to_owned());
        }
        let cache = &self.engine.config().srs.param_cache;
        let parameters = circuit.map(|circuit| missing_parameters(circuit, cache));
        missing.extend(parameters.into_iter().flatten());
        missing
    }

    fn served_params(&self) -> Option<PathBuf> {
        let config = self.engine.config();
        let folder = &config.srs.param_cache;
        config.server.serve_params.then(|| folder.clone())
    }

    fn recorded_metrics(&self) -> String {
        self.metrics.recorded()
    }

    fn folders(&self) -> Vec<(&'static str, PathBuf)> {
        let config = self.engine.config();
        let journal = config.jobs.journal.as_deref().and_then(Path::parent);
        let journal = journal.map(|folder| ("journal", folder.to_owned()));
        let params = ("parameters", config.srs.param_cache.clone());
        journal.into_iter().chain([params]).collect()
    }
}
