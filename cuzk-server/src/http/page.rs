//! The page for people, as files in the binary.
//!
//! Its content comes from `/events`. The invariant: it asks no other host for anything.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::Shared;

const INDEX: &str = include_str!("page/index.html");

/// The files beside the page: path, type, content.
const FILES: [(&str, &str, &str); 4] = [
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("page/page.css"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_str!("page/page.js"),
    ),
    (
        "/waterfall.js",
        "text/javascript; charset=utf-8",
        include_str!("page/waterfall.js"),
    ),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

pub(super) fn routes() -> Router<Shared> {
    let index = INDEX.replace("{version}", env!("CARGO_PKG_VERSION"));
    let mut routes = Router::new().route("/", file("text/html; charset=utf-8", index));
    for (path, content_type, content) in FILES {
        routes = routes.route(path, file(content_type, content.to_owned()));
    }
    routes
}

fn file(content_type: &'static str, content: String) -> axum::routing::MethodRouter<Shared> {
    let content = axum::body::Bytes::from(content);
    get(async move || -> Response {
        ([(CONTENT_TYPE, content_type)], content.clone()).into_response()
    })
}
