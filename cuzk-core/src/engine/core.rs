//! The five services of an engine, and the steps that need more than one of them.
//!
//! Not a thread: the loops are in [`super::workers`]. The invariants:
//!
//! * No service calls another. So a thread that holds one service's lock takes another's only in a
//!   closure that it passes, and in the order of the fields below.
//! * An accepted job ends once, and then nothing of it stays in a queue.

use std::sync::Arc;

use cuzk_filecoin::CircuitId;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::Device;
use cuzk_groth16::params::LoadedParams;
use cuzk_groth16::verify::VerifiedProof;
use cuzk_memory::Checkpoint;
use cuzk_scheduler::admission::{Entrance, Lane, Ticket};
use cuzk_scheduler::health::Trial;
use rayon::ThreadPool;

use super::Decoder;
use super::assets::{AssetKey, Assets};
use super::attempt::{Attempt, RejectedProof, SynthesizedAttempt};
use super::compute::Compute;
use super::dispatch::{Dispatcher, limits};
use super::elsewhere::Outside;
use super::fleet::Fleet;
use super::jobs::{Jobs, log_span};
use super::reverify::{ProofKey, verify_again};
use super::route::{self, FailedAt, Failure, Record, Route};
use crate::config::Config;
use crate::error::ErrorCode;
use crate::job::{JobState, Settled};
use crate::metrics::{self, Fault};
use crate::panics::catch_panic;
use crate::timeline::Timeline;
use crate::{Error, Result};

/// What the threads of an engine share. Nothing here is replaced while the engine
/// lives, except that the journal's file is closed with the threads.
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) decoder: Decoder,
    pub(super) timeline: Timeline,
    pub(super) jobs: Jobs,
    pub(super) dispatch: Dispatcher,
    pub(super) fleet: Fleet,
    pub(super) assets: Assets,
    pub(super) compute: Compute,
    pub(super) outside: Outside,
}

impl Core {
    /// # Errors
    /// [`Error::Start`], or that the journal cannot be opened.
    pub(super) fn new(
        config: Config,
        pool: Arc<ThreadPool>,
        devices: Vec<Device>,
        decoder: Decoder,
    ) -> Result<Self> {
        let limits = limits(&config)?;
        let fleet = Fleet::new(&config, devices);
        Ok(Self {
            decoder,
            timeline: fleet.timeline(),
            compute: Compute::new(&config, pool, fleet.throttle(), limits.total_bytes)?,
            assets: Assets::new(&config, &limits, fleet.any_is_this_cpu()),
            jobs: Jobs::new(&config.jobs)?,
            dispatch: Dispatcher::new(&config, limits),
            outside: Outside::default(),
            fleet,
            config,
        })
    }

    /// Accepts nothing more.
    pub(super) fn close(&self) {
        self.dispatch.admission.close();
        self.jobs.notify();
    }

    /// Queues the missing partitions of a job.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::ShuttingDown`].
    pub(super) fn queue(
        &self,
        job: &Arc<JobState>,
        partitions: Vec<usize>,
        entrance: Entrance,
    ) -> Result<()> {
        let excluded = self.fleet.too_small_for(job.circuit());
        let critical = job.is_critical();
        let lane = self.fleet.view().lane(critical, &excluded);
        let lane = lane.unwrap_or(Lane::Common);
        let attempt = |partition| {
            let (charge, need) = self.assets.costs.charge(job.circuit(), lane);
            let attempt = Attempt {
                excluded_devices: excluded.clone(),
                charge,
                ..Attempt::new(Arc::clone(job), partition)
            };
            (attempt, need)
        };
        self.outside.queued(job, &partitions);
        let attempts = partitions.iter().copied().map(attempt).collect();
        let submitted = self.dispatch.submit(entrance, lane, job, attempts);
        if submitted.is_err() {
            self.outside.ended(job, partitions);
        }
        self.drop_if_ended(job);
        submitted
    }

    /// Puts an attempt back into the queue, to be made from its start.
    pub(super) fn requeue(&self, lane: Lane, ticket: Ticket, attempt: Attempt) {
        let (charge, need) = self.assets.costs.charge(attempt.job.circuit(), lane);
        let job = Arc::clone(&attempt.job);
        let attempt = Attempt { charge, ..attempt };
        self.dispatch.put_back(lane, ticket, attempt, need);
        self.drop_if_ended(&job);
    }

