//! The stream of events.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use cuzk_bounded::Bound;
use cuzk_core::timeline::Stage;
use cuzk_server::http::router;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::made_up::{MadeUp, ask, json};

/// Reads the next event that is no comment: its name and its data.
async fn next(stream: &mut Response<Body>) -> (String, Value) {
    loop {
        let frame = stream.body_mut().frame().await.unwrap().unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        let field = |name: &str| {
            let lines = text.lines();
            let found = lines.filter_map(|line| line.strip_prefix(name)).next();
            found.map(|value| value.trim_start().to_owned())
        };
        if let (Some(name), Some(data)) = (field("event:"), field("data:")) {
            return (name, json(&data));
        }
        assert!(text.starts_with(':'), "{text}");
    }
}

async fn status_event(stream: &mut Response<Body>) -> Value {
    loop {
        let (name, data) = next(stream).await;
        if name == "status" {
            return data;
        }
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_spans_and_the_status() {
    let _bound = Bound::default();
    let sources = MadeUp::default();
    let trace = sources.timeline.trace(7, Some(2)).on_device(0);
    trace.time(Stage::Device, || ());
    let router = router(Arc::new(sources));
    let mut stream = ask(router, "GET", "/events").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let (name, spans) = next(&mut stream).await;
    assert_eq!(
        (name.as_str(), &spans["first"]),
        ("spans", &Value::Bool(true))
    );
    let span = spans["spans"][0].as_array().unwrap();
    assert_eq!(
        span[..4],
        [json("7"), json("2"), json("0"), json("\"device\"")]
    );
    assert!(span[5].as_f64().unwrap() <= spans["now_s"].as_f64().unwrap());
    let (name, document) = next(&mut stream).await;
    assert_eq!(name, "status");
    assert_eq!(document["engine"]["started_s"], 100.7);
    assert_eq!(document["counters"]["total_completed"], 6);
}

#[tokio::test]
async fn a_change_is_sent_and_a_span_only_once() {
    let _bound = Bound::default();
    let sources = Arc::new(MadeUp::default());
    sources
        .timeline
        .trace(7, Some(2))
        .time(Stage::Witness, || ());
    let mut stream = ask(router(sources.clone()), "GET", "/events").await;
    assert_eq!(
        next(&mut stream).await.1["spans"].as_array().unwrap().len(),
        1
    );
    status_event(&mut stream).await;
    sources
        .timeline
        .trace(7, Some(2))
        .time(Stage::Evaluate, || ());
    sources.status.lock().unwrap().memory.kept_bytes = 0;
    let (name, spans) = next(&mut stream).await;
    assert_eq!(
        (name.as_str(), &spans["first"]),
        ("spans", &Value::Bool(false))
    );
    assert_eq!(spans["spans"][0][3], "evaluate");
    assert_eq!(spans["spans"].as_array().unwrap().len(), 1);
    let document = status_event(&mut stream).await;
    assert_eq!(document["engine"]["memory"]["kept_bytes"], 0);
}

#[tokio::test]
async fn the_number_of_streams_is_bounded_and_a_closed_one_makes_room() {
    let _bound = Bound::default();
    let router = router(Arc::new(MadeUp::default()));
    let mut streams = Vec::new();
    let refused = loop {
        let response = ask(router.clone(), "GET", "/events").await;
        if response.status() == 503 {
            break response;
        }
        streams.push(response);
        assert!(streams.len() <= 1_000);
    };
    assert!(refused.headers().contains_key("retry-after"));
    assert!(streams.len() >= 16);
    streams.clear();
    // The tasks of the closed streams end when they run next.
    for _ in 0..1_000 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        if ask(router.clone(), "GET", "/events").await.status() == 200 {
            return;
        }
    }
    panic!("a closed stream kept its place");
}
