//! The writer: one durable commit for the changes of several threads.
//!
//! A commit waits for the disk, and most of its cost does not depend on its number of
//! changes. So changes are put in a queue. One thread at a time takes the whole queue
//! and commits it for all threads, while the next queue forms.
//!
//! The threads that the last commit answered are likely to come back at once. So the
//! next commit waits until as many changes are queued as it had, for at most a fraction
//! of a commit's time. A single thread never waits.
//!
//! Invariant: a change is answered after its commit is durable. After a failed commit
//! nobody knows which part of it is on disk. So nothing more is written until the store
//! was opened again and checked.
//!
//! That check reads the disk, as far as the system drops its cached pages
//! ([`crate::disk`]): a cache can keep pages of a failed sync. Jobs found there that
//! were never reported as accepted are removed, because their submission was refused.
//!
//! A writer does not know the path of its file. The journal adds it to errors.

mod ticket;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _};

use crate::change::{Answer, Change, Now, Step, Totals};
use crate::store::{Opened, close, guard};
use crate::tables::Tables;
use crate::{JournalError, Limits, Usage};
use ticket::{Answered, Ticket, lock};

/// A commit's time is divided by this to get the time that it waits for more changes.
const GATHER_PART: u32 = 4;
const GATHER_MAX: Duration = Duration::from_millis(2);

/// The time from a failure to the first attempt to open the store again. A call makes
/// the attempt.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Opens the store again and checks it.
pub(crate) type Reopen = Box<dyn Fn() -> Result<Opened, JournalError> + Send + Sync>;

/// The only writer of the store.
pub(crate) struct Writer {
    /// `None` only while it is being closed, or after it could not be opened again.
    database: RwLock<Option<Database>>,
    reopen: Reopen,
    reopen_after: Duration,
    limits: Limits,
    queue: Mutex<Queue>,
    /// Notified when a change was queued. The thread that gathers changes waits for it.
    queued: Condvar,
    /// Notified when a commit has ended. All other threads wait for it.
    committed: Condvar,
    /// As of the last commit; `file_bytes` is not set here.
    usage: Mutex<Usage>,
}

struct Queue {
    tickets: Vec<Arc<Ticket>>,
    /// `None` while a thread has the turn and commits.
    turn: Option<Turn>,
}

/// The state that belongs to the thread whose turn it is.
struct Turn {
    totals: Totals,
    /// The error that stopped writing, and its time.
    failed: Option<(JournalError, Instant)>,
    /// True if a refused job may be on disk.
    in_doubt: bool,
    /// The number of changes in the last commit, and its duration.
    last_changes: usize,
    last_time: Duration,
}

impl Writer {
    pub(crate) fn new(opened: Opened, limits: Limits, reopen: Reopen) -> Self {
        let Opened {
            database,
            totals,
            usage,
        } = opened;
        let turn = Turn {
            totals,
            failed: None,
            in_doubt: false,
            last_changes: 0,
            last_time: Duration::ZERO,
        };
        Self {
            database: RwLock::new(Some(database)),
            reopen,
            reopen_after: REOPEN_AFTER,
            limits,
            queue: Mutex::new(Queue {
                tickets: Vec::new(),
                turn: Some(turn),
            }),
            queued: Condvar::new(),
            committed: Condvar::new(),
            usage: Mutex::new(usage),
        }
    }

    /// Reads the store as of the last commit. A store that cannot be read any more, for
    /// example after a failed write, is opened again first if that is due.
    pub(crate) fn read<T>(
        &self,
        read: impl Fn(&ReadTransaction) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let once = || {
            self.with_database(|database| {
                let transaction = database.begin_read().map_err(JournalError::store)?;
                read(&transaction)
            })
        };
        match once() {
            Err(JournalError::Store { .. }) if self.reopen_to_read() => once(),
            answer => answer,
        }
    }

    /// Opens the store again for a thread that could not read it. Does so if the store
    /// has failed and the time is due. A thread that has the turn does it itself, so
    /// nothing is done then. Returns true if it tried.
    fn reopen_to_read(&self) -> bool {
        let Some(mut turn) = lock(&self.queue).turn.take() else {
            return false;
        };
        if turn.failed.is_none() {
            turn.failed = self.failure().map(|error| (error, Instant::now()));
        }
        let tried = self.reopen_if_due(&mut turn);
        lock(&self.queue).turn = Some(turn);
        self.committed.notify_all();
        tried
    }

    /// Returns the error that a write would get before it writes anything. A failed
    /// read stops the store like a failed write.
    fn failure(&self) -> Option<JournalError> {
        let probe = self.with_database(|database| {
            let transaction = database.begin_write().map_err(JournalError::store)?;
            transaction.abort().map_err(JournalError::store)
        });
        probe.err()
    }

