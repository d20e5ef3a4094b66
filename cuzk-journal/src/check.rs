//! The checks of a file before it is used: it must be a journal, and whole.
//!
//! Invariant: this module only reads. It visits each row of each small table, and
//! follows each reference between tables. Requests are large, so they are checked
//! against their digest when they are read.
//!
//! A row with a wrong checksum concerns its job only ([`crate::Resumable::damaged`]). A
//! table that disagrees with its root, or a row that disagrees with an index, makes the
//! file refused.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    ReadableTableMetadata as _, StorageBackend as _, StorageError, TableError,
};

use crate::change::Totals;
use crate::held::HeldFile;
use crate::row::{Phase, Row, unseal};
use crate::store::guard;
use crate::tables::{FORMAT, FORMAT_KEY, JOBS, META, ORDER, PARTITIONS, REQUESTS, RESULTS};
use crate::{JournalError, Usage};

/// The memory in which the store caches pages of the file.
const CACHE_BYTES: usize = 32 << 20;

/// The first bytes of every file of the store.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// A file that passed all checks.
pub(crate) struct Checked {
    pub(crate) database: Database,
    pub(crate) totals: Totals,
    pub(crate) usage: Usage,
    /// The compressed bytes of all pending requests in the file.
    pub(crate) stored_bytes: u64,
    /// The time at which the newest result was written, if there is one.
    pub(crate) newest_result_ms: Option<u64>,
}

/// Opens the store in `file`, whether or not its changes are held back.
pub(crate) fn open_store(file: HeldFile) -> Result<Database, DatabaseError> {
    Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(file)
}

/// Opens and checks the store in `file`, whose changes are held back.
pub(crate) fn open(path: &Path, file: HeldFile) -> Result<Checked, JournalError> {
    let checked = guard(|| {
        let database = open_store(file).map_err(|error| refused(path, error))?;
        let transaction = database.begin_read().map_err(JournalError::store)?;
        check_format(path, &transaction)?;
        let mut checked = Checked {
            database,
            totals: Totals::default(),
            usage: Usage::default(),
            stored_bytes: 0,
            newest_result_ms: None,
        };
        check_rows(&transaction, &mut checked)?;
        drop(transaction);
        Ok(checked)
    });
    checked.map_err(|error| match error {
        JournalError::Store { what, .. } => damaged(path, what),
        error => error,
    })
}

/// Fails if the file does not begin with the store's magic bytes.
pub(crate) fn check_magic(path: &Path, file: &HeldFile) -> Result<(), JournalError> {
    let failed = |error| JournalError::io(path, "read", error);
    let file_bytes = file.len().map_err(failed)?;
    let mut start = MAGIC.to_vec();
    start.truncate(usize::try_from(file_bytes).unwrap_or(usize::MAX));
    file.read(0, &mut start).map_err(failed)?;
    if start == MAGIC {
        return Ok(());
    }
    if MAGIC.starts_with(&start) {
        return Err(damaged(
            path,
            format!("the file has only {} bytes", start.len()),
        ));
    }
    Err(JournalError::Foreign {
        path: path.to_owned(),
        what: "its first bytes are not a store's".to_owned(),
    })
}

/// Returns the problem of a file that is no journal, with its remedy. There is none if no file is
/// there, or if it begins as a journal does. [`Journal::open`](crate::Journal::open) checks all of it.
#[must_use]
pub fn other_file_problem(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    let mut start = Vec::new();
    let is_journal = metadata.is_file() && {
        let read = File::open(path).map(|file| file.take(MAGIC.len() as u64));
        // A file that this user may not read is the engine's to judge.
        read.ok()?.read_to_end(&mut start).ok()?;
        start == MAGIC
    };
    (!is_journal).then(|| "it is there, and no journal; name another file".to_owned())
}

fn check_format(path: &Path, transaction: &ReadTransaction) -> Result<(), JournalError> {
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => {
            return Err(JournalError::Foreign {
                path: path.to_owned(),
                what: "it is a store of another program".to_owned(),
            });
        }
        Err(error) => return Err(JournalError::store(error)),
    };
    let stored = meta
        .get(FORMAT_KEY.as_bytes())
        .map_err(JournalError::store)?;
    let found = stored
        .as_ref()
        .and_then(|stored| unseal(FORMAT_KEY.as_bytes(), stored.value()))
        .and_then(|body| body.try_into().ok())
        .map(u64::from_le_bytes);
    match found {
        Some(FORMAT) => Ok(()),
        Some(found) if found > FORMAT => Err(JournalError::NewerFormat {
            path: path.to_owned(),
            found,
            known: FORMAT,
        }),
        Some(_) | None => Err(damaged(path, "its format number cannot be read".to_owned())),
    }
}

