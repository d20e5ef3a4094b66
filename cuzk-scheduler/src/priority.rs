//! The urgency of work, and the effect of waiting on it.
//!
//! This is an order, not a queue. The invariants: critical work comes before all other
//! work. All other work comes by the time at which it is due. So work that has waited
//! long enough is next, however much urgent work keeps arriving.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The urgency of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A block is lost if the proof is late: WinningPoSt.
    Critical,
    /// A penalty is due if the proof is late: WindowPoSt.
    High,
    /// Sealing.
    Normal,
    /// Work that can wait.
    Low,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// Returns the name, as [`FromStr`] reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of a name that is no priority's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such priority: {0:?}; use one of critical, high, normal, low")]
pub struct UnknownPriority(String);

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(name: &str) -> Result<Self, UnknownPriority> {
        Self::ALL
            .into_iter()
            .find(|priority| priority.name() == name)
            .ok_or_else(|| UnknownPriority(name.to_owned()))
    }
}

/// The time that work of each priority waits for more urgent work. Work that has waited
/// this long goes before all later work, except critical work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time that [`Priority::Normal`] waits for [`Priority::High`].
    pub normal: Duration,
    /// The time that [`Priority::Low`] waits for [`Priority::High`].
    pub low: Duration,
}

/// A place in the order of work. The least one is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    critical_first: u8,
    due: Instant,
    /// Orders work that is due at the same instant, the older first. No two are equal.
    sequence: u64,
}

impl Rank {
    /// Returns the place of work that arrived at `since` with this sequence number.
    #[must_use]
    pub fn new(priority: Priority, since: Instant, sequence: u64, patience: Patience) -> Self {
        let patience = match priority {
            Priority::Critical | Priority::High => Duration::ZERO,
            Priority::Normal => patience.normal,
            Priority::Low => patience.low,
        };
        Self {
            critical_first: u8::from(priority != Priority::Critical),
            due: since.checked_add(patience).unwrap_or(since),
            sequence,
        }
    }

    /// Returns the place of the same work with another priority and time of arrival.
    /// Critical work stays critical, and other work does not become critical: it is then
    /// as urgent as [`Priority::High`].
    #[must_use]
    pub fn moved(self, priority: Priority, since: Instant, patience: Patience) -> Self {
        Self {
            critical_first: self.critical_first,
            ..Self::new(priority, since, self.sequence, patience)
        }
    }

    /// Returns true if only critical work comes before it.
    #[must_use]
    pub fn is_critical(&self) -> bool {
        self.critical_first == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        normal: Duration::from_secs(60),
        low: Duration::from_secs(600),
    };

    #[test]
    fn names_read_back() {
        for priority in Priority::ALL {
            assert_eq!(priority.to_string().parse(), Ok(priority));
        }
        assert!("Critical".parse::<Priority>().is_err());
    }

    #[test]
    fn waiting_long_enough_overtakes_all_but_the_critical() {
        let start = Instant::now();
        let rank = |priority, after_s, sequence| {
            let since = start + Duration::from_secs(after_s);
            Rank::new(priority, since, sequence, PATIENCE)
        };
        let low = rank(Priority::Low, 0, 0);
        assert!(rank(Priority::High, 599, 1) < low);
        assert!(rank(Priority::Normal, 539, 1) < low);
        assert!(low < rank(Priority::Normal, 541, 1));
        assert!(low < rank(Priority::High, 601, 1));
        assert!(rank(Priority::Critical, 100_000, 1) < low);
        assert!(rank(Priority::Low, 0, 0) < rank(Priority::Low, 0, 1));
    }

    #[test]
    fn a_moved_rank_stays_on_its_side_of_the_critical_ones() {
        let since = Instant::now();
        let rank = |priority| Rank::new(priority, since, 7, PATIENCE);
        for priority in Priority::ALL {
            let low = rank(Priority::Low).moved(priority, since, PATIENCE);
            let same = if priority == Priority::Critical {
                Priority::High
            } else {
                priority
            };
            assert_eq!(low, rank(same));
            let critical = rank(Priority::Critical).moved(priority, since, PATIENCE);
            assert!(critical.is_critical());
        }
    }
}
