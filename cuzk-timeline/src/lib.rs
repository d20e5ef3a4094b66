//! Times of the stages of a proving engine, and its metrics.
//!
//! Reading order:
//!
//! * [`Stage`] lists the steps that a partition passes.
//! * A [`Span`] is one stage that has ended.
//! * A [`Timeline`] keeps the spans that a [`Trace`] records.
//! * A [`LiveJob`] shows the stages that a job's partitions are in now.
//! * [`device_use`] computes from spans how busy each device was, and its idle gaps.
//! * [`Names`] are what pictures call devices and jobs.
//! * [`waterfall_svg`] draws spans as a picture.
//! * [`chrome_trace`] makes a file of them that Perfetto opens.
//! * [`metrics`] are the numbers that a monitoring system scrapes. The timeline emits
//!   the metrics of the stages by itself.
//!
//! This crate knows times and names. It knows nothing of proofs, links no exporter, and
//! logs one event only: a recorder of metrics that panicked.
//!
//! Its invariants: each stage that ran has a span, also a stage that failed or unwound.
//! The number of spans kept is bounded.
//!
//! # Example
//!
//! ```
//! use cuzk_timeline::{Stage, Timeline, WaterfallOptions, device_use, waterfall_svg};
//!
//! let timeline = Timeline::default();
//! let trace = timeline.trace(7, Some(0));
//! let witness = trace.time(Stage::Witness, || vec![1_u8; 32]);
//! trace.on_device(0).time(Stage::Device, || drop(witness));
//!
//! let spans = timeline.of_job(7);
//! assert_eq!(spans.len(), 2);
//! assert_eq!(device_use(&spans)[0].utilisation(), 1.0);
//! assert!(waterfall_svg(&spans, &WaterfallOptions::default()).starts_with("<svg"));
//! ```

#![forbid(unsafe_code)]

mod chrome;
mod device_use;
mod live;
pub mod metrics;
mod names;
mod rows;
mod span;
mod stage;
mod tally;
#[cfg(test)]
mod testing;
mod timeline;
mod wait;
mod waterfall;

pub use chrome::{ChromeTrace, chrome_trace};
pub use device_use::{DeviceUse, Gap, device_use};
pub use live::{LiveJob, LivePartition, StageTimes};
pub use names::Names;
pub use span::{Lane, Span};
pub use stage::Stage;
pub use tally::DeviceTally;
pub use timeline::{SPANS_MAX, Shown, TimedDrop, Timeline, Trace};
pub use wait::Wait;
pub use waterfall::{WaterfallOptions, waterfall_svg};
