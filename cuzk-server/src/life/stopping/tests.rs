use std::sync::{Mutex, PoisonError};

use cuzk_bounded::Bound;

use super::*;

/// A server that remembers the steps. It is drained after some looks, or never.
struct Double {
    steps: Mutex<Vec<&'static str>>,
    looks_left: Mutex<Option<u32>>,
}

impl Double {
    fn new(looks: Option<u32>) -> Arc<Self> {
        Arc::new(Self {
            steps: Mutex::default(),
            looks_left: Mutex::new(looks),
        })
    }

    fn note(&self, step: &'static str) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }

    fn steps(&self) -> Vec<&'static str> {
        self.steps.lock().unwrap().clone()
    }
}

impl Stoppable for Double {
    fn end_readiness(&self) {
        self.note("end_readiness");
    }

    fn drain(&self) {
        self.note("drain");
    }

    fn is_drained(&self) -> bool {
        self.note("is_drained");
        let mut looks_left = self.looks_left.lock().unwrap();
        let Some(left) = *looks_left else {
            return false;
        };
        *looks_left = Some(left.saturating_sub(1));
        left == 0
    }

    fn refuse_calls(&self) {
        self.note("refuse_calls");
    }

    fn shut_down(&self) {
        self.note("shut_down");
    }

    async fn replied(&self) {
        self.note("replied");
    }
}

const STEPS: [&str; 8] = [
    "end_readiness",
    "drain",
    "is_drained",
    "refuse_calls",
    // Calls that began before their clients knew are finished, too.
    "replied",
    "is_drained",
    "shut_down",
    "replied",
];

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_drain_that_ends_is_not_waited_for_longer() {
    let _bound = Bound::default();
    let server = Double::new(Some(3));
    let stopped = stop(Arc::clone(&server), HOUR).await;
    assert!(stopped.is_drained && stopped.is_replied);
    assert_eq!(server.steps(), STEPS);
}

#[tokio::test]
async fn a_drain_without_an_end_takes_its_time_and_no_longer() {
    let _bound = Bound::default();
    for drain_max in [Duration::ZERO, Duration::from_millis(120)] {
        let server = Double::new(None);
        let started = Instant::now();
        let stopped = stop(Arc::clone(&server), drain_max).await;
        assert!(!stopped.is_drained && stopped.is_replied);
        assert!(started.elapsed() >= drain_max);
        assert_eq!(server.steps(), STEPS);
    }
}

/// A second signal drops the future: no further step is taken.
#[tokio::test]
async fn a_stop_that_is_dropped_takes_no_further_step() {
    let _bound = Bound::default();
    let server = Double::new(None);
    let stopping = stop(Arc::clone(&server), HOUR);
    let ended = tokio::time::timeout(Duration::from_millis(120), stopping).await;
    assert!(ended.is_err());
    assert_eq!(server.steps(), STEPS[..3]);
}

/// An engine that panics at its end, before calls that never get a reply.
struct Stuck;

impl Stoppable for Stuck {
    fn end_readiness(&self) {}

    fn drain(&self) {}

    fn is_drained(&self) -> bool {
        true
    }

    fn refuse_calls(&self) {}

    fn shut_down(&self) {
        panic!("at the end");
    }

    fn replied(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

#[tokio::test]
async fn calls_that_get_no_reply_do_not_keep_the_daemon() {
    let _bound = Bound::default();
    let stopped = stop(Arc::new(Stuck), HOUR).await;
    assert!(stopped.is_drained && !stopped.is_replied);
}
