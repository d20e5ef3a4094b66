//! Messages that come twice and late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Publishes a part of the cluster's messages once more until `is_over`. Returns the number of
/// copies.
pub(crate) async fn repeat(url: String, seed: u64, is_over: Arc<AtomicBool>) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x6e6f_6973_6500);
    let client = async_nats::connect(url).await.unwrap();
    let mut messages = client.subscribe("cuzk.>").await.unwrap();
    let mut copies = 0;
    while !is_over.load(Ordering::Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(200), messages.next()).await;
        let Ok(Some(message)) = next else { continue };
        let is_copy = message.headers.is_some_and(|all| all.get(COPY).is_some());
        if is_copy || !rng.gen_bool(PART) {
            continue;
        }
        copies += 1;
        let late = Duration::from_millis(rng.gen_range(0..LATE_MS));
        let client = client.clone();
        tokio::spawn(async move {
            tokio::time::sleep(late).await;
            let mut headers = async_nats::HeaderMap::new();
            headers.insert(COPY, "1");
            let (subject, payload) = (message.subject, message.payload);
            // The server may be gone at this moment.
            let _ = client.publish_with_headers(subject, headers, payload).await;
        });
    }
    copies
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
