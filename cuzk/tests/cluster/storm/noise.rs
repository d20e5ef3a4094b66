//! Messages that come twice, late, and in another order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio_stream::StreamExt;

/// The header of a message that is a copy. A copy is not copied.
const COPY: &str = "cuzk-test-copy";

/// The part of the messages that come twice.
const PART: f64 = 0.2;

/// The longest time after which a copy comes. Messages that were sent later overtake it.
const LATE_MS: u64 = 3000;

/// The messages of one kind that were sent, as their number.
type Sent = Arc<Mutex<HashMap<String, usize>>>;

/// The copies of messages.
pub(crate) struct Noise {
    pub(crate) copies: usize,
    /// The copies that came after a later message of their kind: the copy of a sign of life after
    /// the next sign, for example.
    pub(crate) overtaken: usize,
}

/// Returns the kind of a message: the first two words of its subject.
fn kind(subject: &str) -> String {
    let words = subject.split('.').take(2);
    words.collect::<Vec<_>>().join(".")
}

/// Publishes a part of the cluster's messages once more until `is_over`.
pub(crate) async fn repeat(url: String, seed: u64, is_over: Arc<AtomicBool>) -> Noise {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x6e6f_6973_6500);
    let client = async_nats::connect(url).await.unwrap();
    let mut messages = client.subscribe("cuzk.>").await.unwrap();
    let sent = Sent::default();
    let overtaken = Arc::new(AtomicUsize::new(0));
    let mut copies = 0;
    while !is_over.load(Ordering::Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(200), messages.next()).await;
        let Ok(Some(message)) = next else { continue };
        if message.headers.is_some_and(|all| all.get(COPY).is_some()) {
            continue;
        }
        let kind = kind(&message.subject);
        let number = {
            let mut sent = sent.lock().unwrap();
            let number = sent.entry(kind.clone()).or_default();
            *number += 1;
            *number
        };
        if !rng.gen_bool(PART) {
            continue;
        }
        copies += 1;
        let late = Duration::from_millis(rng.gen_range(0..LATE_MS));
        let client = client.clone();
        let (sent, overtaken) = (Arc::clone(&sent), Arc::clone(&overtaken));
        tokio::spawn(async move {
            tokio::time::sleep(late).await;
            if sent.lock().unwrap()[&kind] > number {
                overtaken.fetch_add(1, Ordering::Relaxed);
            }
            let mut headers = async_nats::HeaderMap::new();
            headers.insert(COPY, "1");
            let (subject, payload) = (message.subject, message.payload);
            // The server may be gone at this moment.
            let _ = client.publish_with_headers(subject, headers, payload).await;
        });
    }
    Noise {
        copies,
        overtaken: overtaken.load(Ordering::Relaxed),
    }
}

/// Waits until the streams have no messages.
pub(crate) async fn await_empty(url: &str) {
    // The last copies are on their way.
    tokio::time::sleep(Duration::from_millis(LATE_MS)).await;
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    for name in ["CUZK_WORK", "CUZK_RESULTS"] {
        while let Ok(mut stream) = context.get_stream(name).await {
            let info = stream.info().await;
            if info.is_ok_and(|info| info.state.messages == 0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Deletes both streams, if the server answers.
pub(crate) async fn delete_streams(url: &str) {
    let deleted = async {
        let context = jetstream::new(async_nats::connect(url).await.ok()?);
        context.delete_stream("CUZK_WORK").await.ok()?;
        context.delete_stream("CUZK_RESULTS").await.ok()
    };
    let _ = tokio::time::timeout(Duration::from_secs(10), deleted).await;
}
