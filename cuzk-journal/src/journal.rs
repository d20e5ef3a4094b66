//! The journal: what an engine calls.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cuzk_files::Draft;
use redb::ReadableTable as _;

use crate::aging::Aging;
use crate::change::{Answer, Change, Now, attach, is_expired, room};
use crate::check::{Checked, check_magic, open_store};
use crate::disk::Disk;
use crate::held::HeldFile;
use crate::job::{PARTITION_PROOF_BYTES_MAX, bounded, check_id};
use crate::lock::{Claim, Lock};
use crate::row::{Phase, Row, partition_key, seal, unseal};
use crate::tables::{
    FORMAT, FORMAT_KEY, JOBS, META, ORDER, PARTITIONS, REQUESTS, Tables, find, find_in,
};
use crate::writer::{Opened, Writer, close, guard};
use crate::{
    Accepted, DamagedJob, End, JobOptions, JournalError, Limits, PendingJob, Resumable, State,
    Usage, check, request,
};

/// A file this much larger than what is in it, and at least
/// [`COMPACT_BYTES_MIN`], is compacted when it is opened.
const COMPACT_RATIO: u64 = 4;
const COMPACT_BYTES_MIN: u64 = 64 << 20;

/// What is read of the clock: milliseconds since 1970.
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// Jobs that survive a crash. Shared by reference between threads; a change
/// that returned `Ok` is on disk.
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
    // Dropped in this order: the store is closed before the locks are let go.
    writer: Writer,
    file: HeldFile,
    path: PathBuf,
    limits: Limits,
    clock: Clock,
    aging: Mutex<Aging>,
    _lock: Lock,
}

impl Journal {
    /// Opens the journal at `path`, or makes an empty one where there is no
    /// file. Beside it, `path` with `.lock` appended is kept.
    ///
    /// After a crash the whole file is read; otherwise all but the requests.
    ///
    /// # Errors
    ///
    /// [`JournalError::InUse`], [`Damaged`](JournalError::Damaged),
    /// [`Foreign`](JournalError::Foreign),
    /// [`NewerFormat`](JournalError::NewerFormat), each of which leaves the
    /// file as it was, and [`Io`](JournalError::Io).
    pub fn open(path: impl AsRef<Path>, limits: Limits) -> Result<Self, JournalError> {
        Self::open_with_clock(path, limits, unix_ms)
    }

    /// [`open`](Self::open) with another clock than the system's:
    /// milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with_clock(
        path: impl AsRef<Path>,
        limits: Limits,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Self, JournalError> {
        // Dropped with what opens the file again, after the store is closed.
        let claim = Claim::default();
        let open_disk = move |path: &Path| claim.open(path);
        Self::open_on(path.as_ref(), limits, Box::new(clock), open_disk)
    }

