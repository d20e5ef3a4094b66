//! Repeated calls, for a daemon that restarts.
//!
//! The invariant: the time without any daemon is bounded.

use std::time::{Duration, Instant};

use super::error::ClientError;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The bound of the time in which a daemon may be away, and the pauses between calls.
#[derive(Clone, Debug)]
pub struct Patience {
    limit: Duration,
    pause: Duration,
    /// The start of the first of the calls that failed, one after the other.
    away_since: Option<Instant>,
}

impl Patience {
    /// Returns a patience that ends when calls have failed for `limit`. With a limit of zero
    /// no call is repeated.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            pause: FIRST_PAUSE,
            away_since: None,
        }
    }

    /// Returns the pause before the next call, after a call that began at `began` and failed
    /// with `error`.
    ///
    /// # Errors
    /// The same error if another call would not help, or the time is over.
    pub fn pause(&mut self, began: Instant, error: ClientError) -> Result<Duration, ClientError> {
        self.pause_at(began, Instant::now(), error)
    }

    fn pause_at(
        &mut self,
        began: Instant,
        now: Instant,
        error: ClientError,
    ) -> Result<Duration, ClientError> {
        // A call that took longer than any pause was held by a daemon: it had been there.
        if now.saturating_duration_since(began) > PAUSE_MAX {
            *self = Self::new(self.limit);
        }
        let away_since = *self.away_since.get_or_insert(now);
        if !error.is_temporary() || now.saturating_duration_since(away_since) >= self.limit {
            return Err(error);
        }
        let pause = self.pause;
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        Ok(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> ClientError {
        ClientError::Busy {
            address: "tcp://localhost:1".parse().unwrap(),
            reason: String::new(),
        }
    }

    #[test]
    fn pauses_grow_until_the_time_is_over() {
        let mut patience = Patience::new(Duration::from_secs(60));
        let (mut now, start) = (Instant::now(), Instant::now());
        let mut pauses = Vec::new();
        while let Ok(pause) = patience.pause_at(now, now, busy()) {
            pauses.push(pause);
            now += pause;
        }
        assert!(pauses.is_sorted());
        assert_eq!(pauses.first(), Some(&FIRST_PAUSE));
        assert_eq!(pauses.last(), Some(&PAUSE_MAX));
        assert!(now - start >= Duration::from_secs(60));
        assert!(now - start < Duration::from_secs(60) + PAUSE_MAX + FIRST_PAUSE);
    }

    #[test]
    fn a_call_that_was_held_begins_the_time_anew() {
        let mut patience = Patience::new(Duration::from_secs(5));
        let mut now = Instant::now();
        for _ in 0..10 {
            let began = now;
            now += 2 * PAUSE_MAX;
            assert_eq!(patience.pause_at(began, now, busy()).unwrap(), FIRST_PAUSE);
        }
    }

    #[test]
    fn an_error_that_stays_ends_at_once() {
        let mut patience = Patience::new(Duration::from_secs(60));
        let error = ClientError::InvalidInput("x".to_owned());
        assert!(patience.pause(Instant::now(), error).is_err());
        assert!(
            Patience::new(Duration::ZERO)
                .pause(Instant::now(), busy())
                .is_err()
        );
    }
}
