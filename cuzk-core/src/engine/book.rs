//! The engine's side of its journal: what is written to it, and what could not be.
//!
//! Not the store, which is `cuzk-journal`'s. The invariants: a proof is written before
//! anyone is told, unless the disk fails; an end that could not be written is written
//! when that is possible again, while the engine lives.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_journal::{Accepted, End, JobOptions, Journal, JournalError, Limits};

use crate::config::Jobs;
use crate::job::{Outcome, Record};
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// A journal, and what it is owed.
pub(super) struct Book {
    pub(super) journal: Journal,
    /// Ends that could not be written, no more than there are jobs in the journal:
    /// while nothing can be written nothing is accepted.
    owed: Mutex<Vec<(String, End)>>,
}

impl Book {
    /// Opens the journal that the configuration names.
    pub(super) fn open(jobs: &Jobs) -> Result<Option<Arc<Self>>> {
        let limits = Limits {
            jobs_max: jobs.queued_partitions as u64,
            results_max: jobs.results_kept as u64,
            result_age: jobs.results_kept_for,
            ..Limits::default()
        };
        let open = |path: &Path| {
            let journal = Journal::open(path, limits)?;
            let owed = Mutex::default();
            Ok::<_, Error>(Arc::new(Self { journal, owed }))
        };
        jobs.journal.as_deref().map(open).transpose()
    }

    /// Takes out a job that was not accepted after all. If that cannot be written now,
    /// it is owed that the job does not go on at the next start.
    pub(super) fn forget(&self, id: &str) {
        if let Err(error) = self.journal.forget(id) {
            tracing::error!(id, %error, "the journal keeps a job that was refused");
            self.end(id, End::Cancelled);
        }
    }

    /// Accepts a job. What was owed of its id is of no use then: it stands for another
    /// attempt, which nobody may end who still has the other's end in hand.
    ///
    /// # Errors
    /// As [`Journal::accept`].
    pub(super) fn accept(
        &self,
        id: &str,
        options: &JobOptions,
        request: &[u8],
    ) -> std::result::Result<Accepted, JournalError> {
        let mut owed = self.lock_owed();
        let of_this = owed
            .extract_if(.., |(owed, _)| owed == id)
            .collect::<Vec<_>>();
        drop(owed);
        let accepted = self.journal.accept(id, options, request);
        if accepted.is_err() {
            self.lock_owed().extend(of_this);
        }
        accepted
    }

    /// Writes an end, after those that could not be written before.
    fn end(&self, id: &str, end: End) {
        self.write_owed();
        if !self.write(id, &end) {
            self.lock_owed().push((id.to_owned(), end));
        }
    }

    /// Tries once more to write what is owed: under its lock, which costs nobody
    /// anything as long as nothing is owed.
    pub(super) fn write_owed(&self) {
        let mut owed = self.lock_owed();
        while let Some((id, end)) = owed.pop() {
            if !self.write(&id, &end) {
                owed.push((id, end));
                break;
            }
        }
    }

    /// Whether it could be written, or never will.
    fn write(&self, id: &str, end: &End) -> bool {
        let written = self.journal.end(id, end.clone());
        told(id, &written);
        !matches!(written, Err(JournalError::Store { .. }))
    }

    fn lock_owed(&self) -> MutexGuard<'_, Vec<(String, End)>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job's line in the journal.
pub(super) struct Line {
    book: Arc<Book>,
    id: String,
}

impl Line {
    pub(super) fn new(book: Arc<Book>, id: String) -> Self {
        Self { book, id }
    }
}

/// What cannot be written costs a restart its time, and nothing else: the proof
/// is there.
fn told(id: &str, written: &std::result::Result<(), JournalError>) {
    if let Err(error) = written {
        tracing::error!(id, %error, "the journal does not know of this job's progress");
    }
}

impl Record for Line {
    fn partition(&self, partition: usize, proof: &VerifiedProof) {
        let partition = u32::try_from(partition).unwrap_or(u32::MAX);
        let journal = &self.book.journal;
        let written = journal.finish_partition(&self.id, partition, proof.as_bytes());
        told(&self.id, &written);
    }

    fn end(&self, outcome: &Outcome) {
        let end = match outcome {
            Ok(output) => End::Done(output.as_bytes().to_vec()),
            Err(error) => match &**error {
                // It goes on at the next start.
                Error::ShuttingDown => return,
                Error::Cancelled => End::Cancelled,
                error => End::Failed(error.to_string()),
            },
        };
        self.book.end(&self.id, end);
    }
}
