//! One request that a command proves.

use std::path::PathBuf;

use cuzk_core::ProofRequest;
use cuzk_core::job::{JobHandle, JobOptions};

use crate::failure::Failure;
use crate::failure_report::Name;
use crate::output::shown;
use crate::output_path::OutputPath;

/// A request, the file for its proof, and the options of its job.
#[derive(Debug)]
pub(crate) struct Order {
    /// The request's file, if it came from one.
    pub(crate) path: Option<PathBuf>,
    pub(crate) request: ProofRequest,
    pub(crate) out: Option<OutputPath>,
    pub(crate) options: JobOptions,
}

impl Order {
    /// Returns the name of the request in reports.
    pub(super) fn name(&self) -> Name<'_> {
        Name::new(self.path.as_deref(), self.options.id.as_deref())
    }

    /// Returns `failure` as one of this request.
    pub(super) fn failed(&self, failure: Failure) -> Failure {
        match &self.path {
            Some(path) => failure.of(shown(path)),
            None => failure,
        }
    }

    /// Returns the caller's name of the request, or that of its file. `job` is the job of
    /// the request, if the engine has accepted it.
    pub(super) fn name_of(&self, job: Option<&JobHandle>) -> String {
        let id = self.options.id.clone();
        id.or_else(|| self.path.as_deref().map(shown))
            .or_else(|| job.map(|job| job.circuit().to_string()))
            .unwrap_or_else(|| self.request.kind().to_string())
    }
}
