//! Where the time of a proving engine goes, and how it is doing.
//!
//! Reading order: [`Stage`] says what a partition goes through, a [`Span`] is one
//! stage that has ended, and a [`Timeline`] keeps the spans that a [`Trace`]
//! records. From spans follow [`device_use`] (how busy a device was and when it was
//! idle), [`waterfall_svg`] (a picture) and [`chrome_trace`] (a file that Perfetto
//! opens). [`metrics`] are the numbers that a monitoring system scrapes; the
//! timeline emits those of the stages by itself.
//!
//! This crate knows times and names, nothing of proofs, and it writes no log and
//! links no exporter. Its invariant: a span is recorded for every stage that ran,
//! also when it failed or unwound, and what is kept is bounded.

#![forbid(unsafe_code)]

mod chrome;
mod device_use;
pub mod metrics;
mod rows;
mod span;
mod stage;
#[cfg(test)]
mod testing;
mod timeline;
mod waterfall;

pub use chrome::{ChromeTrace, chrome_trace};
pub use device_use::{DeviceUse, Gap, device_use};
pub use span::{Lane, Span};
pub use stage::Stage;
pub use timeline::{DeviceTally, SPANS_MAX, TimedDrop, Timeline, Trace, Wait};
pub use waterfall::{WaterfallOptions, waterfall_svg};
