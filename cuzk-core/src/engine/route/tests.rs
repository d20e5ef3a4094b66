//! The table of error × priority × state of the fleet.

use super::*;
use crate::engine::fleet::view::DeviceView;

const GPU: DeviceView = DeviceView {
    is_trusted: true,
    is_rested: false,
    is_this_cpu: false,
};
const CPU: DeviceView = DeviceView {
    is_this_cpu: true,
    ..GPU
};
/// In quarantine.
const OUT: DeviceView = DeviceView {
    is_trusted: false,
    ..GPU
};
/// In quarantine, and rested.
const RESTED: DeviceView = DeviceView {
    is_rested: true,
    ..OUT
};

const COMMON: Route = Route::Requeue(Lane::Common);
const CRITICAL: Route = Route::Requeue(Lane::Critical);
const RETRY: Route = Route::Requeue(Lane::Retry);

fn at(step: Step, is_checked: bool) -> FailedAt {
    FailedAt {
        step,
        device: 0,
        is_checked,
    }
}

/// Returns the route of a failure on device 0, for normal and for critical priority.
fn routes(
    (step, error, is_checked): (Step, &Error, bool),
    devices: &[DeviceView],
    excluded: &[usize],
) -> [Route; 2] {
    let fleet = FleetView {
        devices: devices.to_vec(),
    };
    [false, true].map(|critical| {
        let failure = Failure {
            at: at(step, is_checked),
            error,
            critical,
            excluded,
        };
        route(&failure, &fleet)
    })
}

fn recorded((step, error, is_checked): (Step, &Error, bool)) -> Record {
    record(&Failure {
        at: at(step, is_checked),
        error,
        critical: false,
        excluded: &[],
    })
}

fn backend(culprit: Culprit) -> Error {
    Error::Backend {
        partition: 0,
        backend: "test",
        problem: String::new(),
        culprit,
    }
}

fn rejected() -> Error {
    Error::Rejected {
        partition: 0,
        problem: String::new(),
    }
}

fn internal() -> Error {
    Error::Internal {
        stage: "test",
        problem: String::new(),
    }
}

fn stalled() -> Error {
    Error::Stalled {
        partition: 0,
        after_s: 1,
    }
}

fn synthesis() -> Error {
    Error::Filecoin(cuzk_filecoin::Error::synthesis("test", &""))
}

/// Errors after which another device is tried.
fn retried() -> Vec<(Step, Error, bool)> {
    vec![
        (Step::Start, backend(Culprit::Device), false),
        (Step::Start, backend(Culprit::Size), false),
        (Step::Start, backend(Culprit::Input), false),
        (Step::Start, internal(), false),
        (Step::Finish, internal(), false),
        (Step::Start, stalled(), false),
        (Step::Finish, rejected(), true),
        (Step::Start, synthesis(), false),
    ]
}

/// Errors that end the job wherever they happen.
fn settled() -> Vec<(Step, Error, bool)> {
    let unsatisfied = Error::Unsatisfied {
        partition: 0,
        row: 1,
        part: None,
    };
    vec![
        (Step::Synthesis, synthesis(), false),
        (Step::Synthesis, internal(), false),
        (Step::Start, unsatisfied, false),
        (Step::Finish, Error::request("a", "b", "c"), false),
    ]
}

#[test]
fn another_device_is_tried_and_in_the_end_the_cpu() {
    // The devices, those that failed before the first, and where normal and critical
    // partitions go then.
    type Row<'a> = (&'a [DeviceView], &'a [usize], [Route; 2]);
    let table: &[Row<'_>] = &[
        // One device, trusted or not: nothing is left but the CPU.
        (&[GPU], &[], [RETRY, CRITICAL]),
        (&[OUT], &[], [RETRY, CRITICAL]),
        (&[RESTED], &[], [RETRY, CRITICAL]),
        (&[CPU], &[], [RETRY, CRITICAL]),
        // A second device that is trusted takes both.
        (&[GPU, GPU], &[], [COMMON, CRITICAL]),
        (&[OUT, GPU], &[], [COMMON, CRITICAL]),
        (&[OUT, CPU], &[], [COMMON, CRITICAL]),
        // One on probation takes what is not critical.
        (&[OUT, RESTED], &[], [COMMON, CRITICAL]),
        (&[OUT, OUT], &[], [RETRY, CRITICAL]),
        // Nothing is proved twice at the same place.
        (&[GPU, GPU], &[1], [RETRY, CRITICAL]),
        (&[GPU, GPU, GPU], &[1], [COMMON, CRITICAL]),
        // Slot 1 is the critical worker's, slot 2 the retry worker's.
        (&[GPU], &[1], [RETRY, RETRY]),
        (&[GPU], &[2], [Route::Settle, CRITICAL]),
        (&[GPU], &[1, 2], [Route::Settle, Route::Settle]),
        // The critical worker has failed it, and a device is left: by the critical worker's
        // hands to a GPU, by the common workers' to the CPU.
        (&[OUT, GPU], &[2], [COMMON, CRITICAL]),
        (&[CPU, CPU], &[2], [COMMON, COMMON]),
        // None of the devices may take a critical partition, and the worker has failed it.
        (&[OUT, RESTED], &[2], [COMMON, RETRY]),
    ];
    for (step, error, is_checked) in retried() {
        for (devices, excluded, expected) in table {
            let routes = routes((step, &error, is_checked), devices, excluded);
            assert_eq!(routes, *expected, "{error}: {devices:?} but {excluded:?}");
        }
    }
}

#[test]
fn a_failure_of_the_input_ends_the_job() {
    for (step, error, is_checked) in settled() {
        let failure = (step, &error, is_checked);
        for devices in [&[GPU, GPU][..], &[CPU], &[OUT]] {
            assert_eq!(routes(failure, devices, &[]), [Route::Settle; 2], "{error}");
        }
        assert_eq!(recorded(failure), Record::Nothing, "{error}");
    }
}

#[test]
fn a_rejected_proof_has_its_statement_checked_first() {
    let error = rejected();
    let failure = (Step::Finish, &error, false);
    let check = [Lane::Common, Lane::Critical].map(Route::RequeueForCheck);
    for devices in [&[GPU, GPU][..], &[CPU], &[OUT]] {
        assert_eq!(routes(failure, devices, &[]), check);
    }
    assert_eq!(recorded(failure), Record::Nothing);
}

#[test]
fn only_a_device_that_failed_is_at_fault() {
    let record_of = |step, error: Error| recorded((step, &error, true));
    let table = [
        (
            Record::Fault(Fault::Error),
            record_of(Step::Start, backend(Culprit::Device)),
        ),
        (
            Record::TooLarge,
            record_of(Step::Start, backend(Culprit::Size)),
        ),
        (
            Record::Nothing,
            record_of(Step::Start, backend(Culprit::Input)),
        ),
        (
            Record::Fault(Fault::Rejected),
            record_of(Step::Finish, rejected()),
        ),
        (
            Record::Fault(Fault::Panic),
            record_of(Step::Finish, internal()),
        ),
        (Record::Silence, record_of(Step::Finish, stalled())),
        (
            Record::Fault(Fault::Error),
            record_of(Step::Start, synthesis()),
        ),
        (Record::Nothing, record_of(Step::Synthesis, synthesis())),
    ];
    for (row, (expected, got)) in table.into_iter().enumerate() {
        assert_eq!(expected, got, "row {row}");
    }
}
