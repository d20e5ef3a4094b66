//! The status and the stages that ended, as server-sent events.
//!
//! A stream has two events. `status` has the document of `/status`, without the
//! partitions of jobs that wait. `spans` has the stages
//! that ended since the event before, and the time of the timeline's clock. Both come every
//! second while the status changes. They come at least every 15 s, so that a client can tell
//! an idle daemon from one that is gone.
//!
//! The invariants: at most [`SUBSCRIBERS_MAX`] streams are open. All of them share one look
//! at the engine a second. A slow client holds at most one event in memory.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use cuzk_core::timeline::{Span, Timeline};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::report::report;
use super::{Failure, Shared, Sources, error};
use crate::blocking::blocking;

/// The most event streams at a time.
pub(super) const SUBSCRIBERS_MAX: usize = 64;

/// The time between two looks at the engine.
const PERIOD: Duration = Duration::from_secs(1);

/// The longest time without an event, and the time between two comments.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// How old the spans of a stream's first event may be.
const HISTORY: Duration = Duration::from_secs(600);

/// The most spans in a stream's first event.
const HISTORY_SPANS_MAX: usize = 2_000;

/// The time after which a browser connects again.
const RETRY: Duration = Duration::from_secs(2);

/// The streams, and the look at the engine that they share.
#[derive(Clone)]
pub(super) struct Events {
    sources: Arc<dyn Sources>,
    places: Arc<Semaphore>,
    last: Arc<Mutex<Option<Arc<Look>>>>,
}

/// A look at the engine.
struct Look {
    at: Instant,
    /// The document of `/status`, without the partitions of jobs that wait.
    status: String,
    /// A digest of the document, without what changes only because time passes.
    digest: u64,
    timeline: Timeline,
    /// The time of the timeline's clock.
    now: Duration,
}

impl Events {
    pub(super) fn new(sources: Arc<dyn Sources>) -> Self {
        Self {
            sources,
            places: Arc::new(Semaphore::new(SUBSCRIBERS_MAX)),
            last: Arc::default(),
        }
    }

    /// Returns a look at the engine that is younger than half a period.
    async fn look(&self) -> Result<Arc<Look>, Failure> {
        let mut last = self.last.lock().await;
        if let Some(look) = last.as_ref().filter(|look| look.at.elapsed() < PERIOD / 2) {
            return Ok(Arc::clone(look));
        }
        let sources = Arc::clone(&self.sources);
        let look = blocking(move || Look::at(sources.as_ref())).await;
        let look = Arc::new(look.map_err(|error| Failure::of(&error))?);
        *last = Some(Arc::clone(&look));
        Ok(look)
    }
}

impl Look {
    fn at(sources: &dyn Sources) -> Self {
        let timeline = sources.timeline();
        let mut status = sources.status();
        // A thousand jobs that wait would make the document a megabyte.
        let waiting = status.jobs.iter_mut().filter(|job| job.state != "running");
        waiting.for_each(|job| job.parts.clear());
        let now = timeline.epoch().elapsed();
        let report = report(&status, sources);
        let mut document = serde_json::to_value(report).unwrap_or_default();
        let text = document.to_string();
        remove_ages(&mut document);
        let mut digest = DefaultHasher::new();
        document.to_string().hash(&mut digest);
        // While partitions run, their times are news.
        if status.partitions_running > 0 {
            now.hash(&mut digest);
        }
        Self {
            at: Instant::now(),
            status: text,
            digest: digest.finish(),
            timeline,
            now,
        }
    }
}

/// Removes the keys whose values change only because time passes.
fn remove_ages(document: &mut Value) {
    match document {
        Value::Object(map) => {
            let ends = ["_s", "_ago", "_secs"];
            map.retain(|key, _| !ends.iter().any(|end| key.ends_with(end)));
            map.values_mut().for_each(remove_ages);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_ages),
        _ => {}
    }
}

