//! One proof: staged, run, finished.
//!
//! Invariant: a proof's witness and circuit are those with which it was staged.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use blst::{blst_p1, blst_p2};
use blstrs::{G1Projective, G2Projective};
use cuzk_memory::Checkpoint;
use group::Group;

use super::DeviceCircuit;
use super::arrays::WitnessSource;
use super::intermediates::{Intermediates, RawIntermediates};
use super::objects;
use crate::abi;
use crate::bindings as sys;
#[cfg(doc)]
use crate::status::Code;
use crate::status::Status;

/// A proof, in any state.
pub(crate) struct Proof {
    object: objects::Proof,
    circuit: Arc<DeviceCircuit>,
    /// False if the MSM in G2 is the caller's where the device does not make it.
    host_b_g2: bool,
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof").finish_non_exhaustive()
    }
}

impl Proof {
    /// Runs the proof. C++ knows the next step, and refuses any other.
    pub(crate) fn run(
        &self,
        b_g1: bool,
        intermediates: Option<&mut RawIntermediates>,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<ProofFigures, Status> {
        let wanted = [b_g1, self.host_b_g2];
        let figures = self.object.run(wanted, intermediates, checkpoint)?;
        Ok(ProofFigures::of(&figures))
    }

    /// Finishes the proof, under the same condition.
    pub(crate) fn finish(
        &self,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(DeviceSums, ProofFigures), Status> {
        let (sums, figures) = self.object.finish(checkpoint)?;
        let sums = DeviceSums {
            h: g1(&sums.h),
            l: g1(&sums.l),
            a: g1(&sums.a),
            b_g1: g1(&sums.b_g1),
            b_g2: g2(&sums.b_g2),
        };
        Ok((sums, ProofFigures::of(&figures)))
    }
}

/// A proof whose witness is on its way to the device.
#[derive(Debug)]
#[must_use = "it occupies a worker of its device"]
pub struct StagedProof(Proof);

impl StagedProof {
    /// Leaves the MSM in G2 to the caller, unless the device makes it: b_g2_msm does not
    /// run. [`DeviceSums::b_g2`] is the identity then.
    pub fn leaving_b_g2(mut self) -> Self {
        self.0.host_b_g2 = false;
        self
    }

    /// Runs the device region under the device's lock, and starts b_g2_msm. If `b_g1`,
    /// the MSM over B in G1 is computed, and its points are streamed. `checkpoint` is asked
    /// as in [`DeviceCircuit::stage`], also while the lock is waited for.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`], [`Code::InvalidPoint`], [`Code::DeviceLost`],
    /// [`Code::DeviceStalled`] or another failure of the device.
    pub fn run(self, b_g1: bool, checkpoint: &Checkpoint<'_>) -> Result<RanProof, Status> {
        let figures = self.0.run(b_g1, None, checkpoint)?;
        Ok(RanProof {
            proof: self.0,
            figures,
        })
    }

    /// Runs the proof like [`Self::run`], and returns the vectors between the witness
    /// and the MSMs, for a comparison with another prover. For this proof only, pinned
    /// memory is taken for three vectors of the domain's length. They are copied while
    /// the lock is held.
    ///
    /// # Errors
    ///
    /// Those of [`Self::run`]; also [`Code::OutOfMemory`], and [`Code::DeviceError`] if
    /// a value of h is not in the field.
    pub fn run_inspected(
        self,
        b_g1: bool,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<(RanProof, Intermediates), Status> {
        let mut raw = RawIntermediates::new(self.0.circuit.circuit.domain_len());
        let figures = self.0.run(b_g1, Some(&mut raw), checkpoint)?;
        let ran = RanProof {
            proof: self.0,
            figures,
        };
        Ok((ran, raw.read()?))
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn proof(&self) -> &Proof {
        &self.0
    }
}

/// A proof whose device region has ended.
#[derive(Debug)]
#[must_use = "its sums are not taken"]
pub struct RanProof {
    proof: Proof,
    figures: ProofFigures,
}

/// The five MSMs of a proof, without the terms of the key itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceSums {
    /// Over H.
    pub h: G1Projective,
    /// Over L.
    pub l: G1Projective,
    /// Over A.
    pub a: G1Projective,
    /// Over B, in G1; the identity if it was not requested.
    pub b_g1: G1Projective,
    /// Over B, in G2; the identity if it is the caller's.
    pub b_g2: G2Projective,
}

/// The times and bytes of a proof.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProofFigures {
    /// Time waiting for a free worker, and for the circuit's upload to the device.
    pub worker_wait_ms: f64,
    /// Time waiting for the device's lock.
    pub lock_wait_ms: f64,
    /// The time at which the lock was taken.
    pub locked_at: Instant,
    /// The time for which it was held. Only one proof holds a device's lock at a time.
    pub region: Duration,
    /// Time of the evaluation and the transforms, on the device.
    pub quotient_ms: f64,
    /// Time of the MSMs, on the device.
    pub sums_ms: f64,
    /// Time of the MSM in G2 on the CPU; 0 if it ran on the device.
    pub b_g2_ms: f64,
    /// The bytes of the witness.
    pub uploaded_bytes: u64,
    /// The bytes of the points that are not resident.
    pub streamed_bytes: u64,
}

/// Converts a time of C++'s clock. Both languages read the machine's monotonic clock,
/// so their times differ by one number, which is taken once per process. So the order
/// of times is kept.
fn instant(cpp_ns: u64) -> Instant {
    static READ: OnceLock<(Instant, u64)> = OnceLock::new();
    let read = || (Instant::now(), abi::clock_ns());
    let &(instant, ns) = READ.get_or_init(read);
    let since = Duration::from_nanos(cpp_ns.saturating_sub(ns));
    let before = Duration::from_nanos(ns.saturating_sub(cpp_ns));
    (instant + since).checked_sub(before).unwrap_or(instant)
}

impl ProofFigures {
    fn of(figures: &sys::cuzk_proof_figures) -> Self {
        Self {
            worker_wait_ms: figures.worker_wait_ms,
            lock_wait_ms: figures.lock_wait_ms,
            locked_at: instant(figures.locked_at_ns),
            region: Duration::from_nanos(figures.region_ns),
            quotient_ms: figures.quotient_ms,
            sums_ms: figures.sums_ms,
            b_g2_ms: figures.b_g2_ms,
            uploaded_bytes: figures.uploaded_bytes,
            streamed_bytes: figures.streamed_bytes,
        }
    }
}

impl RanProof {
    /// Returns the times and bytes so far.
    #[must_use]
    pub fn figures(&self) -> &ProofFigures {
        &self.figures
    }

    /// Waits for b_g2_msm, or until `checkpoint` is cancelled.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`], or the failure of b_g2_msm, such as [`Code::InvalidPoint`].
    pub fn finish(self, checkpoint: &Checkpoint<'_>) -> Result<(DeviceSums, ProofFigures), Status> {
        self.proof.finish(checkpoint)
    }

    #[cfg(feature = "test-hooks")]
    pub(crate) fn proof(&self) -> &Proof {
        &self.proof
    }
}

fn g1(point: &blst_p1) -> G1Projective {
    let mut sum = G1Projective::identity();
    *sum.as_mut() = *point;
    sum
}

fn g2(point: &blst_p2) -> G2Projective {
    let mut sum = G2Projective::identity();
    *sum.as_mut() = *point;
    sum
}

impl DeviceCircuit {
    /// Waits for a free worker, in the order of the calls. Uploads the circuit if it is
    /// not on the device, and then a witness. `checkpoint` is asked every millisecond or so,
    /// on this thread, if it is cancelled.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`], [`Code::LengthMismatch`], a failure of the device, or
    /// [`Code::InvalidPoint`] if the circuit is uploaded and one of its points is
    /// invalid.
    pub fn stage(
        self: &Arc<Self>,
        witness: Arc<dyn WitnessSource>,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<StagedProof, Status> {
        Ok(StagedProof(Proof {
            object: objects::Proof::stage(Arc::clone(&self.circuit), witness, checkpoint)?,
            circuit: Arc::clone(self),
            host_b_g2: true,
        }))
    }
}
