//! Jobs that outlive the process: what is written to the journal, and what is
//! read from it at the start.
//!
//! Not what happens to them meanwhile, which `book` writes. The invariants: a job with an id is
//! in the journal before its submission returns; and what is read from it is verified
//! again, since a file is not the verifier.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bellperson::groth16::{PreparedVerifyingKey, Proof};
use blstrs::Bls12;
use cuzk_journal::{Accepted, End, JobOptions as Kept, Journal, JournalError, PendingJob, State};
use cuzk_scheduler::priority::{Priority, Rank};

use super::book::{Book, Line};
use super::lanes::unwinding_is_an_error;
use super::registry::Digest;
use super::shared::Shared;
use crate::job::{JobState, NewJob};
use crate::kinds::verify::PARTITION_PROOF_BYTES;
use crate::kinds::{CircuitId, Job};
use crate::verify::{VerifiedProof, verify_partition};
use crate::{Error, Result};

/// How long a job waits before the journal is read again, which opens a file that failed
/// no sooner.
const LOOK: Duration = Duration::from_secs(1);

/// A submission that is to be kept.
pub(super) struct Submission<'a> {
    pub(super) id: &'a str,
    pub(super) digest: Digest,
    pub(super) json: &'a [u8],
    pub(super) job: &'a dyn Job,
    pub(super) priority: Priority,
    pub(super) deadline: Option<Duration>,
}

impl Shared {
    /// Keeps a submission. What an earlier life of the engine proved of it is
    /// returned, verified, and whether the journal has it from this submission.
    pub(super) fn keep(
        &self,
        book: &Book,
        submission: &Submission<'_>,
    ) -> Result<(Vec<(usize, VerifiedProof)>, bool)> {
        book.write_owed();
        let journal = &book.journal;
        let Submission { id, json, job, .. } = *submission;
        let kept = kept_of(submission);
        for _ in 0..2 {
            let accepted = match book.accept(id, &kept, json) {
                // Of what cannot be read nothing can be gone on with.
                Err(JournalError::DamagedJob { .. }) => {
                    journal.forget(id)?;
                    continue;
                }
                Err(JournalError::OtherInput { id }) => return Err(Error::Conflict { id }),
                accepted => accepted?,
            };
            if let Accepted::Attached(State::Ended(End::Done(bytes))) = &accepted {
                let proofs = bytes.chunks(PARTITION_PROOF_BYTES).enumerate();
                let critical = submission.priority == Priority::Critical;
                let verify = |(partition, proof)| {
                    let proof = self.verify_kept(job, critical, partition, proof)?;
                    Ok((partition, proof))
                };
                let verified: Result<Vec<_>> = proofs.map(verify).collect();
                if let Ok(verified) = verified
                    && verified.len() == job.partitions()
                {
                    return Ok((verified, false));
                }
            }
            match accepted {
                // Nobody else's, whichever it is: see [`Book::accept`].
                Accepted::New | Accepted::Attached(State::Pending) => {
                    return Ok((Vec::new(), true));
                }
                // What failed is tried again, and so is a proof that is none.
                Accepted::Attached(State::Ended(_)) => journal.forget(id)?,
            };
        }
        Ok((Vec::new(), false))
    }

    fn verify_kept(
        &self,
        job: &dyn Job,
        critical: bool,
        partition: usize,
        bytes: &[u8],
    ) -> Result<VerifiedProof> {
        let key = self.verifying_key(job.circuit())?;
        self.verify_again(job, critical, partition, bytes, &key)
    }

    /// Verifies a partition's proof that was verified once, elsewhere or with another key.
    pub(super) fn verify_again(
        &self,
        job: &dyn Job,
        critical: bool,
        partition: usize,
        bytes: &[u8],
        key: &PreparedVerifyingKey<Bls12>,
    ) -> Result<VerifiedProof> {
        let rejected = |problem: String| Error::Rejected { partition, problem };
        let proof = Proof::<Bls12>::read(bytes).map_err(|error| rejected(error.to_string()))?;
        let verify = || verify_partition(key, &proof, &job.public_inputs(partition)?, partition);
        self.pool_beside(critical).install(verify)
    }