fn check_rows(transaction: &ReadTransaction, checked: &mut Checked) -> Result<(), JournalError> {
    let jobs = transaction.open_table(JOBS).map_err(JournalError::store)?;
    let order = transaction.open_table(ORDER).map_err(JournalError::store)?;
    let results = transaction
        .open_table(RESULTS)
        .map_err(JournalError::store)?;
    let partitions = transaction
        .open_table(PARTITIONS)
        .map_err(JournalError::store)?;
    let requests = transaction
        .open_table(REQUESTS)
        .map_err(JournalError::store)?;

    let mut seen = 0;
    for entry in jobs.iter().map_err(JournalError::store)? {
        let (id, stored) = entry.map_err(JournalError::store)?;
        let id = std::str::from_utf8(id.value()).map_err(|_| disagree("jobs"))?;
        seen += 1;
        let Ok(row) = Row::decode(id, stored.value()) else {
            continue;
        };
        let (request_bytes, stored_bytes) = row.request_bytes();
        checked.usage.request_bytes += request_bytes;
        checked.stored_bytes += stored_bytes;
        checked.totals.next_sequence = checked.totals.next_sequence.max(after(row.sequence));
        let index = match row.phase {
            Phase::Pending { .. } => order.get(row.sequence),
            Phase::Ended { unix_ms, .. } => results.get((unix_ms, row.sequence)),
        };
        let index = index.map_err(JournalError::store)?;
        if index.is_none_or(|index| index.value() != id.as_bytes()) {
            return Err(disagree("jobs"));
        }
    }
    same("jobs", seen, jobs.len())?;
    checked.totals.request_bytes = checked.usage.request_bytes;
    let newest = results.last().map_err(JournalError::store)?;
    checked.newest_result_ms = newest.map(|(at, _)| at.value().0);
    checked.usage.jobs = order.len().map_err(JournalError::store)?;
    checked.usage.results = results.len().map_err(JournalError::store)?;
    if checked.usage.jobs.checked_add(checked.usage.results) != Some(seen) {
        return Err(disagree("jobs"));
    }
    let mut indexed = 0;
    for entry in order.iter().map_err(JournalError::store)? {
        let (sequence, id) = entry.map_err(JournalError::store)?;
        checked.totals.next_sequence = checked.totals.next_sequence.max(after(sequence.value()));
        indexed += u64::from(jobs.get(id.value()).map_err(JournalError::store)?.is_some());
    }
    for entry in results.iter().map_err(JournalError::store)? {
        let (_, id) = entry.map_err(JournalError::store)?;
        indexed += u64::from(jobs.get(id.value()).map_err(JournalError::store)?.is_some());
    }
    same("order and results", indexed, Ok(seen))?;
    let mut count = 0;
    for entry in partitions.iter().map_err(JournalError::store)? {
        let (at, _) = entry.map_err(JournalError::store)?;
        let known = order.get(at.value().0).map_err(JournalError::store)?;
        if known.is_none() {
            return Err(disagree("partitions"));
        }
        count += 1;
    }
    same("partitions", count, partitions.len())?;
    let orphan = requests
        .last()
        .map_err(JournalError::store)?
        .is_some_and(|(at, _)| after(at.value().0) > checked.totals.next_sequence);
    if orphan {
        return Err(disagree("requests"));
    }
    Ok(())
}

fn after(sequence: u64) -> u64 {
    sequence.saturating_add(1)
}

fn same(
    table: &'static str,
    seen: u64,
    said: Result<u64, StorageError>,
) -> Result<(), JournalError> {
    if seen == said.map_err(JournalError::store)? {
        Ok(())
    } else {
        Err(disagree(table))
    }
}

fn disagree(table: &'static str) -> JournalError {
    JournalError::store_says(format!(
        "the table {table:?} disagrees with the other tables"
    ))
}

fn damaged(path: &Path, what: String) -> JournalError {
    JournalError::Damaged {
        path: path.to_owned(),
        what,
    }
}

