//! The marks of a time axis.

use std::time::Duration;

/// The most steps on an axis.
const TICKS_MAX: u32 = 12;

/// The marks of an axis.
#[derive(Debug, PartialEq)]
pub(super) struct Ticks {
    pub(super) step: Duration,
    /// The number of decimals of a second in a label.
    pub(super) decimals: usize,
}

impl Ticks {
    /// Returns the finest step of which at most [`TICKS_MAX`] fit in `length`. A step
    /// is 1, 2 or 5 times a power of ten.
    pub(super) fn over(length: Duration) -> Self {
        let mut decimals = 9;
        let mut power = Duration::from_nanos(1);
        loop {
            for factor in [1, 2, 5] {
                if power * factor * TICKS_MAX >= length {
                    let step = power * factor;
                    return Self { step, decimals };
                }
            }
            power *= 10;
            decimals = decimals.saturating_sub(1);
        }
    }
}
