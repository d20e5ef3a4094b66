//! Readiness, and what is missing.

use std::sync::Arc;

use cuzk_bounded::Bound;
use cuzk_server::http::{LateRouter, Phase, Readiness, router};

use crate::made_up::{MadeUp, ask, get, json, text};

#[tokio::test]
async fn what_is_missing_is_named_line_by_line() {
    let _bound = Bound::default();
    assert_eq!(
        get(MadeUp::default(), "/readyz").await,
        (200, "ready\n".to_owned())
    );
    let lines = ["the engine is draining", "the daemon is stopping"];
    let sources = || MadeUp {
        missing: lines.map(str::to_owned).to_vec(),
        ..MadeUp::default()
    };
    let (code, text) = get(sources(), "/readyz").await;
    assert_eq!(
        (code, text.lines().collect::<Vec<_>>()),
        (503, lines.to_vec())
    );
    let (code, text) = get(sources(), "/readyz?circuit=porep-32g").await;
    assert_eq!((code, text.lines().count()), (503, 3));
}

#[tokio::test]
async fn a_circuit_has_two_names() {
    let _bound = Bound::default();
    for name in ["porep-32GiB", "porep-32g"] {
        let (code, text) = get(MadeUp::default(), &format!("/readyz?circuit={name}")).await;
        assert_eq!(
            (code, text.as_str()),
            (503, "porep-32GiB: parameters\n"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_wrong_question_is_an_error() {
    let _bound = Bound::default();
    let bad = [
        "circuit=porep-33g",
        "circuit=",
        "circuit=%ff",
        "cirquit=porep-32g",
        "circuit=porep-32g&circuit=porep-64g",
    ];
    for query in bad {
        let (code, text) = get(MadeUp::default(), &format!("/readyz?{query}")).await;
        assert_eq!(code, 400, "{query}");
        assert!(
            json(&text)["error"].as_str().unwrap().contains("circuit"),
            "{query}"
        );
    }
}

#[test]
fn a_daemon_begins_as_one_that_starts() {
    let readiness = Readiness::default();
    assert_eq!(readiness.phase(), Phase::Starting);
    for phase in [Phase::Serving, Phase::Stopping, Phase::Starting] {
        readiness.clone().set(phase);
        assert_eq!(readiness.phase(), phase);
    }
}

#[tokio::test]
async fn a_daemon_without_its_engine_says_that_it_starts() {
    let _bound = Bound::default();
    let late = LateRouter::default();
    let pages = late.router();
    for (path, code, content) in [
        ("/livez", 200, "alive\n"),
        (
            "/readyz",
            503,
            "the daemon is starting: it opens its journal\n",
        ),
        (
            "/readyz?circuit=porep-32g",
            503,
            "the daemon is starting: it opens its journal\n",
        ),
        (
            "/status",
            503,
            r#"{"error":"the daemon is starting; ask again later"}"#,
        ),
    ] {
        let response = ask(pages.clone(), "GET", path).await;
        assert_eq!(response.status(), code, "{path}");
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        assert_eq!(text(response).await, content, "{path}");
    }
    late.set(router(Arc::new(MadeUp::default())));
    let response = ask(pages.clone(), "GET", "/readyz").await;
    assert_eq!(text(response).await, "ready\n");
    let response = ask(pages, "GET", "/status").await;
    assert_eq!(response.status(), 200);
}
