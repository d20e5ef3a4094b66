//! Paths, methods and headers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cuzk_bounded::Bound;
use cuzk_core::timeline::Stage;
use cuzk_server::http::router;

use crate::made_up::{MadeUp, ask, get, json, text};

const PATHS: [(&str, &str); 11] = [
    ("/", "text/html"),
    ("/page.css", "text/css"),
    ("/page.js", "text/javascript"),
    ("/waterfall.js", "text/javascript"),
    ("/icon.svg", "image/svg+xml"),
    ("/livez", "text/plain"),
    ("/readyz", "text/plain"),
    ("/status", "application/json"),
    ("/metrics", "text/plain; version=0.0.4"),
    ("/timeline.svg", "image/svg+xml"),
    ("/timeline.json", "application/json"),
];

#[tokio::test]
async fn every_path_has_its_type_and_its_headers() {
    let _bound = Bound::default();
    let router = router(Arc::new(MadeUp::default()));
    for (path, content_type) in PATHS {
        let response = ask(router.clone(), "GET", path).await;
        assert_eq!(response.status(), 200, "{path}");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-type").starts_with(content_type), "{path}");
        assert!(header("content-security-policy").starts_with("default-src 'self'"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("cache-control"), "no-store");
        assert!(!text(response).await.is_empty(), "{path}");
        let head = ask(router.clone(), "HEAD", path).await;
        assert_eq!(head.status(), 200, "{path}");
        assert_eq!(text(head).await, "", "{path}");
    }
}

#[tokio::test]
async fn only_the_status_may_be_read_by_pages_of_other_origins() {
    let _bound = Bound::default();
    let router = router(Arc::new(MadeUp::default()));
    for (path, _) in PATHS {
        let response = ask(router.clone(), "GET", path).await;
        let allowed = response.headers().get("access-control-allow-origin");
        assert_eq!(allowed.is_some(), path == "/status", "{path}");
    }
}

#[tokio::test]
async fn other_methods_and_paths_are_errors_that_say_what_to_do() {
    let _bound = Bound::default();
    let router = router(Arc::new(MadeUp::default()));
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let response = ask(router.clone(), method, "/status").await;
        assert_eq!(response.status(), 405, "{method}");
        assert_eq!(response.headers()["allow"], "GET,HEAD");
        let error = json(&text(response).await);
        assert!(error["error"].as_str().unwrap().contains("GET or HEAD"));
    }
    for path in ["/nothing", "/status/", "/page", "//", "/%2e%2e/etc/passwd"] {
        let response = ask(router.clone(), "GET", path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let error = json(&text(response).await);
        assert!(error["error"].as_str().unwrap().contains("/readyz"));
    }
}

#[tokio::test]
async fn a_sign_of_life_asks_nobody() {
    let _bound = Bound::default();
    let sources = Arc::new(MadeUp::default());
    let response = ask(router(sources.clone()), "GET", "/livez").await;
    assert_eq!(response.status(), 200);
    assert_eq!(sources.asked.load(Ordering::Relaxed), 0);
}

/// The files are the whole page: they name no other host and no file that is not there.
#[tokio::test]
async fn the_page_asks_no_other_host() {
    let _bound = Bound::default();
    let router = router(Arc::new(MadeUp::default()));
    for (path, _) in &PATHS[..4] {
        let content = text(ask(router.clone(), "GET", path).await).await;
        let content = content.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !content.contains("//cdn") && !content.contains("http://"),
            "{path}"
        );
        assert!(!content.contains("https://"), "{path}");
        assert!(!content.contains("innerHTML"), "{path}");
    }
    let page = text(ask(router.clone(), "GET", "/").await).await;
    assert!(page.contains(env!("CARGO_PKG_VERSION")) && !page.contains("{version}"));
    for piece in page
        .split("href=\"/")
        .skip(1)
        .chain(page.split("src=\"/").skip(1))
    {
        let path = format!("/{}", piece.split('"').next().unwrap());
        assert_eq!(
            ask(router.clone(), "GET", &path).await.status(),
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_timeline_is_a_picture_and_a_trace() {
    let _bound = Bound::default();
    let recorded = || {
        let sources = MadeUp::default();
        let trace = sources.timeline.trace(7, Some(2)).on_device(0);
        trace.time(Stage::Device, || ());
        sources
    };
    let (code, picture) = get(recorded(), "/timeline.svg").await;
    assert_eq!(code, 200);
    assert!(picture.starts_with("<svg") && picture.contains("device"));
    let (code, trace) = get(recorded(), "/timeline.json").await;
    assert_eq!(code, 200);
    let events = json(&trace)["traceEvents"].as_array().unwrap().clone();
    let complete: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert!(!complete.is_empty());
    assert!(complete.iter().all(|event| event["args"]["job"] == 7));
}
