//! The journal, as an engine calls it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::ReadTransaction;

use crate::aging::Aging;
use crate::change::{Answer, Change, Now, attach, is_expired, room};
use crate::check::Checked;
use crate::disk::Disk;
use crate::held::HeldFile;
use crate::job::{PARTITION_PROOF_BYTES_MAX, bounded, check_id};
use crate::lock::{Claim, Lock};
use crate::opening::{check_is_no_folder, compact, create, exists, open_checked, warn_of};
use crate::row::{Phase, Row};
use crate::store::close;
use crate::tables::find_in;
use crate::writer::Writer;
use crate::{
    Accepted, End, JobOptions, JournalError, Limits, Resumable, State, Usage, pending, request,
};

/// Returns the time in milliseconds since 1970.
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Jobs that survive a crash. Threads share it by reference. A change whose call
/// returned `Ok` is on disk.
///
/// ```
/// use cuzk_journal::{Accepted, End, JobOptions, Journal, Limits, State};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("jobs.journal");
/// let journal = Journal::open(&path, Limits::default())?;
/// let options = JobOptions { partitions: 2, ..JobOptions::default() };
/// assert_eq!(journal.accept("porep-1-2", &options, b"request")?, Accepted::New);
/// journal.finish_partition("porep-1-2", 1, b"its proof")?;
/// drop(journal); // or a crash
///
/// let journal = Journal::open(&path, Limits::default())?;
/// for job in journal.pending()?.jobs {
///     let request = journal.request(&job.id)?; // one at a time in memory
///     assert_eq!(request, b"request");
///     assert_eq!(job.finished, [(1, b"its proof".to_vec())]);
///     journal.end(&job.id, End::Done(b"the proof".to_vec()))?;
/// }
/// let end = State::Ended(End::Done(b"the proof".to_vec()));
/// assert_eq!(journal.state("porep-1-2")?, Some(end));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Journal {
    // Fields are dropped in this order: the store is closed before the locks are
    // released.
    writer: Writer,
    file: HeldFile,
    path: PathBuf,
    limits: Limits,
    clock: Clock,
    aging: Mutex<Aging>,
    _lock: Lock,
}

impl Journal {
    /// Opens the journal at `path`, or creates an empty one if there is no file. A lock
    /// file stands beside it, named `path` with `.lock` appended.
    ///
    /// After a crash the whole file is read; otherwise all but the requests.
    ///
    /// # Errors
    ///
    /// These four leave the file as it was: [`JournalError::InUse`],
    /// [`Damaged`](JournalError::Damaged), [`Foreign`](JournalError::Foreign) and
    /// [`NewerFormat`](JournalError::NewerFormat). Also [`Io`](JournalError::Io).
    pub fn open(path: impl AsRef<Path>, limits: Limits) -> Result<Self, JournalError> {
        Self::open_with_clock(path, limits, unix_ms)
    }

    /// Opens the journal like [`open`](Self::open), with another clock than the
    /// system's. `clock` returns milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with_clock(
        path: impl AsRef<Path>,
        limits: Limits,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Self, JournalError> {
        // Dropped with the closure that opens the file again, after the store is
        // closed.
        let claim = Claim::default();
        let open_disk = move |path: &Path| claim.open(path);
        Self::open_on(path.as_ref(), limits, Box::new(clock), open_disk)
    }

    fn open_or_create<D: Disk>(
        path: &Path,
        open_disk: &impl Fn(&Path) -> Result<D, JournalError>,
    ) -> Result<(HeldFile, Checked), JournalError> {
        if !exists(path) {
            create(path)?;
        }
        open_checked(path, open_disk(path)?)
    }