/// Answers with a stream of events, or with 503 if there are too many.
pub(super) async fn events(State(shared): State<Shared>) -> Response {
    let places = Arc::clone(&shared.events.places);
    let Ok(place) = places.try_acquire_owned() else {
        let problem = format!("{SUBSCRIBERS_MAX} event streams are open; close one of them");
        let mut response = error(StatusCode::SERVICE_UNAVAILABLE, &problem);
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, RETRY.as_secs().into());
        return response;
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(feed(shared.events, sender, place));
    let keep_alive = KeepAlive::new().interval(SILENCE_MAX);
    let events = Sse::new(ReceiverStream::new(receiver)).keep_alive(keep_alive);
    events.into_response()
}

/// The last document of a stream.
struct Sent {
    digest: u64,
    at: Instant,
}

impl Sent {
    /// Returns true if a document with this digest is news, or if the stream was silent
    /// for too long.
    fn is_due(&self, digest: u64, now: Instant) -> bool {
        self.digest != digest || now.duration_since(self.at) >= SILENCE_MAX
    }
}

/// Feeds one stream until its client is gone.
async fn feed(
    events: Events,
    sender: mpsc::Sender<Result<Event, Infallible>>,
    _place: OwnedSemaphorePermit,
) {
    let mut sent: Option<Sent> = None;
    let mut spans_until: Option<Duration> = None;
    let mut period = tokio::time::interval(PERIOD);
    loop {
        tokio::select! {
            () = sender.closed() => return,
            _ = period.tick() => {}
        }
        let Ok(look) = events.look().await else {
            return;
        };
        let silent = |sent: &Sent| !sent.is_due(look.digest, Instant::now());
        if sent.as_ref().is_some_and(silent) {
            continue;
        }
        let spans = spans_event(&look, spans_until);
        let status = Event::default().event("status").retry(RETRY);
        let status = status.data(&look.status);
        let spans = Event::default().event("spans").data(spans);
        for event in [spans, status] {
            if sender.send(Ok(event)).await.is_err() {
                return;
            }
        }
        sent = Some(Sent {
            digest: look.digest,
            at: Instant::now(),
        });
        spans_until = Some(look.now);
    }
}

/// Returns the data of an event with the spans that ended from `since` to the look. Without
/// `since` it is the first of its stream, and has the recent ones.
fn spans_event(look: &Look, since: Option<Duration>) -> String {
    let first = since.is_none();
    let since = since.unwrap_or_else(|| look.now.saturating_sub(HISTORY));
    let ended = |span: &Span| since < span.end && span.end <= look.now;
    let mut spans = look.timeline.spans();
    spans.retain(ended);
    let too_many = spans.len().saturating_sub(HISTORY_SPANS_MAX);
    let spans: Vec<_> = spans.iter().skip(too_many).map(span_value).collect();
    json!({ "first": first, "now_s": seconds(look.now), "spans": spans }).to_string()
}

/// Returns a span as an array: job (null for background work), partition, device, stage, start
/// and end in seconds.
fn span_value(span: &Span) -> Value {
    json!([
        span.job,
        span.partition,
        span.device,
        span.stage.name(),
        seconds(span.start),
        seconds(span.end),
    ])
}

/// Returns a time in seconds, to a tenth of a millisecond.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_no_news() {
        let mut document = json!({
            "uptime_secs": 4, "jobs": [{"done": 1, "accepted_s_ago": 2.5}], "queue_depth": 1,
        });
        remove_ages(&mut document);
        assert_eq!(document, json!({"jobs": [{"done": 1}], "queue_depth": 1}));
    }
    #[test]
    fn an_unchanged_status_is_sent_after_a_silence() {
        let at = Instant::now();
        let sent = Sent { digest: 1, at };
        assert!(!sent.is_due(1, at + PERIOD));
        assert!(sent.is_due(2, at + PERIOD));
        assert!(sent.is_due(1, at + SILENCE_MAX));
    }
}
