//! One durable commit for the changes of several threads.
//!
//! A commit waits for the disk, and most of its cost does not depend on how
//! much is in it. So a change is put in a queue, and whoever gets its turn
//! next commits everything that is queued by then, for all of them.
//!
//! Invariant: a change is answered after the commit it is in is durable. After
//! a commit that failed nothing more is written, because nobody knows what of
//! it is on disk; opening the journal again finds out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _};

use crate::change::{Answer, Change, Step, Totals};
use crate::tables::Tables;
use crate::{JournalError, Limits, Usage};

type Answered = Result<Answer, JournalError>;

/// The only one who writes to the store.
pub(crate) struct Writer {
    /// `None` only while it is being closed.
    database: Option<Database>,
    limits: Limits,
    queue: Mutex<Vec<Arc<Ticket>>>,
    turn: Mutex<Turn>,
    /// As of the last commit; `file_bytes` is not kept here.
    usage: Mutex<Usage>,
}

/// What the thread whose turn it is has to itself.
struct Turn {
    totals: Totals,
    /// Why nothing more is written.
    failed: Option<JournalError>,
}

/// A change that waits for its answer.
#[derive(Debug)]
struct Ticket(Mutex<Place>);

#[derive(Debug)]
enum Place {
    Queued(Change),
    InHand,
    Answered(Answered),
}

impl Writer {
    pub(crate) fn new(database: Database, limits: Limits, totals: Totals, usage: Usage) -> Self {
        Self {
            database: Some(database),
            limits,
            queue: Mutex::default(),
            turn: Mutex::new(Turn {
                totals,
                failed: None,
            }),
            usage: Mutex::new(usage),
        }
    }

    /// The store as of the last commit.
    pub(crate) fn read(&self) -> Result<ReadTransaction, JournalError> {
        self.database()?.begin_read().map_err(JournalError::store)
    }

    fn database(&self) -> Result<&Database, JournalError> {
        self.database.as_ref().ok_or_else(|| JournalError::Store {
            what: "it is closed".to_owned(),
        })
    }

    pub(crate) fn usage(&self) -> Usage {
        *lock(&self.usage)
    }

    /// Makes a change durable, or says why not.
    pub(crate) fn change(&self, change: Change, now_unix_ms: u64) -> Answered {
        let ticket = Arc::new(Ticket(Mutex::new(Place::Queued(change))));
        lock(&self.queue).push(Arc::clone(&ticket));
        let mut turn = lock(&self.turn);
        if let Some(answer) = ticket.answer() {
            return answer;
        }
        let batch = std::mem::take(&mut *lock(&self.queue));
        self.commit(&mut turn, &batch, now_unix_ms);
        ticket.answer().unwrap_or_else(|| {
            Err(JournalError::Store {
                what: "a change was left without an answer".to_owned(),
            })
        })
    }

    /// Takes results that have expired.
    pub(crate) fn expire(&self, now_unix_ms: u64) -> Result<(), JournalError> {
        let mut turn = lock(&self.turn);
        self.commit(&mut turn, &[], now_unix_ms);
        turn.failed.clone().map_or(Ok(()), Err)
    }

    fn commit(&self, turn: &mut Turn, batch: &[Arc<Ticket>], now_unix_ms: u64) {
        let outcome = match &turn.failed {
            Some(error) => Err(error.clone()),
            None => guard(|| self.transact(turn.totals, batch, now_unix_ms)),
        };
        match outcome {
            Ok(committed) => {
                turn.totals = committed.totals;
                *lock(&self.usage) = committed.usage;
                for (ticket, answer) in batch.iter().zip(committed.answers) {
                    ticket.put(answer);
                }
            }
            Err(error) => {
                for ticket in batch {
                    ticket.put(Err(error.clone()));
                }
                turn.failed = Some(error);
            }
        }
    }

    /// All changes of `batch` in one transaction. An error is the store's; a
    /// change that was refused is among the answers.
    fn transact(
        &self,
        mut totals: Totals,
        batch: &[Arc<Ticket>],
        now_unix_ms: u64,
    ) -> Result<Committed, JournalError> {
        let transaction = self
            .database()?
            .begin_write()
            .map_err(JournalError::store)?;
        let mut tables = Tables::open(&transaction)?;
        let mut step = Step {
            tables: &mut tables,
            totals: &mut totals,
            limits: &self.limits,
            now_unix_ms,
        };
        let mut changed = step.expire()?;
        let mut answers = Vec::with_capacity(batch.len());
        for ticket in batch {
            let answer = match ticket.take() {
                Some(change) => step.apply(change),
                None => Err(JournalError::Store {
                    what: "a change was queued twice".to_owned(),
                }),
            };
            match answer {
                Err(error @ JournalError::Store { .. }) => return Err(error),
                answer => {
                    changed |= writes(&answer);
                    answers.push(answer);
                }
            }
        }
        changed |= step.expire()?;
        let usage = Usage {
            jobs: tables.pending()?,
            request_bytes: totals.request_bytes,
            results: tables.results.len().map_err(JournalError::store)?,
            file_bytes: 0,
        };
        drop(tables);
        if changed {
            transaction.commit().map_err(JournalError::store)?;
        } else {
            transaction.abort().map_err(JournalError::store)?;
        }
        Ok(Committed {
            answers,
            totals,
            usage,
        })
    }
}

impl Drop for Writer {
    /// Closing writes, so that the next opening need not recover; and it reads
    /// pages that nothing has looked at before.
    fn drop(&mut self) {
        let database = self.database.take();
        // What could go wrong is found, and said, when it is opened again.
        let _ = guard(|| {
            drop(database);
            Ok(())
        });
    }
}

struct Committed {
    answers: Vec<Answered>,
    totals: Totals,
    usage: Usage,
}

fn writes(answer: &Answered) -> bool {
    use crate::Accepted;
    matches!(
        answer,
        Ok(Answer::Accepted(Accepted::New) | Answer::Done(true))
    )
}

impl Ticket {
    fn take(&self) -> Option<Change> {
        match std::mem::replace(&mut *lock(&self.0), Place::InHand) {
            Place::Queued(change) => Some(change),
            Place::InHand | Place::Answered(_) => None,
        }
    }

    fn put(&self, answer: Answered) {
        *lock(&self.0) = Place::Answered(answer);
    }

    fn answer(&self) -> Option<Answered> {
        match &*lock(&self.0) {
            Place::Answered(answer) => Some(answer.clone()),
            Place::Queued(_) | Place::InHand => None,
        }
    }
}

/// Runs what calls the store. Its code asserts what it takes for granted about
/// its pages, and those are input: a damaged page can make it panic.
pub(crate) fn guard<T>(call: impl FnOnce() -> Result<T, JournalError>) -> Result<T, JournalError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(JournalError::Store {
            what: format!(
                "the store panicked: {}",
                message.as_deref().unwrap_or("without a message")
            ),
        })
    })
}

/// Locks; what these locks hold is whole at any time, so that a panic of
/// another thread means nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
