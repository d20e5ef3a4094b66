//! The faults of a run and their rates.

use std::time::Duration;

use rand::Rng;

use crate::net::{Event, Net};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9` of a worker. It starts again after a while, with nothing in memory.
    KillNode,
    StartNode(usize),
    /// SIGSTOP of a worker, then SIGCONT.
    FreezeNode,
    WakeNode(usize),
    /// A partition stops advancing on a worker.
    HangRun,
    DrainNode,
    KillOwner,
    StartOwner,
    FreezeOwner,
    WakeOwner,
    /// The server stops, and may forget its last messages.
    StopServer,
    StartServer,
    DeleteStreams,
    /// Bytes of another version, or of nobody, among the results.
    Noise,
}

/// The mean times between faults of each kind, in seconds. Zero: never.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) kill_node_s: u64,
    pub(crate) freeze_node_s: u64,
    pub(crate) hang_run_s: u64,
    pub(crate) drain_node_s: u64,
    pub(crate) kill_owner_s: u64,
    pub(crate) freeze_owner_s: u64,
    pub(crate) stop_server_s: u64,
    pub(crate) delete_streams_s: u64,
    pub(crate) noise_s: u64,
    /// The part of the messages that are doubled, late or lost.
    pub(crate) disorder: f64,
    /// Workers that return wrong proofs, only failures, and workers of another version: of
    /// each kind, this many in 20.
    pub(crate) bad_in_20: usize,
}

impl Rates {
    pub(crate) const NONE: Self = Self {
        kill_node_s: 0,
        freeze_node_s: 0,
        hang_run_s: 0,
        drain_node_s: 0,
        kill_owner_s: 0,
        freeze_owner_s: 0,
        stop_server_s: 0,
        delete_streams_s: 0,
        noise_s: 0,
        disorder: 0.0,
        bad_in_20: 0,
    };

    pub(crate) const ALL: Self = Self {
        kill_node_s: 60,
        freeze_node_s: 90,
        hang_run_s: 120,
        drain_node_s: 150,
        kill_owner_s: 250,
        freeze_owner_s: 300,
        stop_server_s: 250,
        delete_streams_s: 400,
        noise_s: 20,
        disorder: 0.02,
        bad_in_20: 1,
    };

    /// A thousand workers have fifty times the faults of twenty. Owner and server are one each,
    /// and `owner_s` is the mean time between two kills of the owner.
    pub(crate) fn large(owner_s: u64) -> Self {
        Self {
            kill_node_s: 2,
            freeze_node_s: 3,
            hang_run_s: 4,
            drain_node_s: 5,
            kill_owner_s: owner_s,
            freeze_owner_s: owner_s * 5 / 4,
            stop_server_s: owner_s * 5 / 4,
            delete_streams_s: owner_s * 2,
            ..Self::ALL
        }
    }

    fn mean_s(&self, fault: Fault) -> u64 {
        match fault {
            Fault::KillNode => self.kill_node_s,
            Fault::FreezeNode => self.freeze_node_s,
            Fault::HangRun => self.hang_run_s,
            Fault::DrainNode => self.drain_node_s,
            Fault::KillOwner => self.kill_owner_s,
            Fault::FreezeOwner => self.freeze_owner_s,
            Fault::StopServer => self.stop_server_s,
            Fault::DeleteStreams => self.delete_streams_s,
            Fault::Noise => self.noise_s,
            _ => 0,
        }
    }

    /// Plans the first fault of each kind.
    pub(crate) fn begin(&self, net: &mut Net) {
        let kinds = [
            Fault::KillNode,
            Fault::FreezeNode,
            Fault::HangRun,
            Fault::DrainNode,
            Fault::KillOwner,
            Fault::FreezeOwner,
            Fault::StopServer,
            Fault::DeleteStreams,
            Fault::Noise,
        ];
        for fault in kinds {
            self.plan(fault, net);
        }
    }

    /// Plans the next fault of a kind.
    pub(crate) fn plan(&self, fault: Fault, net: &mut Net) {
        let mean_s = self.mean_s(fault);
        if mean_s > 0 {
            let unit: f64 = net.rng.gen_range(1e-6..1.0);
            let delay = Duration::from_secs(mean_s).mul_f64(-unit.ln());
            net.after(delay, Event::Fault(fault));
        }
    }
}
