//! One durable commit for the changes of several threads.
//!
//! A commit waits for the disk, and most of its cost does not depend on how
//! much is in it. So changes are put in a queue, and one thread at a time takes
//! the whole queue and commits it for all of them, while the next queue forms.
//! Those who were answered by the last commit are likely to be back at once, so
//! it waits for as many as there were then, for a fraction of what a commit
//! takes; one thread alone never waits.
//!
//! Invariant: a change is answered after the commit it is in is durable. After
//! a commit that failed nothing more is written, because nobody knows what of
//! it is on disk, until the store was opened again and checked. That reads the
//! disk, and not what a cache kept of a sync that failed, as far as the system
//! lets go of that ([`crate::disk`]). Jobs that are there then and were never said
//! to be accepted are taken out: who submitted them was refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction, ReadableDatabase as _, ReadableTableMetadata as _};

use crate::change::{Answer, Change, Now, Step, Totals};
use crate::tables::Tables;
use crate::{JournalError, Limits, Usage};

type Answered = Result<Answer, JournalError>;

/// The part of a commit's time that is waited for more changes.
const GATHER_PART: u32 = 4;
const GATHER_MAX: Duration = Duration::from_millis(2);

/// How long after it failed the store is opened again, if it is asked for.
const MEND_AFTER: Duration = Duration::from_secs(1);

/// Opens the store again and checks it.
pub(crate) type Reopen = Box<dyn Fn() -> Result<Opened, JournalError> + Send + Sync>;

/// A store that was checked, and what is in it.
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) totals: Totals,
    pub(crate) usage: Usage,
}

/// The only one who writes to the store.
pub(crate) struct Writer {
    /// `None` only while it is being closed, or could not be opened again.
    database: RwLock<Option<Database>>,
    reopen: Reopen,
    mend_after: Duration,
    limits: Limits,
    line: Mutex<Line>,
    /// Somebody queued; the thread that gathers waits for it.
    queued: Condvar,
    /// A commit is over; everybody else waits for it.
    committed: Condvar,
    /// As of the last commit; `file_bytes` is not kept here.
    usage: Mutex<Usage>,
}

struct Line {
    queue: Vec<Arc<Ticket>>,
    /// `None` while a thread has it, and commits.
    turn: Option<Turn>,
}

/// What the thread whose turn it is has to itself.
struct Turn {
    totals: Totals,
    /// Why nothing is written, and since when.
    failed: Option<(JournalError, Instant)>,
    /// Whether a job that was refused can be on disk.
    in_doubt: bool,
    /// How many changes were in the last commit, and how long it took.
    last_changes: usize,
    last_time: Duration,
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
            mend_after: MEND_AFTER,
            limits,
            line: Mutex::new(Line {
                queue: Vec::new(),
                turn: Some(turn),
            }),
            queued: Condvar::new(),
            committed: Condvar::new(),
            usage: Mutex::new(usage),
        }
    }

    /// Reads the store as of the last commit. One that cannot be read any more,
    /// as after a failed write, is opened again first if that is due.
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
            Err(JournalError::Store { .. }) if self.mend_to_read() => once(),
            answer => answer,
        }
    }

    /// Opens the store again for one who could not read it, if it has failed, if
    /// that is due, and if nobody has the turn, who would do it as well. Returns
    /// whether it was tried.
    fn mend_to_read(&self) -> bool {
        let Some(mut turn) = lock(&self.line).turn.take() else {
            return false;
        };
        if turn.failed.is_none() {
            turn.failed = self.failure().map(|error| (error, Instant::now()));
        }
        let tried = self.mend(&mut turn);
        lock(&self.line).turn = Some(turn);
        self.committed.notify_all();
        tried
    }

    /// What a write would be refused with before it writes anything: a read
    /// that failed stops the store as a write does.
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
            None => Err(JournalError::Store {
                what: "it is closed".to_owned(),
            }),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        *lock(&self.usage)
    }

    /// Makes a change durable, or says why not.
    pub(crate) fn change(&self, change: Change, now: Now) -> Answered {
        let ticket = Ticket::new(change);
        let mut line = lock(&self.line);
        line.queue.push(Arc::clone(&ticket));
        self.queued.notify_one();
        loop {
            if let Some(answer) = ticket.answer() {
                return answer;
            }
            if let Some(mut turn) = line.turn.take() {
                line = self.gather(line, &turn);
                let batch = std::mem::take(&mut line.queue);
                drop(line);
                self.commit(&mut turn, &batch, now);
                line = lock(&self.line);
                line.turn = Some(turn);
                self.committed.notify_all();
            } else {
                let woken = self.committed.wait(line);
                line = woken.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Waits for as many changes as the last commit had, for a moment.
    fn gather<'l>(&self, mut line: MutexGuard<'l, Line>, turn: &Turn) -> MutexGuard<'l, Line> {
        let until = Instant::now() + (turn.last_time / GATHER_PART).min(GATHER_MAX);
        while line.queue.len() < turn.last_changes {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.queued.wait_timeout(line, left);
            line = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        line
    }

    fn commit(&self, turn: &mut Turn, batch: &[Arc<Ticket>], now: Now) {
        let start = Instant::now();
        self.mend(turn);
        let outcome = match &turn.failed {
            Some((error, _)) => Err(error.clone()),
            None => {
                // Until it is known that it is not.
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

    /// Opens the store again, if it failed a while ago. Returns whether that was
    /// tried.
    fn mend(&self, turn: &mut Turn) -> bool {
        if !matches!(&turn.failed, Some((_, since)) if since.elapsed() >= self.mend_after) {
            return false;
        }
        let mut database = self.database.write();
        let database = database
            .as_deref_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut());
        // Two must not have the file. What the old one could still write is nothing.
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
                let what = format!("it cannot be opened again: {error}");
                turn.failed = Some((JournalError::Store { what }, Instant::now()));
            }
        }
        true
    }

    /// The store, opened and checked, without jobs that were not said to be accepted:
    /// those have the sequences from `next_sequence` on.
    fn opened_again(&self, next_sequence: u64) -> Result<Opened, JournalError> {
        let mut opened = (self.reopen)()?;
        if opened.totals.next_sequence > next_sequence {
            let withdraw = Ticket::new(Change::Withdraw {
                from: next_sequence,
            });
            // No result is older by this.
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

    /// All changes of `batch` in one transaction. An error is the store's; a
    /// change that was refused is among the answers.
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
    /// pages that nothing has looked at before. If a job that was refused can be on
    /// disk, this is the last time to take it out.
    fn drop(&mut self) {
        let turn = lock(&self.line).turn.take();
        if let Some(mut turn) = turn.filter(|turn| turn.in_doubt) {
            self.mend_after = Duration::ZERO;
            self.mend(&mut turn);
        }
        let database = self.database.get_mut();
        close(database.unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Drops a store.
pub(crate) fn close(database: Option<Database>) {
    // What could go wrong is found, and said, when it is opened again.
    let _ = guard(|| {
        drop(database);
        Ok(())
    });
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
    fn new(change: Change) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Place::Queued(change))))
    }

    /// Whether it waits to accept a job.
    fn accepts(&self) -> bool {
        matches!(&*lock(&self.0), Place::Queued(Change::Accept { .. }))
    }

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

#[cfg(test)]
mod tests;
