//! The engine's side of its journal: what is written to it, and what could not be.
//!
//! Not the store, which is `cuzk-journal`'s. The invariants: a proof is written before
//! anyone is told, unless the disk fails; an end that could not be written is written
//! when that is possible again, while the engine lives.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuzk_journal::{Accepted, End, JobOptions, Journal, JournalError, Limits, State};

use crate::config::Jobs;
use crate::job::{Outcome, Record};
use crate::verify::VerifiedProof;
use crate::{Error, Result};

/// What a book writes to.
pub(super) trait Store {
    /// As [`Journal::accept`].
    fn accept(&self, id: &str, options: &JobOptions, request: &[u8]) -> Kept<Accepted>;

    /// As [`Journal::end`].
    fn end(&self, id: &str, end: End) -> Kept<()>;

    /// As [`Journal::forget`].
    fn forget(&self, id: &str) -> Kept<bool>;
}

type Kept<T> = std::result::Result<T, JournalError>;

impl Store for Journal {
    fn accept(&self, id: &str, options: &JobOptions, request: &[u8]) -> Kept<Accepted> {
        self.accept(id, options, request)
    }

    fn end(&self, id: &str, end: End) -> Kept<()> {
        self.end(id, end)
    }

    fn forget(&self, id: &str) -> Kept<bool> {
        self.forget(id)
    }
}

/// A journal, and what it is owed.
pub(super) struct Book<S = Journal> {
    pub(super) journal: S,
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
}

impl<S: Store> Book<S> {
    /// Takes out a job that was not accepted after all. If that cannot be written now,
    /// it is owed that the job does not go on at the next start.
    pub(super) fn forget(&self, id: &str) {
        if let Err(error) = self.journal.forget(id) {
            tracing::error!(id, %error, "the journal keeps a job that was refused");
            self.end(id, End::Cancelled);
        }
    }