    /// The same on what `open_disk` makes of a path.
    pub(crate) fn open_on<D: Disk>(
        path: &Path,
        limits: Limits,
        clock: Clock,
        open_disk: impl Fn(&Path) -> Result<D, JournalError> + Send + Sync + 'static,
    ) -> Result<Self, JournalError> {
        let lock = Lock::take(path)?;
        if !exists(path) {
            create(path)?;
        }
        let (mut file, mut checked) = open_checked(path, open_disk(path)?)?;
        if let Err(error) = compact(path, &file, &mut checked) {
            warn_of(path, &error, "the journal is not compacted");
            // A store that has failed takes nothing more.
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
        // Every change tries it again, and no result that is old is told of.
        if let Err(error) = journal.done(Change::Expire) {
            warn_of(path, &error, "old results stay in the journal");
        }
        Ok(journal)
    }

    /// The same on another store, such as one that fails.
    #[cfg(test)]
    pub(crate) fn with_writer(self, open: impl FnOnce(&Path) -> Writer) -> Self {
        // One has the file at a time.
        drop(self.writer);
        Self {
            writer: open(&self.path),
            ..self
        }
    }

    /// Accepts a job: from now on it is pending, until it ends. An id that is
    /// there already with the same input ([`JobOptions::kind`],
    /// [`JobOptions::partitions`] and `request`) is attached to.
    ///
    /// # Errors
    ///
    /// [`JournalError::OtherInput`] if the id stands for another input,
    /// [`JournalError::Full`] if the job does not fit now,
    /// [`JournalError::InvalidInput`] if it never will. After
    /// [`JournalError::Store`] the job is pending only if the process ends before
    /// the file could be written again.
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
        // Asked again inside the transaction; here only so that nothing is
        // compressed for nothing.
        match self.live(id) {
            Ok(Some(row)) => return attach(id, &row, &digest).map(Accepted::Attached),
            // What cannot be read may be mended before it is written.
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
        match self.writer.change(change, self.now())? {
            Answer::Accepted(accepted) => Ok(accepted),
            Answer::Done(_) => Err(mixed_up()),
        }
    }

    /// Records the proof of a finished partition, at most
    /// [`PARTITION_PROOF_BYTES_MAX`], in the place of another that is there: who
    /// proved it again found that one to be wrong.
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

    /// Records how a job ended, and lets go of its request and partitions.
    /// The same end twice is fine.
    ///
    /// # Errors
    ///
    /// [`JournalError::Ended`] if it ended otherwise;
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

    /// Takes a job out, pending or not. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// [`JournalError::Store`].
    pub fn forget(&self, id: &str) -> Result<bool, JournalError> {
        check_id(id)?;
        self.done(Change::Forget { id: id.to_owned() })
    }

    /// What is known of a job; `None` if it was never accepted, was forgotten
    /// or has expired.
    ///
    /// # Errors
    ///
    /// [`JournalError::DamagedJob`].
    pub fn state(&self, id: &str) -> Result<Option<State>, JournalError> {
        check_id(id)?;
        Ok(self.live(id)?.map(|row| row.state()))
    }

    /// The jobs that have not ended, oldest first, without their requests.
    ///
    /// A partition whose proof is damaged is not among the finished ones.
    ///
    /// # Errors
    ///
    /// [`JournalError::Store`]. What is wrong with one job is in
    /// [`Resumable::damaged`].
    pub fn pending(&self) -> Result<Resumable, JournalError> {
        self.writer.read(|transaction| {
            let order = transaction.open_table(ORDER).map_err(JournalError::store)?;
            let jobs = transaction.open_table(JOBS).map_err(JournalError::store)?;
            let partitions = transaction
                .open_table(PARTITIONS)
                .map_err(JournalError::store)?;
            let mut resumable = Resumable::default();
            for entry in order.iter().map_err(JournalError::store)? {
                let (_, id) = entry.map_err(JournalError::store)?;
                let id = String::from_utf8_lossy(id.value()).into_owned();
                match find(&jobs, &id) {
                    Ok(Some(row)) => resumable.jobs.push(pending_job(id, row, &partitions)?),
                    Ok(None) => {}
                    Err(error @ JournalError::DamagedJob { .. }) => {
                        resumable.damaged.push(DamagedJob { id, error });
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(resumable)
        })
    }

    /// The request of a pending job, checked against the digest of what was
    /// accepted.
    ///
    /// # Errors
    ///
    /// [`JournalError::DamagedJob`] if it is not what was accepted;
    /// [`Unknown`](JournalError::Unknown), [`Ended`](JournalError::Ended);
    /// [`Store`](JournalError::Store) if it cannot be read now, or there is no
    /// memory for it: both may pass.
    pub fn request(&self, id: &str) -> Result<Vec<u8>, JournalError> {
        check_id(id)?;
        self.writer.read(|transaction| {
            let row = find_in(transaction, id)?
                .ok_or_else(|| JournalError::Unknown { id: id.to_owned() })?;
            let request_bytes = match &row.phase {
                Phase::Pending { request_bytes, .. } => *request_bytes,
                Phase::Ended { end, .. } => {
                    return Err(JournalError::Ended {
                        id: id.to_owned(),
                        end: end.name(),
                    });
                }
            };
            let requests = transaction
                .open_table(REQUESTS)
                .map_err(JournalError::store)?;
            let mut unread = None;
            let chunks = requests
                .range((row.sequence, 0)..=(row.sequence, u32::MAX))
                .map_err(JournalError::store)?
                .map(|entry| match entry {
                    Ok((_, bytes)) => Ok(bytes.value().to_vec()),
                    Err(error) => {
                        unread = Some(JournalError::store(error));
                        Err(io::ErrorKind::Other.into())
                    }
                });
            let request = request::decompress(chunks, request_bytes);
            // Not the job's fault: it is whole when the disk can be read again.
            if let Some(error) = unread {
                return Err(error);
            }
            match request {
                Ok(request) if request::digest(&row.options, &request) == row.digest => Ok(request),
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    Err(JournalError::Store {
                        what: format!("no memory for a request of {request_bytes} bytes"),
                    })
                }
                Ok(_) | Err(_) => Err(JournalError::DamagedJob {
                    id: id.to_owned(),
                    what: "request",
                }),
            }
        })
    }

    /// How full the journal is.
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

    /// The limits it was opened with.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn done(&self, change: Change) -> Result<bool, JournalError> {
        match self.writer.change(change, self.now())? {
            Answer::Done(any) => Ok(any),
            Answer::Accepted(_) => Err(mixed_up()),
        }
    }

    /// The row of a job, unless its result has expired.
    fn live(&self, id: &str) -> Result<Option<Row>, JournalError> {
        let row = self.writer.read(|transaction| find_in(transaction, id))?;
        let Now { aging_ms, .. } = self.now();
        Ok(row.filter(|row| match row.phase {
            Phase::Pending { .. } => true,
            Phase::Ended { unix_ms, .. } => !is_expired(&self.limits, aging_ms, unix_ms),
        }))
    }

    fn now(&self) -> Now {
        // Under the lock, so that looks at the clock count in their order.
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

fn pending_job(
    id: String,
    row: Row,
    partitions: &redb::ReadOnlyTable<(u64, u32), &'static [u8]>,
) -> Result<PendingJob, JournalError> {
    let (request_bytes, _) = row.request_bytes();
    let mut finished = Vec::new();
    let range = partitions
        .range((row.sequence, 0)..=(row.sequence, u32::MAX))
        .map_err(JournalError::store)?;
    for entry in range {
        let (at, stored) = entry.map_err(JournalError::store)?;
        let (sequence, partition) = at.value();
        if let Some(proof) = unseal(&partition_key(sequence, partition), stored.value()) {
            finished.push((partition, proof.to_vec()));
        }
    }
    Ok(PendingJob {
        id,
        options: row.options,
        accepted_unix_ms: row.accepted_unix_ms,
        request_bytes,
        finished,
    })
}

impl From<Checked> for Opened {
    fn from(checked: Checked) -> Self {
        Self {
            database: checked.database,
            totals: checked.totals,
            usage: checked.usage,
        }
    }
}

fn exists(path: &Path) -> bool {
    !matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// The store on `disk`, as it is there and not in the system's cache, checked
/// before anything was written to it. `path` is for messages.
pub(crate) fn open_checked(
    path: &Path,
    disk: impl Disk,
) -> Result<(HeldFile, Checked), JournalError> {
    forget_cached(path, &disk);
    let file = HeldFile::holding(disk)
        .map_err(|error| JournalError::io(path, "read the length", error))?;
    check_magic(path, &file)?;
    let checked = check::open(path, file.clone())?;
    file.release()
        .map_err(|error| JournalError::io(path, "write", error))?;
    Ok((file, checked))
}

/// After a sync that failed, of this process or of one that was killed, the
/// cache can hold what is not on the disk and never will be. A check that read
/// that would pass, and the next power cut would leave a file in pieces.
fn forget_cached(path: &Path, disk: &impl Disk) {
    // Only pages that are not to be written are let go of. What this sync
    // cannot write it leaves as such, to be let go of with the others.
    let _ = disk.sync_data();
    if let Err(error) = disk.forget_cached() {
        warn_of(
            path,
            &error,
            "the journal is checked as the system's cache has it",
        );
    }
}

/// Says what could be left undone.
fn warn_of(path: &Path, error: &dyn std::fmt::Display, what: &str) {
    let path = path.display();
    tracing::warn!(%path, %error, "{what}");
}

/// An empty journal, whole before it has its name.
fn create(path: &Path) -> Result<(), JournalError> {
    let failed = |error| JournalError::io(path, "create", error);
    let draft = Draft::begin(path).map_err(failed)?;
    // Of nobody else's concern, whatever the umask is.
    let owners = Permissions::from_mode(0o600);
    draft.file().set_permissions(owners).map_err(failed)?;
    let file = HeldFile::open(draft.file().try_clone().map_err(failed)?);
    guard(|| {
        let database = open_store(file).map_err(JournalError::store)?;
        let transaction = database.begin_write().map_err(JournalError::store)?;
        {
            let mut meta = transaction.open_table(META).map_err(JournalError::store)?;
            let key = FORMAT_KEY.as_bytes();
            let format = seal(key, FORMAT.to_le_bytes().to_vec());
            meta.insert(key, format.as_slice())
                .map_err(JournalError::store)?;
            Tables::open(&transaction)?;
        }
        transaction.commit().map_err(JournalError::store)
    })?;
    draft.publish_new().map_err(failed)
}

/// Gives back what jobs that have ended left of the file. While it is open,
/// their room is used for others.
fn compact(path: &Path, file: &HeldFile, checked: &mut Checked) -> Result<(), JournalError> {
    let file_bytes = file
        .len()
        .map_err(|error| JournalError::io(path, "read the length", error))?;
    let wanted = checked.stored_bytes.saturating_mul(COMPACT_RATIO);
    if file_bytes < COMPACT_BYTES_MIN.max(wanted) {
        return Ok(());
    }
    guard(|| {
        checked
            .database
            .compact()
            .map(|_| ())
            .map_err(JournalError::store)
    })
}

fn unix_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| {
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    })
}

fn mixed_up() -> JournalError {
    JournalError::Store {
        what: "a change was answered with another's answer".to_owned(),
    }
}