    /// Takes the jobs that an earlier life of the engine left into the registry,
    /// so that whoever asks for their ids finds them.
    pub(super) fn find_left(&self, book: &Arc<Book>) -> Result<Vec<Left>> {
        let journal = &book.journal;
        let resumable = journal.pending()?;
        for damaged in &resumable.damaged {
            tracing::error!(id = damaged.id, error = %damaged.error, "a job cannot be resumed");
            // So that it can be submitted again.
            journal.forget(&damaged.id)?;
        }
        let left = resumable.jobs.into_iter();
        let left = left.filter_map(|pending| match self.take_in(book, &pending) {
            Some(state) => Some(Left { state, pending }),
            None => {
                tracing::error!(
                    id = pending.id,
                    "a job of another version cannot be resumed; submit it again"
                );
                // Its id would stand for what nobody can ask for, and keep a place.
                book.forget(&pending.id);
                None
            }
        });
        Ok(left.collect())
    }

    fn take_in(&self, book: &Arc<Book>, pending: &PendingJob) -> Option<Arc<JobState>> {
        let (circuit, digest) = parse_kind(&pending.options.kind)?;
        let priority = *Priority::ALL.get(usize::from(pending.options.priority))?;
        let number = self.registry.next_number();
        // So that what waited before the restart has waited, and, whatever the clock was
        // set to meanwhile, no more than none at all.
        let accepted = instant_of(pending.accepted_unix_ms).min(Instant::now());
        let state = Arc::new(JobState::new(NewJob {
            number,
            id: Some(pending.id.clone()),
            circuit,
            partitions: usize::try_from(pending.options.partitions).ok()?,
            priority,
            rank: Rank::new(priority, accepted, number, self.config.jobs.patience),
            accepted,
            deadline: pending.options.deadline_unix_ms.map(instant_of),
            record: Some(Arc::new(Line::new(Arc::clone(book), pending.id.clone()))),
        }));
        self.registry.take(&pending.id, digest, &state);
        self.registry.live(&state);
        Some(state)
    }

    /// Goes on with the jobs that were left, the most urgent first. Those that an engine
    /// that closes has not come to end here, and go on at the next start.
    pub(super) fn resume(&self, book: &Book, mut left: Vec<Left>) {
        left.sort_by_key(|left| left.state.rank());
        for Left { state, pending } in left {
            if self.admission.is_closed() {
                self.end_with(&state, Error::ShuttingDown);
                continue;
            }
            if let Err(error) = self.resume_when_possible(&book.journal, &state, &pending) {
                if !matches!(error, Error::ShuttingDown) {
                    tracing::error!(id = pending.id, %error, "a job cannot be resumed");
                }
                self.end_with(&state, error);
            }
        }
    }

    /// A job of a journal that cannot be read at this moment waits until it can be.
    fn resume_when_possible(
        &self,
        journal: &Journal,
        state: &Arc<JobState>,
        pending: &PendingJob,
    ) -> Result<()> {
        let mut is_told = false;
        loop {
            let resumed = || self.resume_one(journal, state, pending);
            match unwinding_is_an_error("resumption", resumed) {
                Err(Error::Journal(error @ JournalError::Store { .. })) => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::error!(id = pending.id, %error, "a job waits for the journal");
                    }
                }
                resumed => return resumed,
            }
            let is_over = || state.has_ended() || self.admission.is_closed();
            self.bell.wait(LOOK, is_over);
            if state.has_ended() {
                return Ok(());
            }
            if self.admission.is_closed() {
                return Err(Error::ShuttingDown);
            }
        }
    }

    fn resume_one(
        &self,
        journal: &Journal,
        state: &Arc<JobState>,
        pending: &PendingJob,
    ) -> Result<()> {
        let request = journal.request(&pending.id)?;
        let critical = state.rank().is_critical();
        let job = self.decode(critical, || (self.decoder)(&request))?;
        drop(request);
        check_is_same(&*job, state)?;
        for (partition, proof) in &pending.finished {
            let partition = usize::try_from(*partition).unwrap_or(usize::MAX);
            match self.verify_kept(&*job, critical, partition, proof) {
                Ok(proof) => self.restore(state, partition, proof),
                Err(error) => {
                    tracing::warn!(id = pending.id, %error, "a partition is proved again")
                }
            }
        }
        state.set_input(job);
        self.queue_at_once(state)
    }

    /// Reads a request on threads that do nothing else; a panic is an error.
    pub(super) fn decode(
        &self,
        critical: bool,
        decode: impl FnOnce() -> Result<Arc<dyn Job>> + Send,
    ) -> Result<Arc<dyn Job>> {
        let pool = self.pool_beside(critical);
        unwinding_is_an_error("decode", || pool.install(decode))
    }
}

