//! The engine's side of its journal: what is written, and what could not be yet.
//!
//! Not the store, which is `cuzk-journal`'s. The invariants: a proof is written before
//! anyone is told of it, unless the disk fails; an end that could not be written is
//! written when that is possible again, while the engine lives.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_groth16::verify::VerifiedProof;
use cuzk_journal::{Accepted, End, JobOptions, Journal, JournalError, Limits, Resumable, State};

use crate::config;
use crate::error::ErrorCode;
use crate::job::{Outcome, Record};
use crate::metrics;
#[cfg(test)]
use crate::planted::{Plant, is_planted};
use crate::{Error, Result};

/// A store of jobs that a recorder writes to.
pub(in crate::engine) trait Store: Send + Sync {
    /// As [`Journal::accept`].
    fn accept(&self, id: &str, options: &JobOptions, request: &[u8]) -> StoreResult<Accepted>;

    /// As [`Journal::end`].
    fn end(&self, id: &str, end: End) -> StoreResult<()>;

    /// As [`Journal::forget`].
    fn forget(&self, id: &str) -> StoreResult<bool>;

    /// As [`Journal::finish_partition`].
    fn finish_partition(&self, id: &str, partition: u32, proof: &[u8]) -> StoreResult<()>;

    /// As [`Journal::request`].
    fn request(&self, id: &str) -> StoreResult<Vec<u8>>;

    /// As [`Journal::pending`].
    fn pending(&self) -> StoreResult<Resumable>;
}

/// The jobs that the journal holds at most.
const JOBS_MAX: u64 = 100_000;

/// The length of all requests that the journal holds at most, before compression: over a
/// thousand PoReps of 32 GiB.
const REQUEST_BYTES_MAX: u64 = 64 << 30;

type StoreResult<T> = std::result::Result<T, JournalError>;

impl Store for Journal {
    fn accept(&self, id: &str, options: &JobOptions, request: &[u8]) -> StoreResult<Accepted> {
        self.accept(id, options, request)
    }

    fn end(&self, id: &str, end: End) -> StoreResult<()> {
        self.end(id, end)
    }

    fn forget(&self, id: &str) -> StoreResult<bool> {
        self.forget(id)
    }

    fn finish_partition(&self, id: &str, partition: u32, proof: &[u8]) -> StoreResult<()> {
        self.finish_partition(id, partition, proof)
    }

    fn request(&self, id: &str) -> StoreResult<Vec<u8>> {
        self.request(id)
    }

    fn pending(&self) -> StoreResult<Resumable> {
        self.pending()
    }
}

/// A journal, and the ends that it does not have yet.
pub(in crate::engine) struct JobRecorder<S: ?Sized = dyn Store> {
    /// Ends that could not be written. There are at most as many as jobs in the journal,
    /// since nothing is accepted while nothing can be written.
    unwritten: Mutex<Vec<(String, End)>>,
    pub(in crate::engine) journal: Box<S>,
}

impl JobRecorder {
    /// Opens the journal that the configuration names, if it names one.
    pub(super) fn open(jobs: &config::Jobs) -> Result<Option<Arc<Self>>> {
        let limits = Limits {
            // Jobs may wait here for which the queue has no room: the bytes are the bound.
            jobs_max: JOBS_MAX,
            request_bytes_max: REQUEST_BYTES_MAX,
            results_max: jobs.results_kept as u64,
            result_age: jobs.results_kept_for,
        };
        let open = |path: &Path| {
            let journal = Journal::open(path, limits)?;
            metrics::journal_failing(false);
            Ok::<_, Error>(Arc::new(Self::of(Box::new(journal))))
        };
        jobs.journal.as_deref().map(open).transpose()
    }

    /// Returns a recorder that writes to `journal`.
    pub(in crate::engine) fn of(journal: Box<dyn Store>) -> Self {
        let unwritten = Mutex::default();
        Self { unwritten, journal }
    }
}

impl<S: Store + ?Sized> JobRecorder<S> {
    /// Takes out a job that was not accepted after all. If that cannot be written now, its
    /// cancellation is written later, so that it does not go on at the next start.
    pub(in crate::engine) fn forget(&self, id: &str) {
        if let Err(error) = self.journal.forget(id) {
            let code = ErrorCode::JournalFailing;
            tracing::error!(id, %code, %error, "the journal keeps a job that was refused");
            self.end(id, End::Cancelled);
        }
    }

