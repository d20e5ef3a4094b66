//! A request on disk: compressed, in chunks that fit the store's pages, under the
//! digest of the input that an id stands for.

use std::io::{self, Read};

use redb::ReadTransaction;

use crate::JournalError;
use crate::job::JobOptions;
use crate::row::Phase;
use crate::tables::{REQUESTS, find_in};

/// The length of the largest stored value. With its key and the page's own fields it
/// fits a page of 256 KiB. One more byte would take a page of 512 KiB.
pub(crate) const CHUNK_BYTES: usize = (256 << 10) - 256;

/// Level 1 compresses base64 in JSON to a sixth, at several hundred MB/s. Higher levels
/// cost more time than they save on the disk.
const LEVEL: i32 = 1;

/// Returns the digest of the input: its kind, its number of partitions, and its bytes.
pub(crate) fn digest(options: &JobOptions, request: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(options.kind.len() as u64).to_le_bytes());
    hasher.update(&options.kind);
    hasher.update(&options.partitions.to_le_bytes());
    hasher.update(request);
    *hasher.finalize().as_bytes()
}

/// Returns the stored form of a request.
pub(crate) fn compress(request: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(request, LEVEL)
}

/// Reads the request of a pending job, and checks it against its digest.
pub(crate) fn read(transaction: &ReadTransaction, id: &str) -> Result<Vec<u8>, JournalError> {
    let row =
        find_in(transaction, id)?.ok_or_else(|| JournalError::Unknown { id: id.to_owned() })?;
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
    let request = decompress(chunks, request_bytes);
    // The job is not damaged: its request is whole when the disk can be read again.
    if let Some(error) = unread {
        return Err(error);
    }
    match request {
        Ok(request) if digest(&row.options, &request) == row.digest => Ok(request),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(JournalError::store_says(
            format!("no memory for a request of {request_bytes} bytes"),
        )),
        Ok(_) | Err(_) => Err(JournalError::DamagedJob {
            id: id.to_owned(),
            what: "request",
        }),
    }
}

/// Returns the request whose stored form is `chunks`. Fails if they do not hold exactly
/// `request_bytes`.
fn decompress(
    chunks: impl Iterator<Item = io::Result<Vec<u8>>>,
    request_bytes: u64,
) -> io::Result<Vec<u8>> {
    let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let capacity = usize::try_from(request_bytes).map_err(|_| wrong("length"))?;
    let mut request = Vec::new();
    request
        .try_reserve_exact(capacity)
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    let stored = Chunks {
        chunks,
        current: io::Cursor::default(),
    };
    zstd::Decoder::new(stored)?
        .take(request_bytes.saturating_add(1))
        .read_to_end(&mut request)?;
    if request.len() != capacity {
        return Err(wrong("length"));
    }
    Ok(request)
}

/// A reader of chunks, one after the other.
struct Chunks<I> {
    chunks: I,
    current: io::Cursor<Vec<u8>>,
}

impl<I: Iterator<Item = io::Result<Vec<u8>>>> Read for Chunks<I> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            match self.chunks.next() {
                Some(chunk) => self.current = io::Cursor::new(chunk?),
                None => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Row;
    use crate::tables::Tables;
    use crate::{Journal, Limits};

    /// Reads a request of two bytes whose row says that it has another length.
    fn read_with_length(request_bytes: u64) -> JournalError {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("j");
        let journal = Journal::open(&path, Limits::default()).unwrap();
        let options = JobOptions {
            partitions: 1,
            ..JobOptions::default()
        };
        journal.accept("a", &options, b"in").unwrap();
        drop(journal);
        let database = redb::Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut tables = Tables::open(&transaction).unwrap();
        let row = Row {
            phase: Phase::Pending {
                request_bytes,
                stored_bytes: 2,
            },
            ..crate::tables::find(&tables.jobs, "a").unwrap().unwrap()
        };
        tables.put("a", &row).unwrap();
        drop(tables);
        transaction.commit().unwrap();
        drop(database);
        let journal = Journal::open(&path, Limits::default()).unwrap();
        journal.request("a").unwrap_err()
    }

    /// Its row says that it has more bytes than any machine.
    #[test]
    fn a_request_without_memory_for_it_is_not_said_to_be_damaged() {
        let error = read_with_length(1 << 62);
        let is_for_now =
            matches!(&error, JournalError::Store { what, .. } if what.contains("no memory"));
        assert!(is_for_now, "{error}");
    }

    #[test]
    fn a_request_that_is_longer_than_its_row_says_is_damaged() {
        let error = read_with_length(1);
        let is_damaged = matches!(
            error,
            JournalError::DamagedJob {
                what: "request",
                ..
            }
        );
        assert!(is_damaged, "{error}");
    }
}
