//! What becomes of a partition that a device failed to prove.
//!
//! The invariants: a false statement is told to the caller and blames no device;
//! everything else is tried again on a station that has not failed it, in the
//! end on the CPU, and is told to the caller only when that failed too; a device
//! that fails too often gets no more work.

use std::sync::Arc;

use cuzk_scheduler::admission::{Lane, Ticket};

use super::shared::Shared;
use super::task::Task;
use crate::Error;
use crate::metrics::{self, Fault};

impl Shared {
    /// `station` failed to prove a partition.
    pub(super) fn failed(&self, station: usize, task: Task, ticket: Ticket, error: Error) {
        if task.state.has_ended() {
            return;
        }
        if error.is_input() {
            self.settle(&task, Err(error));
            return;
        }
        if matches!(error, Error::Rejected { .. })
            && let Some(error) = self.false_statement(&task)
        {
            self.settle(&task, Err(error));
            return;
        }
        let Some(at_fault) = self.station(station) else {
            return;
        };
        tracing::warn!(station, partition = task.partition, %error, "a partition has to be proved again");
        metrics::device_fault(station, fault_of(&error));
        if at_fault.health.fault(&error.to_string()) {
            self.quarantined(station);
        }
        self.retry(station, task.again(), ticket, error);
    }

    /// The device of `station` is out at once.
    pub(super) fn give_up(&self, station: usize, problem: &str) {
        if let Some(station) = self.station(station) {
            station.health.quarantine(problem);
        }
        metrics::device_fault(station, Fault::Stall);
        self.quarantined(station);
    }

    fn quarantined(&self, station: usize) {
        tracing::error!(
            station,
            "the device failed too often and gets no more work; its partitions are proved elsewhere"
        );
        metrics::device_quarantined(station, true);
        self.ready.wake();
        self.leave_no_device_behind();
    }

    /// Puts the partition where it can still be proved, if there is such a place.
    pub(super) fn retry(&self, station: usize, mut task: Task, ticket: Ticket, error: Error) {
        task.tried.push(station);
        let lane = if self.has_device_for(&task) {
            Lane::Common
        } else if task.tried.contains(&self.retry_station()) {
            self.settle(&task, Err(error));
            return;
        } else {
            Lane::Retry
        };
        let need = self.need(task.state.circuit());
        let state = Arc::clone(&task.state);
        self.admission.put_back(lane, ticket, task, need);
        self.was_queued(&state);
    }

    /// Once no device is left, what was meant for one goes to the CPU.
    pub(super) fn leave_no_device_behind(&self) {
        if self.has_device() {
            return;
        }
        for ready in self.ready.retain(|_| false) {
            let need = self.need(ready.task.state.circuit());
            let (task, ticket) = (ready.task.again(), ready.ticket);
            self.admission.put_back(Lane::Retry, ticket, task, need);
        }
    }

    /// Whether the statement is false: then no device can prove it, and the first
    /// row says what is wrong.
    fn false_statement(&self, task: &Task) -> Option<Error> {
        let input = task.state.input()?;
        let circuit = self.circuit(task.state.circuit()).ok()?;
        let witness = input.witness(task.partition).ok()?;
        let row = circuit.first_bad_row(&witness).ok()??;
        Some(Error::Unsatisfied {
            partition: task.partition,
            row,
        })
    }
}

fn fault_of(error: &Error) -> Fault {
    match error {
        Error::Rejected { .. } => Fault::Rejected,
        Error::Internal { .. } => Fault::Panic,
        Error::Stalled { .. } => Fault::Stall,
        _ => Fault::Error,
    }
}
