//! Tools to measure two kinds of work at the same time, and to judge and draw the
//! results.
//!
//! Reading order:
//!
//! * [`beside`] runs two kinds of work at the same time, and never leaves one of them
//!   alone.
//! * [`sweep`] chooses a number of threads by the measured times.
//! * [`child`] runs a second process, for settings that a process can make only once.
//! * [`counters`] reads processor time, page faults and other counts beside the clock.
//! * [`others`] says how much of the processors other programs had meanwhile.
//! * [`machine`] describes the machine that a figure is from.
//! * [`plot`] draws.
//!
//! The commands that measure an operator's machine use this crate, and so do the
//! benches. They bring the work along. Nothing here is part of the engine, and nothing
//! knows what kind of work it measures.
//!
//! # Example
//!
//! ```
//! use cuzk_tune::beside::{Side, beside};
//! use cuzk_tune::sweep::median;
//!
//! let fast = || Ok::<(), std::io::Error>(());
//! let slow = || Ok(std::thread::sleep(std::time::Duration::from_millis(1)));
//! let [fast_time, slow_time] = beside(Side::new(1, &fast), Side::new(3, &slow), |error| error)?;
//! assert!(fast_time < slow_time);
//! assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod beside;
pub mod child;
pub mod counters;
pub mod machine;
pub mod others;
pub mod plot;
pub mod sweep;