    /// To be called after something of a job was queued. The job may have ended just
    /// before, and the queues may have been cleared of it.
    pub(super) fn drop_if_ended(&self, job: &JobState) {
        if job.has_ended() {
            self.dispatch.drop_over();
            self.outside.job_ended(job);
        }
    }

    /// Gives a job the result of one of its partitions. That is a proof with the key that
    /// verified it, or the error that ends the job.
    pub(super) fn settle(
        &self,
        job: &Arc<JobState>,
        partition: usize,
        result: Result<(VerifiedProof, ProofKey)>,
    ) {
        let key = result.as_ref().ok().map(|(_, key)| key.clone());
        let result = result.map(|(proof, key)| (proof, key.loading()));
        let settled = job.settle(partition, result);
        if settled == Settled::Ended {
            self.job_ended(job);
        } else if let Some(key) = key {
            self.outside.ended(job, [partition]);
            if settled == Settled::Mixed {
                self.unite(job, key);
            }
        }
    }

    /// Makes the proofs of a job valid for one key, where parameters were replaced while it
    /// was proved. The newest key decides which proofs hold; the others are made again.
    fn unite(&self, job: &Arc<JobState>, key: ProofKey) {
        let Some(statement) = job.input() else { return };
        let newest = self.assets.loaded_params(job.circuit());
        let key = newest.map_or(key, ProofKey::OfParams);
        let pool = self.compute.auxiliary_pool(job.is_critical());
        let holds = |partition, proof: &VerifiedProof| {
            let bytes = proof.as_bytes();
            verify_again(&*statement, partition, bytes, key.prepared(), pool).is_ok()
        };
        let (settled, missing) = job.unite(key.loading(), holds);
        if settled == Settled::Ended {
            self.job_ended(job);
        } else if !missing.is_empty() {
            tracing::warn!(
                job = job.number(),
                ?missing,
                "the parameters were replaced by another key's while the job was proved; the \
                 partitions that the new key rejects are proved again"
            );
            // The job was accepted before, so it is queued also if the engine is closed.
            if let Err(error) = self.queue(job, missing, Entrance::Again) {
                self.end(job, error);
            }
        }
    }

    /// Gives a job the proof of a partition that an earlier engine made, which was
    /// verified again.
    pub(super) fn restore(&self, job: &Arc<JobState>, partition: usize, proof: VerifiedProof) {
        if job.restore(partition, proof) {
            self.job_ended(job);
        }
    }

    /// Ends a job with an error, unless it has ended. Returns true if this was the end.
    pub(super) fn end(&self, job: &Arc<JobState>, error: Error) -> bool {
        let ended = job.end(Err(Arc::new(error)));
        if ended {
            self.job_ended(job);
        }
        ended
    }

    fn job_ended(&self, job: &Arc<JobState>) {
        self.jobs.note_end(job);
        self.timeline.unfollow(job.number());
        // Its partitions that are paused are to stop.
        self.dispatch.pause.wake();
        self.jobs.notify();
        self.dispatch.drop_over();
        self.outside.job_ended(job);
    }

    /// Carries out what becomes of an attempt that failed. [`route`] decides it.
    pub(super) fn failed(&self, at: FailedAt, mut attempt: Attempt, ticket: Ticket, error: Error) {
        let failure = Failure {
            at,
            error: &error,
            critical: attempt.is_critical(),
            excluded: &attempt.excluded_devices,
        };
        let device = at.device;
        let record = route::record(&failure);
        // The failure of an attempt that nobody needs is of no use, but for a silent device.
        if attempt.is_over() && record != Record::Silence {
            return;
        }
        self.record_failure(device, record, &attempt, &error);
        let route = route::route(&failure, &self.fleet.view());
        let partition = attempt.partition;
        // A check is no new try: what follows it is said instead.
        if matches!(route, Route::Requeue(_)) {
            attempt.log_again(device, &error);
        }
        match route {
            Route::Settle => self.settle(&attempt.job, partition, Err(error)),
            Route::Requeue(lane) => {
                let mut again = attempt.again();
                again.excluded_devices.push(device);
                self.requeue(lane, ticket, again);
            }
            Route::RequeueForCheck(lane) => {
                let again = Attempt {
                    trial: attempt.trial.take(),
                    rejected: Some(RejectedProof { device, error }),
                    ..attempt.again()
                };
                self.requeue(lane, ticket, again);
            }
        }
    }

