//! The costs of a kind of proof on a machine: of a constraint, a point, a byte.
//!
//! Not the costs of running it beside other work: each is the cost alone. The contention
//! is [`crate::contention`]'s.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;

/// The costs of one kind. *Thread time* is the time of all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KindCosts {
    /// Thread time of the witness and the evaluation, in ns a constraint.
    pub synthesis_thread_ns_per_constraint: f64,
    /// The threads that synthesis keeps busy, in the mean. 0 is all.
    pub synthesis_threads: f64,
    /// Memory traffic of synthesis, in bytes a constraint.
    pub synthesis_bytes_per_constraint: f64,
    /// Thread time of the preparation before the device's lock, in ns a constraint.
    pub preparation_thread_ns_per_constraint: f64,
    /// Memory traffic of the preparation, in bytes a constraint.
    pub preparation_bytes_per_constraint: f64,
    /// Bytes a constraint that go to the device before its lock is taken.
    pub transfer_bytes_per_constraint: f64,
    /// Time under the lock of a GPU, in ns a point of the domain.
    pub gpu_kernels_ns_per_point: f64,
    /// Thread time under the lock if the processor is the device, in ns a point. It
    /// contains the MSM in G2.
    pub cpu_kernels_thread_ns_per_point: f64,
    /// The threads that these kernels keep busy, in the mean. 0 is all.
    pub cpu_kernels_threads: f64,
    /// Memory traffic of these kernels, in bytes a point.
    pub cpu_kernels_bytes_per_point: f64,
    /// Thread time of the MSM in G2 beside a GPU, in ns a constraint.
    pub g2_thread_ns_per_constraint: f64,
    /// Time that each thread of that MSM adds, for its buckets, in us.
    pub g2_overhead_us_per_thread: f64,
    /// The buckets of each thread of that MSM, in KiB.
    pub g2_buckets_kib_per_thread: f64,
    /// Time of one thread to finish a partition: assembly and verification, in ms.
    pub finish_ms_per_partition: f64,
    /// Memory that a partition frees at its end, in bytes a constraint.
    pub freed_bytes_per_constraint: f64,
    /// Memory of a partition, in bytes a constraint.
    pub own_bytes_per_constraint: f64,
    /// Memory of the compiled circuit, in bytes a constraint.
    pub circuit_bytes_per_constraint: f64,
    /// The share of the parameter file that is kept in memory, charged: 1 for parameters
    /// that are resident, 0 for mapped ones.
    pub resident_parameters_share: f64,
}

/// The costs of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Costs {
    /// Of PoRep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub porep: Option<KindCosts>,
    /// Of SnapDeals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap_deals: Option<KindCosts>,
    /// Of WindowPoSt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_post: Option<KindCosts>,
    /// Of WinningPoSt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winning_post: Option<KindCosts>,
}

impl Costs {
    /// Returns the costs of a kind, if there are any.
    #[must_use]
    pub fn of(&self, kind: Kind) -> Option<&KindCosts> {
        match kind {
            Kind::Porep => self.porep.as_ref(),
            Kind::SnapDeals => self.snap_deals.as_ref(),
            Kind::WindowPost => self.window_post.as_ref(),
            Kind::WinningPost => self.winning_post.as_ref(),
        }
    }

    /// Sets the costs of a kind.
    pub fn set(&mut self, kind: Kind, costs: KindCosts) {
        let place = match kind {
            Kind::Porep => &mut self.porep,
            Kind::SnapDeals => &mut self.snap_deals,
            Kind::WindowPost => &mut self.window_post,
            Kind::WinningPost => &mut self.winning_post,
        };
        *place = Some(costs);
    }
}