    /// Opens the journal on the disk that `open_disk` returns for a path.
    pub(crate) fn open_on<D: Disk>(
        path: &Path,
        limits: Limits,
        clock: Clock,
        open_disk: impl Fn(&Path) -> Result<D, JournalError> + Send + Sync + 'static,
    ) -> Result<Self, JournalError> {
        check_is_no_folder(path)?;
        let lock = Lock::take(path)?;
        let opened = Self::open_or_create(path, &open_disk);
        let (mut file, mut checked) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                lock.give_up();
                return Err(error);
            }
        };
        if let Err(error) = compact(path, &file, &mut checked) {
            warn_of(path, &error, "the journal could not be compacted");
            // A store that has failed accepts no more writes.
            close(Some(checked.database));
            (file, checked) = open_checked(path, open_disk(path)?)?;
        }
        let reopen = {
            let path = path.to_owned();
            move || Ok(open_checked(&path, open_disk(&path)?)?.1.into())
        };
        let aging = Mutex::new(Aging::since(
            checked.newest_result_ms,
            clock(),
            limits.result_age,
        ));
        let journal = Self {
            writer: Writer::new(checked.into(), limits, Box::new(reopen)),
            file,
            path: path.to_owned(),
            limits,
            clock,
            aging,
            _lock: lock,
        };
        // Each change expires results again, and an expired result is never returned.
        if let Err(error) = journal.done(Change::Expire) {
            warn_of(
                path,
                &error,
                "old results could not be removed from the journal",
            );
        }
        Ok(journal)
    }

    /// Returns the journal with another writer, for example one whose disk fails.
    #[cfg(test)]
    pub(crate) fn with_writer(self, open: impl FnOnce(&Path) -> Writer) -> Self {
        // One writer has the file at a time.
        drop(self.writer);
        Self {
            writer: open(&self.path),
            ..self
        }
    }

    /// Accepts a job: it is pending from now on, until it ends. Attaches to a job that
    /// has this id and the same input ([`JobOptions::kind`], [`JobOptions::partitions`]
    /// and `request`).
    ///
    /// # Errors
    ///
    /// [`JournalError::OtherInput`] if the id belongs to another input,
    /// [`JournalError::Full`] if the job does not fit now,
    /// [`JournalError::InvalidInput`] if it never will. After [`JournalError::Store`]
    /// the job is pending only if the process ends before the file could be written
    /// again.
    pub fn accept(
        &self,
        id: &str,
        options: &JobOptions,
        request: &[u8],
    ) -> Result<Accepted, JournalError> {
        check_id(id)?;
        options.check()?;
        let request_bytes = request.len() as u64;
        if request_bytes > self.limits.request_bytes_max {
            return Err(JournalError::InvalidInput {
                field: "request",
                expected: format!("at most {} bytes", self.limits.request_bytes_max),
                got: format!("{request_bytes} bytes"),
            });
        }
        let digest = request::digest(options, request);
        // The transaction checks this again. Here it saves the compression of a request
        // that is refused anyway.
        match self.live(id) {
            Ok(Some(row)) => return attach(id, &row, &digest).map(Accepted::Attached),
            // A store that cannot be read may be opened again before the write.
            Ok(None) | Err(JournalError::Store { .. }) => {}
            Err(error) => return Err(error),
        }
        let usage = self.writer.usage();
        room(&self.limits, usage.jobs, usage.request_bytes, request_bytes)?;
        let compressed = request::compress(request)
            .map_err(|error| JournalError::io(&self.path, "compress a request for", error))?;
        let change = Change::Accept {
            id: id.to_owned(),
            options: options.clone(),
            digest,
            request_bytes,
            compressed,
        };
        match self.change(change)? {
            Answer::Accepted(accepted) => Ok(accepted),
            Answer::Done(_) => Err(self.mixed_up()),
        }
    }

    /// Records the proof of a finished partition, at most
    /// [`PARTITION_PROOF_BYTES_MAX`]. Replaces an earlier proof: a caller that proves a
    /// partition again has found its first proof to be wrong.
    ///
    /// # Errors
    ///
    /// [`JournalError::Unknown`], [`Ended`](JournalError::Ended).
    pub fn finish_partition(
        &self,
        id: &str,
        partition: u32,
        proof: &[u8],
    ) -> Result<(), JournalError> {
        check_id(id)?;
        bounded("proof", proof.len(), PARTITION_PROOF_BYTES_MAX)?;
        self.done(Change::Finish {
            id: id.to_owned(),
            partition,
            proof: proof.to_vec(),
        })
        .map(|_| ())
    }

    /// Records how a job ended, and removes its request and partitions. Recording the
    /// same end twice is no error.
    ///
    /// # Errors
    ///
    /// [`JournalError::Ended`] if it ended in another way;
    /// [`Unknown`](JournalError::Unknown).
    pub fn end(&self, id: &str, end: End) -> Result<(), JournalError> {
        check_id(id)?;
        let end = end.bounded()?;
        self.done(Change::End {
            id: id.to_owned(),
            end,
        })
        .map(|_| ())
    }

    /// Removes a job, pending or ended. Returns true if it was there.
    ///
    /// # Errors
    ///
    /// [`JournalError::Store`].
    pub fn forget(&self, id: &str) -> Result<bool, JournalError> {
        check_id(id)?;
        self.done(Change::Forget { id: id.to_owned() })
    }

    /// Returns the state of a job. Returns `None` if it was never accepted, was
    /// forgotten or has expired.
    ///
    /// # Errors
    ///
    /// [`JournalError::DamagedJob`].
    pub fn state(&self, id: &str) -> Result<Option<State>, JournalError> {
        check_id(id)?;
        Ok(self.live(id)?.map(|row| row.state()))
    }

    /// Returns the jobs that have not ended, oldest first, without their requests.
    ///
    /// A partition whose proof is damaged is not among the finished ones.
    ///
    /// # Errors
    ///
    /// [`JournalError::Store`]. The error of a single job is in [`Resumable::damaged`].
    pub fn pending(&self) -> Result<Resumable, JournalError> {
        self.read(pending::read)
    }

    /// Returns the request of a pending job, checked against the digest of the accepted
    /// request.
    ///
    /// # Errors
    ///
    /// * [`JournalError::DamagedJob`] if the request is not the accepted one.
    /// * [`Unknown`](JournalError::Unknown), [`Ended`](JournalError::Ended).
    /// * [`Store`](JournalError::Store) if it cannot be read now, or if there is no
    ///   memory for it. Both may pass.
    pub fn request(&self, id: &str) -> Result<Vec<u8>, JournalError> {
        check_id(id)?;
        self.read(|transaction| request::read(transaction, id))
    }

    /// Returns the amounts that the journal holds.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`] if the length of the file cannot be read.
    pub fn usage(&self) -> Result<Usage, JournalError> {
        let file_bytes = self
            .file
            .len()
            .map_err(|error| JournalError::io(&self.path, "read the length", error))?;
        Ok(Usage {
            file_bytes,
            ..self.writer.usage()
        })
    }

    /// Returns the limits that the journal was opened with.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn done(&self, change: Change) -> Result<bool, JournalError> {
        match self.change(change)? {
            Answer::Done(any) => Ok(any),
            Answer::Accepted(_) => Err(self.mixed_up()),
        }
    }

    /// Makes a change durable.
    fn change(&self, change: Change) -> Result<Answer, JournalError> {
        let answer = self.writer.change(change, self.now());
        answer.map_err(|error| error.at(&self.path))
    }

    /// Reads the store.
    fn read<T>(
        &self,
        read: impl Fn(&ReadTransaction) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let answer = self.writer.read(read);
        answer.map_err(|error| error.at(&self.path))
    }

    fn mixed_up(&self) -> JournalError {
        JournalError::store_says("a change got the answer of another change").at(&self.path)
    }

    /// Returns the row of a job, unless its result has expired.
    fn live(&self, id: &str) -> Result<Option<Row>, JournalError> {
        let row = self.read(|transaction| find_in(transaction, id))?;
        let Now { aging_ms, .. } = self.now();
        Ok(row.filter(|row| match row.phase {
            Phase::Pending { .. } => true,
            Phase::Ended { unix_ms, .. } => !is_expired(&self.limits, aging_ms, unix_ms),
        }))
    }

    fn now(&self) -> Now {
        // The clock is read under the lock, so that its readings count in their order.
        let mut aging = self.aging.lock().unwrap_or_else(PoisonError::into_inner);
        let unix_ms = (self.clock)();
        Now {
            unix_ms,
            aging_ms: aging.at(unix_ms),
        }
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("path", &self.path)
            .field("limits", &self.limits)
            .field("usage", &self.writer.usage())
            .finish_non_exhaustive()
    }
}

fn unix_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| {
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    })
}
