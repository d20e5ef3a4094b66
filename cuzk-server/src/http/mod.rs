//! The daemon over HTTP: checks for supervisors, the status as JSON, metrics, the
//! timeline, and a page for people.
//!
//! Not gRPC, and nothing that changes the engine: every path only reads. The invariants:
//! no reply names a foreign host. `/livez` runs no check. Connections, event streams and
//! pictures in work are bounded.
//!
//! Reading order: [`Sources`] (what this module asks of the daemon) → [`router`] (the
//! paths) → [`report`] (the status as JSON) → [`events`] → [`metrics`] → [`serve`].

mod engine;
mod events;
pub mod metrics;
mod page;
mod params;
mod readiness;
mod report;
mod serve;
mod starting;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap,
    HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{StatusCode, Uri};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cuzk_core::Error;
use cuzk_core::engine::Status;
use cuzk_core::error::ErrorCode;
use cuzk_core::timeline::{Timeline, WaterfallOptions, chrome_trace, waterfall_svg};
use cuzk_filecoin::CircuitId;
use serde_json::json;
use tokio::sync::Semaphore;

pub use self::engine::EngineSources;
pub use self::metrics::text as metrics_text;
pub use self::readiness::{Phase, Readiness};
pub use self::report::json as report_json;
pub use self::serve::{CONNECTIONS_MAX, serve};
pub use self::starting::LateRouter;
use crate::blocking::blocking;
use crate::cluster::ClusterStatus;

/// The daemon, as the paths ask it. The methods may block.
pub trait Sources: Send + Sync + 'static {
    /// Returns the state of the engine now.
    fn status(&self) -> Status;

    /// Returns the state of the cluster; none if the daemon is in none.
    fn cluster(&self) -> Option<ClusterStatus> {
        None
    }

    /// Returns a handle on the times of all stages.
    fn timeline(&self) -> Timeline;

    /// Returns the number of partitions that are synthesized at a time.
    fn synthesis_workers(&self) -> usize;

    /// Returns what is missing before a job can be proved, a sentence each; nothing if the
    /// daemon is ready. With a circuit, its parameters count too.
    fn missing(&self, circuit: Option<CircuitId>) -> Vec<String>;

    /// Returns the folder whose parameter files are served, if they are to be.
    fn served_params(&self) -> Option<PathBuf>;

    /// Returns what the process' recorder of metrics has, in Prometheus' text format.
    fn recorded_metrics(&self) -> String;

    /// Returns the folders that must not become full, by what they hold.
    fn folders(&self) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }
}

/// The state of all handlers.
#[derive(Clone)]
struct Shared {
    sources: Arc<dyn Sources>,
    events: events::Events,
    /// One picture of the timeline is made at a time, since a picture costs time of a
    /// core that proofs need.
    pictures: Arc<Semaphore>,
}

/// Makes the router of all paths.
pub fn router(sources: Arc<dyn Sources>) -> Router {
    let shared = Shared {
        events: events::Events::new(Arc::clone(&sources)),
        pictures: Arc::new(Semaphore::new(1)),
        sources,
    };
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readiness::readyz))
        .route("/status", get(status))
        .route("/metrics", get(metrics_page))
        .route("/timeline.svg", get(timeline_svg))
        .route("/timeline.json", get(timeline_json))
        .route("/events", get(events::events))
        .route("/params/{name}", get(params::params))
        .merge(page::routes())
        .fallback(unknown_path)
        .method_not_allowed_fallback(only_get)
        .layer(map_response(secured))
        .with_state(shared)
}

/// Says that the process answers. It asks nobody, so that a busy engine is not restarted.
async fn livez() -> &'static str {
    "alive\n"
}

async fn status(State(shared): State<Shared>) -> Result<Response, Failure> {
    let text = shared.ask(report::json).await?;
    // Pages of other origins read the status of the existing daemon, so they may do so here.
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    Ok((headers, text).into_response())
}

async fn metrics_page(State(shared): State<Shared>) -> Result<Response, Failure> {
    let text = shared.ask(metrics::text).await?;
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(CONTENT_TYPE, content_type)], text).into_response())
}

async fn timeline_svg(State(shared): State<Shared>) -> Result<Response, Failure> {
    let text = shared.picture(|sources| {
        let timeline = sources.timeline();
        let options = WaterfallOptions {
            names: timeline.names(),
            ..WaterfallOptions::default()
        };
        waterfall_svg(&timeline.spans(), &options)
    });
    Ok(([(CONTENT_TYPE, "image/svg+xml")], text.await?).into_response())
}

async fn timeline_json(State(shared): State<Shared>) -> Result<Response, Failure> {
    let text = shared.picture(|sources| {
        let timeline = sources.timeline();
        let (spans, names) = (timeline.spans(), timeline.names());
        serde_json::to_string(&chrome_trace(&spans, &names)).unwrap_or_default()
    });
    Ok(([(CONTENT_TYPE, "application/json")], text.await?).into_response())
}

impl Shared {
    /// Asks the sources on a thread that may block.
    async fn ask<R, F>(&self, ask: F) -> Result<R, Failure>
    where
        F: FnOnce(&dyn Sources) -> R + Send + 'static,
        R: Send + 'static,
    {
        let sources = Arc::clone(&self.sources);
        let asked = blocking(move || ask(sources.as_ref())).await;
        asked.map_err(|error| Failure::of(&error))
    }

    /// Asks for a picture of the timeline, after the pictures that others wait for.
    async fn picture<F>(&self, draw: F) -> Result<String, Failure>
    where
        F: FnOnce(&dyn Sources) -> String + Send + 'static,
    {
        let _turn = self.pictures.acquire().await.map_err(|_| Failure)?;
        self.ask(draw).await
    }
}

/// A handler that could not answer: a source panicked, the system gave no thread, or the runtime
/// ends.
struct Failure;

impl Failure {
    /// Logs an error, which the reply does not tell.
    fn of(error: &Error) -> Self {
        tracing::warn!(code = %ErrorCode::of(error), "a page was not made: {error}");
        Self
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = "the daemon could not answer; its log says why";
        error(StatusCode::INTERNAL_SERVER_ERROR, problem)
    }
}

/// Returns an error reply: JSON with the key `error`.
fn error(status: StatusCode, problem: &str) -> Response {
    let body = json!({ "error": problem }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

async fn unknown_path(uri: Uri) -> Response {
    let path = uri.path();
    let problem = format!(
        "no such path: {path:?}; use one of /, /livez, /readyz, /status, /metrics, /events, \
         /timeline.svg, /timeline.json"
    );
    error(StatusCode::NOT_FOUND, &problem)
}

async fn only_get() -> Response {
    let problem = "this path is only read: use GET or HEAD";
    error(StatusCode::METHOD_NOT_ALLOWED, problem)
}

/// Adds the headers that keep a browser from other hosts and from guessing types.
async fn secured(mut response: Response) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    let policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let uncached = HeaderValue::from_static("no-store");
    headers.entry(CACHE_CONTROL).or_insert(uncached);
    response
}
