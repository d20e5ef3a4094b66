//! A journal on a simulated disk, which can be full or slow, and can fail in the midst of a write.
//!
//! Not the file of `cuzk-journal`, whose own tests break it: this is a model of what that
//! crate promises. The invariants:
//!
//! * A write that returned `Ok` stays. A write that returned an error is there or not.
//! * A job whose acceptance failed is taken out before the next write, unless the process
//!   is killed before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cuzk_journal::{
    Accepted, DamagedJob, End, JobOptions, JournalError, PendingJob, Resumable, State,
};
use cuzk_scheduler::clock;
use cuzk_scheduler::clock::simulated::{Time, set};

use crate::engine::jobs::recorder::Store;

type StoreResult<T> = Result<T, JournalError>;

/// The longest time that a write of a slow disk takes.
const SLOW_MS: u64 = 20_000;

/// The state of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trouble {
    #[default]
    None,
    /// No write succeeds, and nothing of it is there.
    Full,
    /// No write succeeds, and all of it is there. No request can be read.
    Torn,
    /// Every other write or so fails, and nothing of it is there.
    Flaky,
    /// Every write succeeds, and takes up to [`SLOW_MS`].
    Slow,
}

/// A job on the disk.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) request: Vec<u8>,
    pub(super) end: Option<End>,
    options: JobOptions,
    sequence: u64,
    accepted_unix_ms: u64,
    pub(super) finished: BTreeMap<u32, Vec<u8>>,
}

/// The content of the disk.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) rows: BTreeMap<String, Row>,
    pub(super) trouble: Trouble,
    /// The writes, those that failed, and those that took long.
    writes: u64,
    pub(super) failures: u64,
    pub(super) slow: u64,
    next_sequence: u64,
    /// Jobs whose acceptance failed, and which are there.
    in_doubt: BTreeSet<String>,
}

/// A disk, which outlives the engines.
#[derive(Clone, Default)]
pub(super) struct SimulatedDisk(Arc<Mutex<Content>>);

impl SimulatedDisk {
    pub(super) fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap()
    }

    /// Notes that the process was killed: nobody remembers what is in doubt.
    pub(super) fn killed(&self) {
        self.lock().in_doubt.clear();
    }

    /// Notes that the journal was closed: what is in doubt is taken out.
    pub(super) fn closed(&self) {
        self.lock().write(|_| Ok(())).unwrap();
    }

    /// Returns the job of an id.
    pub(super) fn row(&self, id: &str) -> Option<Row> {
        self.lock().rows.get(id).cloned()
    }
}

impl Row {
    /// Returns true if the job was submitted with a deadline.
    pub(super) fn has_deadline(&self) -> bool {
        self.options.deadline_unix_ms.is_some()
    }
}

impl Content {
    /// Makes a change, as far as the disk can.
    fn write<T>(&mut self, change: impl FnOnce(&mut Self) -> StoreResult<T>) -> StoreResult<T> {
        self.writes += 1;
        // Bits of a multiple of the golden ratio are as good as any.
        let random = self.writes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let fails = match self.trouble {
            Trouble::None => false,
            Trouble::Full | Trouble::Torn => true,
            Trouble::Flaky => random >> 31 == 1,
            Trouble::Slow => {
                self.slow += 1;
                pass(Duration::from_millis(random % SLOW_MS));
                false
            }
        };
        if !fails {
            for id in std::mem::take(&mut self.in_doubt) {
                self.rows.remove(&id);
            }
            return change(self);
        }
        self.failures += 1;
        if self.trouble == Trouble::Torn {
            change(self)?;
        }
        Err(failure())
    }

    fn known(&mut self, id: &str) -> StoreResult<&mut Row> {
        let unknown = || JournalError::Unknown { id: id.to_owned() };
        self.rows.get_mut(id).ok_or_else(unknown)
    }
}

/// Lets time pass on both clocks.
pub(super) fn pass(time: Duration) {
    set(Some(Time {
        monotonic: clock::now() + time,
        wall: clock::wall() + time,
    }));
}

fn failure() -> JournalError {
    JournalError::Store {
        path: "simulated.journal".into(),
        what: "the simulated disk failed".to_owned(),
    }
}

fn ended(id: &str) -> JournalError {
    JournalError::Ended {
        id: id.to_owned(),
        end: "ended",
    }
}

impl Store for SimulatedDisk {
    fn accept(&self, id: &str, options: &JobOptions, request: &[u8]) -> StoreResult<Accepted> {
        let mut content = self.lock();
        if content.in_doubt.contains(id) {
            // A store that failed is opened again first.
            content.write(|_| Ok(()))?;
        }
        if let Some(row) = content.rows.get(id) {
            if row.request != request || row.options.kind != options.kind {
                return Err(JournalError::OtherInput { id: id.to_owned() });
            }
            let state = row.end.clone().map_or(State::Pending, State::Ended);
            return Ok(Accepted::Attached(state));
        }
        let at = clock::wall().duration_since(std::time::UNIX_EPOCH);
        let row = Row {
            request: request.to_vec(),
            end: None,
            options: options.clone(),
            sequence: content.next_sequence,
            accepted_unix_ms: u64::try_from(at.unwrap_or_default().as_millis()).unwrap(),
            finished: BTreeMap::new(),
        };
        content.next_sequence += 1;
        let accepted = content.write(|content| {
            content.rows.insert(id.to_owned(), row);
            Ok(Accepted::New)
        });
        if accepted.is_err() && content.rows.contains_key(id) {
            content.in_doubt.insert(id.to_owned());
        }
        accepted
    }

    fn end(&self, id: &str, end: End) -> StoreResult<()> {
        self.lock().write(|content| {
            let row = content.known(id)?;
            match &row.end {
                Some(kept) if *kept == end => {}
                Some(_) => return Err(ended(id)),
                None => row.end = Some(end),
            }
            row.finished.clear();
            Ok(())
        })
    }

    fn forget(&self, id: &str) -> StoreResult<bool> {
        self.lock()
            .write(|content| Ok(content.rows.remove(id).is_some()))
    }

    fn finish_partition(&self, id: &str, partition: u32, proof: &[u8]) -> StoreResult<()> {
        self.lock().write(|content| {
            let row = content.known(id)?;
            if row.end.is_some() {
                return Err(ended(id));
            }
            row.finished.insert(partition, proof.to_vec());
            Ok(())
        })
    }

    fn request(&self, id: &str) -> StoreResult<Vec<u8>> {
        let mut content = self.lock();
        if content.trouble == Trouble::Torn {
            return Err(failure());
        }
        let row = content.known(id)?;
        match row.end {
            Some(_) => Err(ended(id)),
            None => Ok(row.request.clone()),
        }
    }

    fn pending(&self) -> StoreResult<Resumable> {
        let content = self.lock();
        let pending = content.rows.iter().filter(|(_, row)| row.end.is_none());
        let mut pending: Vec<_> = pending.collect();
        pending.sort_by_key(|(_, row)| row.sequence);
        let job = |(id, row): (&String, &Row)| PendingJob {
            id: id.clone(),
            options: row.options.clone(),
            accepted_unix_ms: row.accepted_unix_ms,
            request_bytes: row.request.len() as u64,
            finished: row.finished.clone().into_iter().collect(),
            damaged: Vec::new(),
        };
        Ok(Resumable {
            jobs: pending.into_iter().map(job).collect(),
            damaged: Vec::<DamagedJob>::new(),
        })
    }
}
