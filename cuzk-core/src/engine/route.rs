//! What becomes of a partition that failed: pure functions of the failure and of the
//! fleet.
//!
//! Not the consequence: [`super::core::Core::failed`] carries it out. The invariants: a
//! false statement is reported to the caller and counts against no device; a circuit
//! that does not fit and parameters that nobody can use count against none either;
//! every other failure is tried again on a device that has not failed the partition, in
//! the end on the CPU, and is reported only when that failed, too.

use cuzk_scheduler::admission::Lane;

use super::fleet::view::FleetView;
use crate::metrics::Fault;
use crate::pipeline::Step;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::{Culprit, Error};

/// Where an attempt failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedAt {
    pub(super) step: Step,
    /// The slot of the device.
    pub(super) device: usize,
    /// True if the statement of a rejected proof was checked, and holds.
    pub(super) is_checked: bool,
}

impl FailedAt {
    /// A failure in `step` on the device of a slot, whose statement was not checked.
    pub(super) fn new(step: Step, device: usize) -> Self {
        Self {
            step,
            device,
            is_checked: false,
        }
    }
}

/// A partition that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure<'a> {
    pub(super) at: FailedAt,
    pub(super) error: &'a Error,
    pub(super) critical: bool,
    /// The slots that had failed it before.
    pub(super) excluded: &'a [usize],
}

/// What a failure is recorded as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// It is nobody's fault, or not yet known to be.
    Nothing,
    /// A fault of the device.
    Fault(Fault),
    /// The device did not answer: it is quarantined at once.
    Silence,
    /// The circuit does not fit on the device.
    TooLarge,
}

/// Where a partition that failed goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Back into the queue, to be proved elsewhere.
    Requeue(Lane),
    /// Back into the queue, for its statement to be checked.
    RequeueForCheck(Lane),
    /// Its job ends with the error.
    Settle,
}

/// Returns what a failure is recorded as.
pub(super) fn record(failure: &Failure<'_>) -> Record {
    match failure.error {
        _ if is_final(failure) => Record::Nothing,
        _ if needs_check(failure) => Record::Nothing,
        Error::Backend { culprit, .. } => match culprit {
            Culprit::Device => Record::Fault(Fault::Error),
            Culprit::Size => Record::TooLarge,
            Culprit::Input => Record::Nothing,
        },
        Error::Rejected { .. } => Record::Fault(Fault::Rejected),
        Error::Internal { .. } => Record::Fault(Fault::Panic),
        Error::Stalled { .. } => Record::Silence,
        _ => Record::Fault(Fault::Error),
    }
}

/// Returns where a partition goes that failed, in `fleet` as it is after the failure was
/// recorded.
pub(super) fn route(failure: &Failure<'_>, fleet: &FleetView) -> Route {
    if is_final(failure) {
        return Route::Settle;
    }
    #[cfg(test)]
    if is_planted(Plant::NoRetry) {
        return Route::Settle;
    }
    if needs_check(failure) {
        return Route::RequeueForCheck(if failure.critical {
            Lane::Critical
        } else {
            Lane::Common
        });
    }
    let mut excluded = failure.excluded.to_vec();
    excluded.push(failure.at.device);
    let lane = fleet.lane(failure.critical, &excluded);
    lane.map_or(Route::Settle, Route::Requeue)
}

/// Returns true if another device could not do better.
fn is_final(failure: &Failure<'_>) -> bool {
    failure.at.step == Step::Synthesis || failure.error.is_input()
}

/// Returns true if it has to be seen first whether the statement is false. A witness of
/// it shows that, and takes memory, which the partition has given back.
fn needs_check(failure: &Failure<'_>) -> bool {
    matches!(failure.error, Error::Rejected { .. }) && !failure.at.is_checked
}

#[cfg(test)]
mod tests;
