//! Helpers of the journal's tests.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cuzk_journal::{JobOptions, Limits};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

pub(crate) fn options(partitions: u32) -> JobOptions {
    JobOptions {
        kind: b"kind".to_vec(),
        partitions,
        priority: 3,
        deadline_unix_ms: Some(77),
    }
}

pub(crate) fn limits() -> Limits {
    Limits {
        jobs_max: 1_000,
        request_bytes_max: 1 << 30,
        results_max: 1_000_000,
        result_age: Duration::from_secs(1_000_000_000),
    }
}

/// Returns bytes that do not compress, equal for equal seeds.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    ChaCha8Rng::seed_from_u64(seed).fill(&mut bytes[..]);
    bytes
}

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub(crate) fn at(unix_ms: u64) -> Self {
        Self(Arc::new(AtomicU64::new(unix_ms)))
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn set_back(&self, ms: u64) {
        self.0.fetch_sub(ms, Ordering::SeqCst);
    }

    pub(crate) fn unix_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn read(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let clock = self.clone();
        move || clock.unix_ms()
    }
}