    /// Accepts a job, unless the journal has an end of its id. An unwritten end of the id is
    /// dropped then: it belongs to an earlier attempt and must not end this one. A pending
    /// row belongs to an attempt that is over, since a live job is found by its id. This job
    /// takes its place, with its own priority and deadline, so that it can be taken out
    /// again like any other.
    ///
    /// # Errors
    /// As [`Journal::accept`] and [`Journal::forget`]; unwritten ends stay unwritten.
    pub(in crate::engine) fn accept(
        &self,
        id: &str,
        options: &JobOptions,
        request: &[u8],
    ) -> StoreResult<Accepted> {
        let mut unwritten = self.lock_unwritten();
        let of_this = unwritten
            .extract_if(.., |(of, _)| of == id)
            .collect::<Vec<_>>();
        #[cfg(test)]
        let of_this = match is_planted(Plant::StaleEnds) {
            true => {
                unwritten.extend(of_this);
                Vec::new()
            }
            false => of_this,
        };
        drop(unwritten);
        let mut accepted = self.journal.accept(id, options, request);
        if let Ok(Accepted::Attached(State::Pending)) = accepted {
            let forgotten = self.journal.forget(id);
            accepted = forgotten.and_then(|_| self.journal.accept(id, options, request));
        }
        note_failing(&accepted);
        #[cfg(test)]
        if is_planted(Plant::AcceptsUnkept) && accepted.is_err() {
            return Ok(Accepted::New);
        }
        if accepted.is_err() {
            self.lock_unwritten().extend(of_this);
        }
        accepted
    }

    /// Writes an end, after those that could not be written before.
    fn end(&self, id: &str, end: End) {
        self.write_unwritten();
        if !self.write(id, &end) {
            #[cfg(test)]
            if is_planted(Plant::ForgetsEnds) {
                return;
            }
            self.lock_unwritten().push((id.to_owned(), end));
        }
    }

    /// Tries once more to write the unwritten ends. It holds their lock meanwhile, which
    /// delays nobody as long as there are none.
    pub(in crate::engine) fn write_unwritten(&self) {
        let mut unwritten = self.lock_unwritten();
        while let Some((id, end)) = unwritten.pop() {
            if !self.write(&id, &end) {
                unwritten.push((id, end));
                break;
            }
        }
    }

    /// Returns true if the end was written, or never can be.
    fn write(&self, id: &str, end: &End) -> bool {
        let written = self.journal.end(id, end.clone());
        log_failure(id, &written);
        !matches!(written, Err(JournalError::Store { .. }))
    }

    fn lock_unwritten(&self) -> MutexGuard<'_, Vec<(String, End)>> {
        self.unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's row in the journal.
pub(in crate::engine) struct JobRecord {
    recorder: Arc<JobRecorder>,
    id: String,
}

impl JobRecord {
    pub(in crate::engine) fn new(recorder: Arc<JobRecorder>, id: String) -> Self {
        Self { recorder, id }
    }
}

/// Notes for operators if the journal can be written.
fn note_failing<T>(written: &StoreResult<T>) {
    metrics::journal_failing(matches!(written, Err(JournalError::Store { .. })));
}

/// Logs that progress could not be written. That costs a restart its time and nothing
/// else: the proof is there.
fn log_failure(id: &str, written: &StoreResult<()>) {
    note_failing(written);
    if let Err(error) = written {
        let code = ErrorCode::JournalFailing;
        tracing::error!(id, %code, %error, "the journal does not know of this job's progress");
    }
}

impl Record for JobRecord {
    fn partition(&self, partition: usize, proof: &VerifiedProof) {
        let partition = u32::try_from(partition).unwrap_or(u32::MAX);
        let journal = &self.recorder.journal;
        // A proof that is there already was verified with parameters that were replaced.
        match journal.finish_partition(&self.id, partition, proof.as_bytes()) {
            // The job's end was written meanwhile, and has this proof in it.
            Err(JournalError::Ended { .. }) => {}
            written => log_failure(&self.id, &written),
        }
    }

    fn end(&self, outcome: &Outcome) {
        let end = match outcome {
            Ok(output) => End::Done(output.as_bytes().to_vec()),
            Err(error) => match &**error {
                // The job goes on at the next start.
                Error::ShuttingDown => return,
                Error::Cancelled => End::Cancelled,
                error => End::Failed(error.to_string()),
            },
        };
        self.recorder.end(&self.id, end);
    }
}

#[cfg(test)]
mod tests;
