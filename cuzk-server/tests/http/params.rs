//! Files of parameters, whole and in ranges.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, Response};
use cuzk_bounded::Bound;
use cuzk_server::http::router;
use tower::ServiceExt as _;

use crate::made_up::{MadeUp, ask, json, text};

const BYTES: &[u8] = b"0123456789";

async fn range(made_up: MadeUp, range: &str) -> Response<Body> {
    let request = Request::get("/params/x.params").header("range", range);
    let request = request.body(Body::empty()).unwrap();
    router(Arc::new(made_up)).oneshot(request).await.unwrap()
}

fn served(folder: &tempfile::TempDir) -> MadeUp {
    std::fs::write(folder.path().join("x.params"), BYTES).unwrap();
    std::fs::write(folder.path().join("secret"), "no").unwrap();
    MadeUp {
        served: Some(folder.path().to_owned()),
        ..MadeUp::default()
    }
}

#[tokio::test]
async fn a_file_is_served_whole_and_in_ranges() {
    let _bound = Bound::default();
    let folder = tempfile::tempdir().unwrap();
    let router = router(Arc::new(served(&folder)));
    let whole = ask(router.clone(), "GET", "/params/x.params").await;
    assert_eq!(whole.status(), 200);
    assert_eq!(text(whole).await.as_bytes(), BYTES);
    let head = ask(router, "HEAD", "/params/x.params").await;
    assert_eq!(head.headers()["content-length"], "10");
    assert_eq!(text(head).await, "");
    let part = range(served(&folder), "bytes=3-5").await;
    assert_eq!(part.status(), 206);
    assert_eq!(part.headers()["content-range"], "bytes 3-5/10");
    assert_eq!(text(part).await, "345");
    let outside = range(served(&folder), "bytes=10-11").await;
    assert_eq!(outside.status(), 416);
}

#[tokio::test]
async fn nothing_else_is_served_and_nothing_where_it_is_not_configured() {
    let _bound = Bound::default();
    let folder = tempfile::tempdir().unwrap();
    for path in [
        "/params/secret",
        "/params/y.params",
        "/params/..%2fx.params",
        "/params/%2e%2e",
    ] {
        let response = ask(router(Arc::new(served(&folder))), "GET", path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert!(json(&text(response).await)["error"].is_string(), "{path}");
    }
    let closed = router(Arc::new(MadeUp::default()));
    let response = ask(closed, "GET", "/params/x.params").await;
    assert_eq!(response.status(), 404);
    assert!(text(response).await.contains("serve_params"));
}
