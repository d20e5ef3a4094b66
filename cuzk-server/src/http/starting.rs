//! The replies of a daemon whose engine is not there yet.
//!
//! Not the paths of a daemon that serves. Opening a journal can take minutes after a crash,
//! and people and supervisors ask meanwhile. The invariant: each request is answered at once.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tower::ServiceExt;

use super::{error, livez, secured};

/// The reply of `/readyz`.
const MISSING: &str = "the daemon is starting: it opens its journal\n";

/// The place of the router of a daemon that serves. Clones are the same place.
#[derive(Clone, Debug, Default)]
pub struct LateRouter(Arc<OnceLock<Router>>);

impl LateRouter {
    /// Answers with `router` from now on.
    pub fn set(&self, router: Router) {
        // It is set once, because a daemon starts once.
        self.0.set(router).ok();
    }

    /// Returns a router that says that the daemon starts, until the other is there.
    pub fn router(&self) -> Router {
        let late = self.clone();
        Router::new().fallback(async move |request: Request| late.answer(request).await)
    }

    async fn answer(self, request: Request) -> Response {
        if let Some(router) = self.0.get() {
            return router.clone().oneshot(request).await.into_response();
        }
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        let response = match request.uri().path() {
            "/livez" => livez().await.into_response(),
            "/readyz" => (unavailable, MISSING).into_response(),
            _ => error(unavailable, "the daemon is starting; ask again later"),
        };
        secured(response).await
    }
}
