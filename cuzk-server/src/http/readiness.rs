//! The question if the daemon is ready, and its answer.
//!
//! Not the life of the daemon, which sets its [`Phase`] here. The invariant: a daemon that
//! is not ready names everything that is missing, a line each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cuzk_core::circuits::parameter_files;
use cuzk_filecoin::CircuitId;
use serde::Deserialize;

use super::{Shared, error};
use crate::circuit_name;

/// A phase in the life of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It does not take calls yet.
    Starting,
    /// It takes calls.
    Serving,
    /// It ends.
    Stopping,
}

/// The phase of the daemon, shared by all who set or read it. A new one is
/// [`Phase::Starting`].
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicU8>);

impl Readiness {
    /// Sets the phase.
    pub fn set(&self, phase: Phase) {
        self.0.store(phase as u8, Ordering::Release);
    }

    /// Returns the phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let at = self.0.load(Ordering::Acquire);
        let phases = [Phase::Starting, Phase::Serving];
        let phase = phases.into_iter().find(|&phase| phase as u8 == at);
        phase.unwrap_or(Phase::Stopping)
    }

    /// Returns a sentence if the phase is not [`Phase::Serving`].
    pub(super) fn missing(&self) -> Option<&'static str> {
        match self.phase() {
            Phase::Starting => Some("the daemon is starting"),
            Phase::Serving => None,
            Phase::Stopping => Some("the daemon is stopping"),
        }
    }
}

/// Returns a sentence for each file of the parameters of `circuit` that is not in `cache`.
pub(super) fn missing_parameters(circuit: CircuitId, cache: &Path) -> Vec<String> {
    let files = match parameter_files(circuit) {
        Ok(files) => files,
        Err(problem) => return vec![format!("{circuit}: {problem}")],
    };
    let absent = |file: &String| !cache.join(file).is_file();
    let files = [files.params, files.vk].into_iter().filter(absent);
    let sentence = |file| format!("{circuit}: {} is missing", cache.join(file).display());
    files.map(sentence).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    circuit: Option<String>,
}

/// Answers 200 if the daemon is ready, and 503 with what is missing otherwise.
pub(super) async fn readyz(
    State(shared): State<Shared>,
    question: Result<Query<Question>, QueryRejection>,
) -> Response {
    let circuit = match question {
        Ok(Query(question)) => question.circuit,
        Err(_) => {
            let problem = "the only key of the query is `circuit`, at most once";
            return error(StatusCode::BAD_REQUEST, problem);
        }
    };
    let circuit = match circuit.map(|text| circuit_name::parse(&text).ok_or(text)) {
        None => None,
        Some(Ok(circuit)) => Some(circuit),
        Some(Err(text)) => {
            let problem = format!("circuit: no such circuit: {text:?}; an example is porep-32g");
            return error(StatusCode::BAD_REQUEST, &problem);
        }
    };
    match shared.ask(move |sources| sources.missing(circuit)).await {
        Err(failure) => failure.into_response(),
        Ok(missing) if missing.is_empty() => "ready\n".into_response(),
        Ok(missing) => {
            let lines: String = missing.iter().map(|line| format!("{line}\n")).collect();
            (StatusCode::SERVICE_UNAVAILABLE, lines).into_response()
        }
    }
}