    fn with_database<T>(
        &self,
        call: impl FnOnce(&Database) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        match &*database {
            Some(database) => guard(|| call(database)),
            None => Err(JournalError::store_says("the store is closed")),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        *lock(&self.usage)
    }

    /// Makes a change durable, or returns its error.
    pub(crate) fn change(&self, change: Change, now: Now) -> Answered {
        let ticket = Ticket::new(change);
        let mut queue = lock(&self.queue);
        queue.tickets.push(Arc::clone(&ticket));
        self.queued.notify_one();
        loop {
            if let Some(answer) = ticket.answer() {
                return answer;
            }
            if let Some(mut turn) = queue.turn.take() {
                queue = self.gather(queue, &turn);
                let batch = std::mem::take(&mut queue.tickets);
                drop(queue);
                self.commit(&mut turn, &batch, now);
                queue = lock(&self.queue);
                queue.turn = Some(turn);
                self.committed.notify_all();
            } else {
                let woken = self.committed.wait(queue);
                queue = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Waits for a moment until as many changes are queued as the last commit had.
    fn gather<'q>(&self, mut queue: MutexGuard<'q, Queue>, turn: &Turn) -> MutexGuard<'q, Queue> {
        let until = Instant::now() + (turn.last_time / GATHER_PART).min(GATHER_MAX);
        while queue.tickets.len() < turn.last_changes {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.queued.wait_timeout(queue, left);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue
    }

    fn commit(&self, turn: &mut Turn, batch: &[Arc<Ticket>], now: Now) {
        let start = Instant::now();
        self.reopen_if_due(turn);
        let outcome = match &turn.failed {
            Some((error, _)) => Err(error.clone()),
            None => {
                // Stays so until the commit is known to have succeeded.
                turn.in_doubt = batch.iter().any(|ticket| ticket.accepts());
                self.with_database(|database| self.transact(database, turn.totals, batch, now))
            }
        };
        turn.last_changes = batch.len();
        turn.last_time = start.elapsed();
        match outcome {
            Ok(committed) => {
                turn.totals = committed.totals;
                turn.in_doubt = false;
                *lock(&self.usage) = committed.usage;
                for (ticket, answer) in batch.iter().zip(committed.answers) {
                    ticket.put(answer);
                }
            }
            Err(error) => {
                for ticket in batch {
                    ticket.put(Err(error.clone()));
                }
                turn.failed.get_or_insert((error, Instant::now()));
            }
        }
    }

    /// Opens the store again if it failed a while ago. Returns true if it tried.
    fn reopen_if_due(&self, turn: &mut Turn) -> bool {
        if !matches!(&turn.failed, Some((_, since)) if since.elapsed() >= self.reopen_after) {
            return false;
        }
        let mut database = self.database.write();
        let database = database
            .as_deref_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut());
        // Only one store may have the file. The old one has nothing left that it could
        // write.
        close(database.take());
        match self.opened_again(turn.totals.next_sequence) {
            Ok(opened) => {
                *database = Some(opened.database);
                *lock(&self.usage) = opened.usage;
                turn.totals = opened.totals;
                turn.failed = None;
                turn.in_doubt = false;
            }
            Err(error) => {
                let problem = match error {
                    JournalError::Store { what, .. } => what,
                    error => error.to_string(),
                };
                let what = format!("the store cannot be opened again: {problem}");
                turn.failed = Some((JournalError::store_says(what), Instant::now()));
            }
        }
        true
    }

    /// Opens and checks the store, and removes jobs that were never reported as
    /// accepted. These have the sequences from `next_sequence` on.
    fn opened_again(&self, next_sequence: u64) -> Result<Opened, JournalError> {
        let mut opened = (self.reopen)()?;
        if opened.totals.next_sequence > next_sequence {
            let withdraw = Ticket::new(Change::Withdraw {
                from: next_sequence,
            });
            // No result gets older by this change.
            let now = Now {
                unix_ms: 0,
                aging_ms: 0,
            };
            let (database, totals) = (&opened.database, opened.totals);
            let committed = guard(|| self.transact(database, totals, &[withdraw], now))?;
            (opened.totals, opened.usage) = (committed.totals, committed.usage);
        }
        Ok(opened)
    }

    /// Applies all changes of `batch` in one transaction. An error concerns the store;
    /// a refused change is among the answers.
    fn transact(
        &self,
        database: &Database,
        mut totals: Totals,
        batch: &[Arc<Ticket>],
        now: Now,
    ) -> Result<Committed, JournalError> {
        let transaction = database.begin_write().map_err(JournalError::store)?;
        let mut tables = Tables::open(&transaction)?;
        let mut step = Step {
            tables: &mut tables,
            totals: &mut totals,
            limits: &self.limits,
            now,
        };
        let mut changed = step.expire()?;
        let mut answers = Vec::with_capacity(batch.len());
        for ticket in batch {
            let answer = match ticket.take() {
                Some(change) => step.apply(change),
                None => Err(JournalError::store_says("a change was queued twice")),
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
    /// Closes the store. Closing writes, so that the next opening need not recover, and
    /// it reads pages that nothing has read before. If a refused job may be on disk,
    /// this is the last chance to remove it.
    fn drop(&mut self) {
        let turn = lock(&self.queue).turn.take();
        if let Some(mut turn) = turn.filter(|turn| turn.in_doubt) {
            self.reopen_after = Duration::ZERO;
            self.reopen_if_due(&mut turn);
        }
        let database = self.database.get_mut();
        close(database.unwrap_or_else(PoisonError::into_inner).take());
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

#[cfg(test)]
mod tests;
