//! The calls of a place elsewhere into the engine.
//!
//! Not the place, which is behind [`Elsewhere`]. The invariants:
//!
//! * A proof that others made is verified here before anything is done with it.
//! * The first verified proof of a partition counts, and later ones are dropped.
//! * A call about a partition that has ended has no effect. A call never keeps the engine
//!   alive beyond its own time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cuzk_filecoin::Statement;
use cuzk_groth16::backend::Device;
use cuzk_groth16::verify::VerifiedProof;
use rayon::ThreadPool;

use super::core::Core;
use super::dispatch::share;
use super::elsewhere::{Elsewhere, PartitionId};
use super::entrance::may_go;
use super::reverify::{ProofKey, verify_again};
use super::workers::begin;
use super::{Decoder, Engine};
use crate::config::Config;
use crate::job::{JobState, Place};
use crate::panics::catch_panic;
use crate::timeline::{Lane, Stage};
use crate::{Error, Result};

/// The way of a place elsewhere into an engine. It does not keep the engine alive.
#[derive(Clone, Debug)]
pub struct Remote(Weak<Core>);

/// Keeps the state of an engine until it is dropped, but no thread of it. For callers of a
/// [`Remote`] that hold a lock, which the end of the engine may need.
#[must_use]
pub struct EngineState {
    _core: Arc<Core>,
}

/// The reason for which a partition is to be proved here after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveBack {
    /// Nobody else has it.
    Free,
    /// Others have failed to prove it. Its statement is checked before it is proved.
    Failed,
}

/// A verified proof that others made.
pub struct RemoteProof {
    proof: VerifiedProof,
    key: ProofKey,
}

impl std::fmt::Debug for EngineState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineState").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RemoteProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteProof").finish_non_exhaustive()
    }
}

impl Remote {
    /// Starts an engine whose partitions can be proved elsewhere, too, at the place that
    /// `place` returns. The other arguments are those of [`Engine::start_with`].
    ///
    /// # Errors
    /// As [`Engine::start_with`], and the error of `place`.
    pub fn start_engine(
        config: Config,
        pool: Arc<ThreadPool>,
        devices: Vec<Device>,
        decoder: Decoder,
        place: impl FnOnce(Self) -> Result<Arc<dyn Elsewhere>>,
    ) -> Result<Engine> {
        let core = Arc::new(Core::new(config, pool, devices, decoder)?);
        core.outside.set(place(Self(Arc::downgrade(&core)))?);
        share(&core.dispatch);
        begin(core)
    }

    /// Returns the way into an engine without threads.
    #[cfg(test)]
    pub(super) fn of(core: &Arc<Core>) -> Self {
        Self(Arc::downgrade(core))
    }

    /// Returns the state of the engine; none if it has ended.
    pub fn engine(&self) -> Option<EngineState> {
        let core = self.0.upgrade()?;
        Some(EngineState { _core: core })
    }

    /// Returns the statement of a partition; none if nothing more is to be done for it.
    #[must_use]
    pub fn statement(&self, id: PartitionId) -> Option<Arc<dyn Statement>> {
        let (_, job) = self.open(id)?;
        job.input()
    }

    /// Notes that others prove a partition. It has no turn here until it is given back,
    /// unless it is to be proved here in any case.
    pub fn begun(&self, id: PartitionId) {
        if let Some((_, job)) = self.open(id) {
            let from = [Place::Here];
            job.places().change(id.partition, &from, Place::Elsewhere);
            if job.places().get(id.partition) == Place::Elsewhere {
                job.live().waits(id.partition, Stage::Elsewhere);
            }
        }
    }

    /// Has a partition proved here, when it has its turn.
    pub fn give_back(&self, id: PartitionId, reason: GiveBack) {
        let Some((core, job)) = self.open(id) else {
            return;
        };
        let (from, to): (&[Place], _) = match reason {
            GiveBack::Free => (&[Place::Elsewhere], Place::Here),
            GiveBack::Failed => (&[Place::Elsewhere, Place::Here], Place::CheckedHere),
        };
        if job.places().change(id.partition, from, to) {
            job.live().waits(id.partition, Stage::QueueWait);
            core.dispatch.admission.wake();
        }
    }

    /// Verifies the bytes of a partition's proof that others made. Blocks for some
    /// milliseconds.
    ///
    /// # Errors
    /// [`Error::Rejected`]; [`Error::Stopped`] for a partition for which nothing more is to
    /// be done; a verifying key that cannot be read.
    pub fn verify(&self, id: PartitionId, bytes: &[u8]) -> Result<RemoteProof> {
        let (core, job) = self.open(id).ok_or(Error::Stopped)?;
        let statement = job.input().ok_or(Error::Stopped)?;
        catch_panic("verification", || {
            let key = ProofKey::newest(&core.assets, job.circuit())?;
            let pool = core.compute.auxiliary_pool(job.is_critical());
            let prepared = key.prepared();
            let proof = verify_again(&*statement, id.partition, bytes, prepared, pool)?;
            Ok(RemoteProof { proof, key })
        })
    }

    /// Gives a partition the proof that others made. It is in the journal when this returns,
    /// if its job is. `by` names the machine, and `took` is the time that it took.
    pub fn proved(&self, id: PartitionId, proof: RemoteProof, by: &str, took: Duration) {
        let Some((core, job)) = self.open(id) else {
            return;
        };
        let partition = id.partition;
        core.guarded("proof of others", &job, || {
            // The job may have to go on when this was the last attempt of the engine.
            let keep_open = core.dispatch.admission.keep_open();
            job.places().set(partition, Place::Over);
            core.dispatch.drop_over();
            let now = Instant::now();
            let begun = now.checked_sub(took).unwrap_or(now).max(job.accepted());
            let trace = core.timeline.trace(job.number(), Some(partition));
            trace.between_on(Lane::new(by), Stage::Elsewhere, begun, now);
            core.settle(&job, partition, Ok((proof.proof, proof.key)));
            drop(keep_open);
        });
    }

    /// Returns true if each job of the journal was queued that there is room for, so that
    /// the place has heard of it.
    #[must_use]
    pub fn has_resumed(&self) -> bool {
        let Some(core) = self.0.upgrade() else {
            return true;
        };
        let in_journal = core.jobs.waiting.numbers();
        let is_open = |job: &Arc<JobState>| {
            let waits = in_journal.contains(&job.number()) && !may_go(&core, job);
            !waits && job.input().is_none() && !job.has_ended()
        };
        !core.jobs.registry.all_live().iter().any(is_open)
    }

    /// Returns the engine and the job of a partition that is not over.
    fn open(&self, id: PartitionId) -> Option<(Arc<Core>, Arc<JobState>)> {
        let core = self.0.upgrade()?;
        let job = core.jobs.registry.live(id.job)?;
        let is_open = !job.has_ended() && job.places().get(id.partition) != Place::Over;
        is_open.then_some((core, job))
    }
}