    /// Accepts a job, unless the journal has an end of its id. What was owed of that is of
    /// no use then: it stands for another attempt, which nobody may end who still has the
    /// other's end in hand. A line that is pending is of an attempt that is over, since a
    /// live job is found by its id: it gives way, with its priority and its deadline, so
    /// that this one can be taken out again like any other.
    ///
    /// # Errors
    /// As [`Journal::accept`], and [`Journal::forget`]; what was owed still is.
    pub(super) fn accept(&self, id: &str, options: &JobOptions, request: &[u8]) -> Kept<Accepted> {
        let mut owed = self.lock_owed();
        let of_this = owed
            .extract_if(.., |(owed, _)| owed == id)
            .collect::<Vec<_>>();
        drop(owed);
        let mut accepted = self.journal.accept(id, options, request);
        if let Ok(Accepted::Attached(State::Pending)) = accepted {
            let forgotten = self.journal.forget(id);
            accepted = forgotten.and_then(|_| self.journal.accept(id, options, request));
        }
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
fn told(id: &str, written: &Kept<()>) {
    if let Err(error) = written {
        tracing::error!(id, %error, "the journal does not know of this job's progress");
    }
}

impl Record for Line {
    fn partition(&self, partition: usize, proof: &VerifiedProof) {
        let partition = u32::try_from(partition).unwrap_or(u32::MAX);
        let journal = &self.book.journal;
        // One that is there already was verified with parameters that were replaced.
        match journal.finish_partition(&self.id, partition, proof.as_bytes()) {
            // The job's end was written meanwhile, and has this proof in it.
            Err(JournalError::Ended { .. }) => {}
            written => told(&self.id, &written),
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// A store that can be broken, and says what was written.
    #[derive(Default)]
    struct Paper {
        is_broken: Mutex<bool>,
        written: Mutex<Vec<String>>,
        pending: Mutex<BTreeSet<String>>,
        /// Whoever writes an end tells here that it has begun, and waits until it may go
        /// on.
        holds_up: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    }

    impl Paper {
        fn write(&self, line: String) -> Kept<()> {
            if *self.is_broken.lock().unwrap() {
                let what = "the disk is full".to_owned();
                return Err(JournalError::Store { what });
            }
            self.written.lock().unwrap().push(line);
            Ok(())
        }
    }

    impl Store for Paper {
        // To be attached to nothing need be written.
        fn accept(&self, id: &str, _: &JobOptions, _: &[u8]) -> Kept<Accepted> {
            if self.pending.lock().unwrap().contains(id) {
                return Ok(Accepted::Attached(State::Pending));
            }
            self.write(format!("accept {id}"))?;
            self.pending.lock().unwrap().insert(id.to_owned());
            Ok(Accepted::New)
        }

        fn end(&self, id: &str, end: End) -> Kept<()> {
            if let Some((began, goes_on)) = self.holds_up.lock().unwrap().take() {
                began.send(()).unwrap();
                goes_on.recv().unwrap();
            }
            self.write(format!("end {id} {end:?}"))?;
            self.pending.lock().unwrap().remove(id);
            Ok(())
        }

        fn forget(&self, id: &str) -> Kept<bool> {
            self.write(format!("forget {id}"))?;
            Ok(self.pending.lock().unwrap().remove(id))
        }
    }

    impl Book<Paper> {
        fn blank() -> Self {
            let (journal, owed) = Default::default();
            Self { journal, owed }
        }

        fn broken(&self, is_broken: bool) {
            *self.journal.is_broken.lock().unwrap() = is_broken;
        }

        fn written(&self) -> Vec<String> {
            self.journal.written.lock().unwrap().clone()
        }

        fn accept_blank(&self, id: &str) -> Kept<Accepted> {
            self.accept(id, &JobOptions::default(), b"")
        }
    }

    #[test]
    fn what_cannot_be_forgotten_does_not_go_on() {
        let book = Book::blank();
        book.forget("a");
        book.broken(true);
        book.forget("b");
        book.write_owed();
        assert_eq!(book.written(), ["forget a"]);
        book.broken(false);
        for _ in 0..2 {
            book.write_owed();
            assert_eq!(book.written(), ["forget a", "end b Cancelled"]);
        }
    }

    #[test]
    fn an_end_that_is_owed_is_not_the_next_attempts() {
        let book = Book::blank();
        book.broken(true);
        book.end("a", End::Failed("the first".to_owned()));
        book.end("b", End::Cancelled);
        // A submission that is not kept changes nothing.
        assert!(book.accept_blank("a").is_err());
        assert_eq!(book.lock_owed().len(), 2);
        book.broken(false);
        book.accept_blank("a").unwrap();
        book.write_owed();
        assert_eq!(book.written(), ["accept a", "end b Cancelled"]);
    }

    /// The first attempt is over, which nobody could write: its line is still pending.
    #[test]
    fn an_attempt_after_one_that_is_pending_has_a_line_of_its_own() {
        let book = Book::blank();
        book.accept_blank("a").unwrap();
        book.broken(true);
        book.end("a", End::Failed("the first".to_owned()));
        // What cannot be written is not accepted, and the first is not to go on.
        assert!(book.accept_blank("a").is_err());
        assert_eq!(book.lock_owed().len(), 1);
        book.broken(false);
        assert_eq!(book.accept_blank("a").unwrap(), Accepted::New);
        assert!(book.lock_owed().is_empty());
        assert_eq!(book.written(), ["accept a", "forget a", "accept a"]);
    }

    /// The other thread has taken the end out of what is owed, and not written it yet.
    #[test]
    fn nobody_is_accepted_while_an_earlier_end_is_on_its_way() {
        let book = Book::blank();
        book.broken(true);
        book.end("a", End::Cancelled);
        book.broken(false);
        let (began, has_begun) = channel();
        let (go_on, goes_on) = channel();
        *book.journal.holds_up.lock().unwrap() = Some((began, goes_on));
        thread::scope(|scope| {
            scope.spawn(|| book.write_owed());
            has_begun.recv().unwrap();
            scope.spawn(|| book.accept_blank("a").unwrap());
            // Time enough for it to come too early.
            thread::sleep(Duration::from_millis(50));
            go_on.send(()).unwrap();
        });
        assert_eq!(book.written(), ["end a Cancelled", "accept a"]);
    }
}
