//! The order of work, the memory that it may use, and the devices that may do it.
//!
//! This is not an engine: nothing here knows of proofs, starts a thread or allocates
//! the memory that it counts. The crate consists of small monitors with one lock each,
//! so that each can be checked on its own. [`admission`] and the monitors beside it are
//! model-checked over all interleavings with at most three preemptions
//! (`RUSTFLAGS="--cfg loom"`).
//!
//! # Reading order
//!
//! * [`priority`]: the order of work.
//! * [`admission`]: work that waits for its turn and its memory.
//! * [`queue`]: work between two stages.
//! * [`turnstile`]: urgent work goes first.
//! * [`health`] and [`estimate`]: the record of devices, and of the duration of work.
//! * [`clock`]: the time that all of them go by.
//!
//! # Example
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use cuzk_scheduler::admission::{Admission, Entrance, Lane, Limits, Need, Turn};
//! use cuzk_scheduler::priority::{Patience, Priority};
//!
//! let admission = Admission::new(Limits {
//!     capacity: 8,
//!     total_bytes: 100,
//!     critical_reserve_bytes: 20,
//!     patience: Patience { normal: Duration::from_secs(60), low: Duration::from_secs(600) },
//! });
//! // A partition has memory of its own, and shares its circuit with the others.
//! let need = Need { own_bytes: 30, shared: Some(("circuit", 40)) };
//! let work = vec![("partition 0", need)];
//! let submitted =
//!     admission.submit(Entrance::IfRoom, Lane::Common, Priority::Normal, Instant::now(), work);
//! assert!(submitted.is_ok());
//! if let Some(Turn::Admitted { item, memory, .. }) = admission.next(Lane::Common) {
//!     assert_eq!((item, memory.own_bytes()), ("partition 0", 30));
//!     drop(memory);
//! }
//! assert_eq!((admission.usage().used_bytes, admission.usage().idle_bytes), (40, 40));
//! ```

#![forbid(unsafe_code)]

pub mod admission;
pub mod clock;
pub mod estimate;
pub mod health;
pub mod priority;
pub mod queue;
mod sync;
pub mod turnstile;