    fn record_failure(&self, device: usize, record: Record, attempt: &Attempt, error: &Error) {
        let slot = self.fleet.slot(device);
        match record {
            Record::Nothing => {}
            Record::TooLarge => {
                let id = attempt.job.circuit();
                self.fleet.record_too_large(device, id);
            }
            Record::Fault(fault) => {
                metrics::device_fault(device, fault);
                if slot.is_some_and(|slot| slot.health.fault(&error.to_string())) {
                    self.quarantined(device);
                }
            }
            Record::Silence => {
                if let Some(slot) = slot {
                    slot.health.silent(&error.to_string());
                }
                metrics::device_fault(device, Fault::Stall);
                self.quarantined(device);
            }
        }
    }

    fn quarantined(&self, device: usize) {
        tracing::error!(
            device, code = %ErrorCode::Device,
            "the device failed too often and gets no more work; its partitions are proved elsewhere"
        );
        metrics::device_quarantined(device, true);
        self.dispatch.ready.wake();
        self.requeue_stranded();
    }

    /// Notes that a device proved an attempt.
    pub(super) fn proved(&self, device: usize, attempt: &mut Attempt) {
        match attempt.trial.take().map(Trial::passed) {
            Some(true) => self.is_trusted_again(device),
            Some(false) => {}
            None => {
                if let Some(slot) = self.fleet.slot(device) {
                    slot.health.good();
                }
            }
        }
    }

    fn is_trusted_again(&self, device: usize) {
        tracing::info!(device, "the device is back at work");
        metrics::device_quarantined(device, false);
        self.dispatch.ready.wake();
    }

    /// Trusts a device again because an operator says so.
    ///
    /// # Errors
    /// As [`Fleet::reinstate`].
    pub(super) fn reinstate(&self, device: usize) -> Result<()> {
        if self.fleet.reinstate(device)? {
            self.is_trusted_again(device);
        }
        Ok(())
    }

    /// Requeues the attempts that wait for a device while none is left for them.
    pub(super) fn requeue_stranded(&self) {
        let stays = |ready: &SynthesizedAttempt| {
            let attempt = &ready.attempt;
            let view = self.fleet.view();
            view.has_device(attempt.is_critical(), &attempt.excluded_devices)
        };
        for ready in self.dispatch.take_ready_unless(stays) {
            self.requeue_without_device(ready.ticket, &ready.attempt);
        }
    }

    /// Requeues an attempt for a worker that needs no device.
    pub(super) fn requeue_without_device(&self, ticket: Ticket, attempt: &Attempt) {
        let lane = if attempt.is_critical() {
            Lane::Critical
        } else {
            Lane::Retry
        };
        self.requeue(lane, ticket, attempt.again());
    }

    /// Lets go of an asset that nobody uses, everywhere.
    pub(super) fn evict(&self, key: AssetKey) {
        if let Some(circuit) = self.assets.evict(key) {
            self.fleet.evict(&circuit);
        }
    }

    /// Returns the parameters that a partition which begins now is proved with.
    pub(super) fn params(
        &self,
        id: CircuitId,
        circuit: &Circuit,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<Arc<LoadedParams>> {
        if let Some(replaced) = self.assets.follow_replaced(id, circuit)? {
            self.fleet.evict_params(replaced.mapped());
        }
        self.assets.params(id, circuit, checkpoint)
    }

    /// Frees memory for work that was admitted and takes the blocks `own`, in bytes each.
    /// Memory that others gave away may still be on its way out: that is waited for until
    /// `checkpoint` is cancelled.
    pub(super) fn make_room(&self, own: &[usize], checkpoint: &Checkpoint<'_>) {
        let usage = self.dispatch.admission.usage();
        let free_bytes = usage.total_bytes.saturating_sub(usage.used_bytes);
        self.compute.buffers.make_room(own, free_bytes, checkpoint);
    }

    /// Updates the metrics of memory. To be called when memory was charged, and when a
    /// worker has given some back.
    pub(super) fn report_memory(&self) {
        metrics::memory_reserved(self.dispatch.admission.usage().used_bytes);
        metrics::buffers_kept(self.compute.buffers.kept_bytes());
    }

    /// Runs `work`, which has a partition of this job in hand. A panic ends the job, and
    /// the thread goes on. Log lines that `work` writes name the job.
    pub(super) fn guarded<T>(
        &self,
        stage: &'static str,
        job: &Arc<JobState>,
        work: impl FnOnce() -> T,
    ) -> Option<T> {
        let span = log_span(job.number(), job.id(), job.caller());
        let done = span.in_scope(|| catch_panic(stage, || Ok(work())));
        done.map_err(|error| self.end(job, error)).ok()
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
