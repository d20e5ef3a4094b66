//! What becomes of a partition that a device failed to prove.
//!
//! The invariants: a false statement is told to the caller and blames no device; a
//! circuit that does not fit and parameters that nobody can use blame none either;
//! everything else is tried again on a station that has not failed it, in the
//! end on the CPU, and is told to the caller only when that failed too; a device
//! that fails too often gets no more work until it has shown that it is good again.

use cuzk_scheduler::admission::{Lane, Ticket};
use cuzk_scheduler::health::Trial;
use rayon::ThreadPool;

use super::shared::Shared;
use super::stations::Station;
use super::task::{Admitted, Ready, Rejected, Task};
use crate::kinds::WitnessContext;
use crate::metrics::{self, Fault};
use crate::{Culprit, Error, Result};

impl Shared {
    /// `station` proved a partition.
    pub(super) fn went_well(&self, station: usize, here: &Station, task: &mut Task) {
        match task.trial.take().map(Trial::passed) {
            Some(true) => self.is_back(station),
            Some(false) => {}
            None => here.health.good(),
        }
    }

    /// `station` failed to prove a partition.
    pub(super) fn failed(&self, station: usize, task: Task, ticket: Ticket, error: Error) {
        if task.state.has_ended() {
            return;
        }
        if error.is_input() {
            self.settle(&task, Err(error));
            return;
        }
        if matches!(error, Error::Rejected { .. }) {
            self.suspect(station, task, ticket, error);
        } else {
            self.blame(station, &task, ticket, error);
        }
    }

    /// Whether the statement is false is seen in a witness of it, and that takes memory,
    /// which the partition has given back: it waits for it again.
    fn suspect(&self, station: usize, mut task: Task, ticket: Ticket, error: Error) {
        let lane = if task.is_critical() {
            Lane::Critical
        } else {
            Lane::Common
        };
        let again = Task {
            trial: task.trial.take(),
            rejected: Some(Rejected { station, error }),
            ..task.again()
        };
        self.put_back(lane, ticket, again);
    }

    /// A partition with the memory that it takes to prove it, unless its proof was
    /// rejected: then it is seen whether the statement is to blame, or the station.
    pub(super) fn acquitted(&self, mut admitted: Admitted, pool: &ThreadPool) -> Option<Admitted> {
        let Some(Rejected { station, error }) = admitted.task.rejected.take() else {
            return Some(admitted);
        };
        match pool.install(|| self.false_statement(&admitted)) {
            Some(error) => self.settle(&admitted.task, Err(error)),
            None => self.blame(station, &admitted.task, admitted.ticket, error),
        }
        None
    }

    /// `station` is at fault, unless it was given what it cannot prove.
    fn blame(&self, station: usize, task: &Task, ticket: Ticket, error: Error) {
        tracing::warn!(station, partition = task.partition, %error, "a partition has to be proved again");
        match culprit_of(&error) {
            Culprit::Device => {
                metrics::device_fault(station, fault_of(&error));
                let at_fault = self.stations.get(station);
                if at_fault.is_some_and(|at_fault| at_fault.health.fault(&error.to_string())) {
                    self.quarantined(station);
                }
            }
            Culprit::Size => self.stations.is_too_small(station, task.state.circuit()),
            Culprit::Input => {}
        }
        self.retry(station, task.again(), ticket, error);
    }

    /// The device of `station` does not answer, and is out at once.
    pub(super) fn give_up(&self, station: usize, problem: &str) {
        if let Some(station) = self.stations.get(station) {
            station.health.silent(problem);
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

    /// The device of `station` is trusted again.
    fn is_back(&self, station: usize) {
        tracing::info!(station, "the device is back at work");
        metrics::device_quarantined(station, false);
        self.ready.wake();
    }

    /// Trusts a device again because somebody says so.
    pub(super) fn reinstate(&self, device: usize) -> Result<()> {
        let devices = self.stations.devices();
        let refused = |problem: String| {
            let advice = "name a device of the engine's status that has answered";
            Error::request("device", problem, advice)
        };
        let Some(station) = devices.get(device) else {
            return Err(refused(format!(
                "expected an index below {}, got {device}",
                devices.len()
            )));
        };
        let was_out = !station.health.is_trusted();
        if !station.reinstate() {
            return Err(refused(format!("device {device} still owes an answer")));
        }
        if was_out {
            self.is_back(device);
        }
        Ok(())
    }

    /// Puts the partition where it can still be proved, if there is such a place.
    pub(super) fn retry(&self, station: usize, mut task: Task, ticket: Ticket, error: Error) {
        task.tried.push(station);
        match self.stations.lane_for(&task) {
            Some(lane) => self.put_back(lane, ticket, task),
            None => self.settle(&task, Err(error)),
        }
    }

    /// What no device is left for goes to the CPU.
    pub(super) fn leave_no_device_behind(&self) {
        let stays = |ready: &Ready| self.stations.has_device_for(&ready.task);
        for ready in self.ready.retain(stays) {
            self.to_the_cpu(ready.ticket, &ready.task);
        }
    }

    /// Puts a partition where no device is needed.
    pub(super) fn to_the_cpu(&self, ticket: Ticket, task: &Task) {
        let lane = if task.is_critical() {
            Lane::Critical
        } else {
            Lane::Retry
        };
        self.put_back(lane, ticket, task.again());
    }

    /// Whether the statement is false: then no device can prove it, and the first
    /// row says what is wrong.
    fn false_statement(&self, admitted: &Admitted) -> Option<Error> {
        let Admitted { task, circuit, .. } = admitted;
        let (input, partition) = (task.state.input()?, task.partition);
        let memory = self.buffers.witness_memory();
        let context = WitnessContext {
            memory: &memory,
            ..self.config.cpu.isa.into()
        };
        let witness = match input.witness_in(partition, context) {
            // Nobody can say then.
            Err(error @ Error::NoMemory(_)) => return Some(error),
            witness => witness.ok()?,
        };
        let row = circuit.first_bad_row(&witness).ok()??;
        Some(Error::Unsatisfied { partition, row })
    }
}

fn culprit_of(error: &Error) -> Culprit {
    match error {
        Error::Backend { culprit, .. } => *culprit,
        _ => Culprit::Device,
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
