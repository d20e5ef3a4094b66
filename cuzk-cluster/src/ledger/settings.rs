//! The limits and times of a ledger.

use std::time::Duration;

use crate::leases::LEASE;

/// The limits and times of a ledger.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most partitions of one subject in the stream, urgent ones not counted. The others
    /// wait at the owner, so the stream stays small.
    pub window: usize,
    /// The most partitions whose publication the server has not confirmed yet.
    pub publishing_max: usize,
    /// The pause after the server did not confirm a publication.
    pub publish_pause: Duration,
    /// A node that gave no sign of a partition for so long does not run it. It is longer than
    /// a lease, because the server acts first.
    pub silence: Duration,
    /// A partition that fell silent on so many nodes is proved by the owner. It may be what
    /// kills them.
    pub silent_nodes_max: u32,
    /// The time that a result may take after its message was acknowledged. A message that was
    /// acknowledged without a result is published again afterwards.
    pub grace: Duration,
    /// A partition that failed so often is proved by the owner.
    pub failures_max: u32,
    /// A partition that failed on so many nodes is proved by the owner.
    pub failed_nodes_max: usize,
    /// The time in which another node must begin a partition that failed. The owner proves it
    /// otherwise, since there may be no other node.
    pub retry: Duration,
    /// The time in which a node must begin urgent work. The owner proves it, too, otherwise.
    pub urgent_wait: Duration,
    /// A node rests after so many wrong proofs in a row.
    pub node_faults_max: u32,
    /// The length of a node's first rest. Each rest is twice as long as the one before.
    pub node_rest: Duration,
}

impl Settings {
    /// Returns the time in which another node must begin a partition that failed.
    pub(super) fn retry_of(&self, is_urgent: bool) -> Duration {
        match is_urgent {
            true => self.retry.min(self.urgent_wait),
            false => self.retry,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: 4096,
            publishing_max: 64,
            publish_pause: Duration::from_secs(1),
            silence: LEASE + LEASE / 2,
            silent_nodes_max: 3,
            grace: Duration::from_secs(10),
            failures_max: 3,
            failed_nodes_max: 2,
            retry: Duration::from_secs(60),
            urgent_wait: Duration::from_secs(5),
            node_faults_max: 3,
            node_rest: Duration::from_secs(60),
        }
    }
}
