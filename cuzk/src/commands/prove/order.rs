//! One request that a command proves.

use std::path::{Path, PathBuf};

use cuzk_core::ProofRequest;
use cuzk_core::job::JobOptions;

use crate::failure::Failure;
use crate::failure_report::Name;
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
            Some(path) => failure.of(path.display()),
            None => failure,
        }
    }
}

/// Returns a file's name, as reports have it.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}
