//! The order in which the daemon stops.
//!
//! Not the steps themselves, which are the server's. The invariants:
//!
//! * Clients learn that the daemon stops before it does less for them.
//! * Each call that runs gets a reply, and a PoSt's is its proof if there is time for it.
//! * Each wait has an end.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuzk_cluster::runtime;
use cuzk_core::error::ErrorCode;

use super::notify;

/// The steps of stopping. None of them waits for long, except where it says so.
pub trait Stoppable: Send + Sync + 'static {
    /// Makes the health service say NOT_SERVING, and `/readyz` answer 503.
    fn end_readiness(&self);

    /// Makes the engine begin no more work that can wait: new PoReps and SnapDeals go into
    /// the journal only.
    fn drain(&self);

    /// Returns true if no PoSt and no running partition is left.
    fn is_drained(&self) -> bool;

    /// Accepts no more connections, and asks clients to begin no more calls on those that
    /// they have (GOAWAY). Calls that run go on.
    fn refuse_calls(&self);

    /// Ends the engine. The jobs that are left end as shut down, so that their calls get
    /// replies. It blocks until running work has come to its next checkpoint.
    fn shut_down(&self);

    /// Waits until the last call has got its reply.
    fn replied(&self) -> impl Future<Output = ()> + Send;
}

/// The way in which the daemon stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// True if the drain ended before its time was over.
    pub is_drained: bool,
    /// True if each call got its reply.
    pub is_replied: bool,
}

/// The time between two looks at whether the drain has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The time in which clients learn that they may begin no more calls. Calls that they begin
/// meanwhile are answered as before.
const SETTLE: Duration = Duration::from_millis(250);

/// The time for replies after the engine has ended. All of them are ready then, so only
/// slow clients need it.
const REPLY_MAX: Duration = Duration::from_secs(5);

/// The time that the engine's end may take: a device has ten seconds to answer.
const SHUT_DOWN_MAX: Duration = Duration::from_secs(15);

/// Returns the longest time that [`stop`] takes with this time for the drain.
#[must_use]
pub fn stop_max(drain_max: Duration) -> Duration {
    drain_max.saturating_add(SHUT_DOWN_MAX + REPLY_MAX)
}

/// Stops the daemon, and waits for at most `drain_max` until PoSts and running partitions
/// are finished. In the last quarter of it no calls begin. The caller drops the future to
/// end at once.
pub async fn stop(server: Arc<impl Stoppable>, drain_max: Duration) -> Stopped {
    notify::stopping("finishes what runs, then stops", stop_max(drain_max));
    server.end_readiness();
    server.drain();
    let until = Instant::now() + drain_max;
    // PoSts may come without a pause. The last quarter is for those that are there by then.
    drained(&*server, drain_max - drain_max / 4).await;
    server.refuse_calls();
    let settle = SETTLE.min(until.saturating_duration_since(Instant::now()));
    tokio::time::timeout(settle, server.replied()).await.ok();
    let left = until.saturating_duration_since(Instant::now());
    let is_drained = drained(&*server, left).await;
    notify::status("ends the jobs that are left; the journal keeps its own");
    let ending = Arc::clone(&server);
    let ended = runtime::apart("cuzk-stop", move || ending.shut_down()).await;
    if let Err(error) = ended {
        tracing::error!(
            code = %ErrorCode::Internal,
            "the engine did not end as it should: {error}"
        );
    }
    let replied = tokio::time::timeout(REPLY_MAX, server.replied()).await;
    Stopped {
        is_drained,
        is_replied: replied.is_ok(),
    }
}

/// Waits for the end of the drain. Returns false if the time was over before it.
async fn drained(server: &impl Stoppable, drain_max: Duration) -> bool {
    let started = Instant::now();
    while !server.is_drained() {
        let left = drain_max.saturating_sub(started.elapsed());
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(left.min(LOOK_INTERVAL)).await;
    }
    true
}

#[cfg(test)]
mod tests;