/// Translates the store's error on opening.
fn refused(path: &Path, error: DatabaseError) -> JournalError {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    match error {
        DatabaseError::Storage(StorageError::Io(error))
            if !matches!(error.kind(), InvalidData | UnexpectedEof) =>
        {
            JournalError::io(path, "open", error)
        }
        DatabaseError::UpgradeRequired(format) => JournalError::Foreign {
            path: path.to_owned(),
            what: format!("it is a store of the old file format {format}"),
        },
        error => damaged(path, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::disk::Disk;
    use crate::opening::open_checked;
    use crate::request::compress;
    use crate::row::seal;
    use crate::tables::Tables;
    use crate::{End, JobOptions, Journal, Limits};

    fn journal_at(path: &Path) -> Result<Journal, JournalError> {
        Journal::open_with_clock(path, Limits::default(), || 0)
    }

    /// Makes a journal with two pending jobs and one that ended.
    fn make(path: &Path) {
        let _ = std::fs::remove_file(path);
        let journal = journal_at(path).unwrap();
        let options = JobOptions {
            partitions: 1,
            ..JobOptions::default()
        };
        for id in ["a", "b", "c"] {
            journal.accept(id, &options, id.as_bytes()).unwrap();
            journal.finish_partition(id, 0, b"proof").unwrap();
        }
        journal.end("a", End::Cancelled).unwrap();
    }

    type Tampering = fn(&mut Tables<'_>);

    /// Changes the tables of a journal.
    fn tamper(path: &Path, tampering: Tampering) {
        let database = Database::open(path).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut tables = Tables::open(&transaction).unwrap();
        tampering(&mut tables);
        drop(tables);
        transaction.commit().unwrap();
    }

    /// Makes a journal whose format field is `format`.
    fn with_format(path: &Path, format: &[u8]) {
        let _ = std::fs::remove_file(path);
        Journal::open(path, Limits::default()).unwrap();
        let database = Database::open(path).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut meta = transaction.open_table(META).unwrap();
        meta.insert(FORMAT_KEY.as_bytes(), format).unwrap();
        drop(meta);
        transaction.commit().unwrap();
    }

    #[test]
    fn another_format_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        let sealed = |format: u64| seal(FORMAT_KEY.as_bytes(), format.to_le_bytes().to_vec());
        let newer: fn(&JournalError) -> bool = |error| {
            matches!(
                error,
                JournalError::NewerFormat {
                    found: 2,
                    known: 1,
                    ..
                }
            )
        };
        let damaged: fn(&JournalError) -> bool =
            |error| matches!(error, JournalError::Damaged { .. });
        for (format, expected) in [
            (sealed(FORMAT + 1), newer),
            (sealed(FORMAT - 1), damaged),
            (FORMAT.to_le_bytes().to_vec(), damaged),
            (vec![], damaged),
        ] {
            with_format(&path, &format);
            let before = std::fs::read(&path).unwrap();
            let error = Journal::open(&path, Limits::default()).unwrap_err();
            assert!(expected(&error), "{error}");
            assert!(error.to_string().contains("nothing was written"), "{error}");
            assert!(std::fs::read(&path).unwrap() == before);
        }
    }

    #[test]
    fn tables_that_contradict_each_other_are_refused() {
        let cases: [(&str, Tampering); 8] = [
            ("jobs", |tables| {
                drop(tables.jobs.remove(&b"b"[..]).unwrap())
            }),
            ("jobs", |tables| drop(tables.order.remove(1).unwrap())),
            ("jobs", |tables| {
                drop(tables.order.insert(1, &b"c"[..]).unwrap())
            }),
            ("jobs", |tables| {
                drop(tables.order.insert(7, &b"b"[..]).unwrap())
            }),
            ("jobs", |tables| {
                drop(tables.results.remove((0, 0)).unwrap())
            }),
            ("order and results", |tables| {
                drop(tables.jobs.insert(&b"b"[..], &b"unreadable"[..]).unwrap());
                drop(tables.order.insert(1, &b"nobody"[..]).unwrap());
            }),
            ("partitions", |tables| {
                drop(tables.partitions.insert((0, 0), &b"proof"[..]).unwrap());
            }),
            ("requests", |tables| {
                drop(tables.requests.insert((9, 0), &b"request"[..]).unwrap());
            }),
        ];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        for (number, (table, tampering)) in cases.into_iter().enumerate() {
            make(&path);
            drop(journal_at(&path).unwrap());
            tamper(&path, tampering);
            let error = journal_at(&path).unwrap_err();
            let said = format!("the table {table:?} disagrees");
            assert!(error.to_string().contains(&said), "{number}: {error}");
            assert!(matches!(error, JournalError::Damaged { .. }), "{number}");
        }
        // An unreadable row alone is its job's matter.
        make(&path);
        tamper(&path, |tables| {
            drop(tables.jobs.insert(&b"b"[..], &b"unreadable"[..]).unwrap());
        });
        let pending = journal_at(&path).unwrap().pending().unwrap();
        assert_eq!((pending.jobs.len(), pending.damaged.len()), (1, 1));
    }

    #[test]
    fn totals_are_those_of_the_pending_jobs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        make(&path);
        let file = File::options().read(true).write(true).open(&path);
        let (_, checked) = open_checked(&path, file.unwrap()).unwrap();
        let stored = ["b", "c"].map(|id| compress(id.as_bytes()).unwrap().len() as u64);
        assert_eq!(checked.stored_bytes, stored.iter().sum::<u64>());
        assert_eq!((checked.usage.jobs, checked.usage.request_bytes), (2, 2));
        assert_eq!(checked.totals.next_sequence, 3);
        assert_eq!(checked.newest_result_ms, Some(0));
    }

    /// A disk of which nothing can be read.
    #[derive(Debug)]
    struct Unreadable(io::ErrorKind);

    impl Disk for Unreadable {
        fn len(&self) -> io::Result<u64> {
            Ok(1 << 20)
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }

        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn forget_cached(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_said_to_be_damaged() {
        for (kind, is_damaged) in [
            (io::ErrorKind::PermissionDenied, false),
            (io::ErrorKind::InvalidData, true),
            (io::ErrorKind::UnexpectedEof, true),
        ] {
            let file = HeldFile::holding(Unreadable(kind)).unwrap();
            let Err(error) = open(Path::new("j"), file) else {
                panic!("nothing was read");
            };
            assert_eq!(
                matches!(error, JournalError::Damaged { .. }),
                is_damaged,
                "{error}"
            );
            assert_eq!(matches!(error, JournalError::Io { .. }), !is_damaged);
        }
    }
}