/// The decoder may read the request in another way than when it was accepted.
fn check_is_same(job: &dyn Job, state: &JobState) -> Result<()> {
    let now = (job.circuit(), job.partitions());
    let then = (state.circuit(), state.progress().partitions);
    if now == then {
        return Ok(());
    }
    Err(Error::request(
        "request",
        format!(
            "it was accepted as {} partitions of {} and reads as {} of {}",
            then.1, then.0, now.1, now.0
        ),
        "submit it again",
    ))
}

/// A job that an earlier life of the engine left.
pub(super) struct Left {
    state: Arc<JobState>,
    pending: PendingJob,
}

fn kept_of(submission: &Submission<'_>) -> Kept {
    let deadline = submission.deadline.and_then(|deadline| {
        let at = SystemTime::now().checked_add(deadline)?;
        u64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    });
    Kept {
        kind: kind_of(submission.job.circuit(), submission.digest),
        partitions: u32::try_from(submission.job.partitions()).unwrap_or(u32::MAX),
        priority: submission.priority as u8,
        deadline_unix_ms: deadline,
    }
}

/// The circuit and the digest, in words.
fn kind_of(circuit: CircuitId, digest: Digest) -> Vec<u8> {
    let CircuitId { kind, sector_size } = circuit;
    let digest = blake3::Hash::from_bytes(digest).to_hex();
    format!("{kind} {sector_size} {digest}").into_bytes()
}

fn parse_kind(kind: &[u8]) -> Option<(CircuitId, Digest)> {
    let mut words = std::str::from_utf8(kind).ok()?.split(' ');
    let circuit = CircuitId {
        kind: words.next()?.parse().ok()?,
        sector_size: words.next()?.parse().ok()?,
    };
    let digest = blake3::Hash::from_hex(words.next()?).ok()?;
    words.next().is_none().then_some((circuit, digest.into()))
}

/// Of the process's clock; this moment, if that does not reach so far.
fn instant_of(unix_ms: u64) -> Instant {
    let (now, now_unix) = (Instant::now(), SystemTime::now());
    let at = UNIX_EPOCH + Duration::from_millis(unix_ms);
    let instant = match at.duration_since(now_unix) {
        Ok(left) => now.checked_add(left),
        Err(gone) => now.checked_sub(gone.duration()),
    };
    instant.unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{ProofKind, SectorSize};

    #[test]
    fn instants_are_as_far_from_now_as_they_were() {
        const FAR_S: u64 = 60;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let unix_ms = |s: u64| u64::try_from(now.as_millis()).unwrap() + s * 1000;
        let before = Instant::now();
        let [past, later] = [unix_ms(0) - FAR_S * 1000, unix_ms(FAR_S)].map(instant_of);
        let after = Instant::now();
        let far = Duration::from_secs(FAR_S);
        // Milliseconds are cut off.
        let near = Duration::from_millis(2);
        assert!(past + far + near >= before && past + far <= after);
        assert!(later + near >= before + far && later <= after + far);
        // Wherever that is, it is not over.
        assert!(instant_of(u64::MAX) >= after);
    }

    #[test]
    fn what_a_job_proves_reads_back() {
        for kind in ProofKind::ALL {
            for sector_size in SectorSize::ALL {
                let circuit = CircuitId { kind, sector_size };
                let text = kind_of(circuit, [7; 32]);
                assert_eq!(parse_kind(&text), Some((circuit, [7; 32])));
                assert_eq!(parse_kind(&text[..text.len() - 1]), None);
                assert_eq!(parse_kind(&[&text[..], b" more"].concat()), None);
            }
        }
        assert_eq!(parse_kind(b""), None);
        assert_eq!(parse_kind(&[0xff; 80]), None);
    }
}
