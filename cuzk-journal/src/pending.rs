//! The jobs that have not ended, read from the store.

use redb::{ReadTransaction, ReadableTable as _};

use crate::row::{Row, partition_key, unseal};
use crate::tables::{JOBS, ORDER, PARTITIONS, find};
use crate::{DamagedJob, JournalError, PendingJob, Resumable};

/// Returns the jobs that have not ended, oldest first, without their requests.
pub(crate) fn read(transaction: &ReadTransaction) -> Result<Resumable, JournalError> {
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
}

/// Returns a pending job with its finished partitions, and the numbers of those whose proof
/// is damaged.
fn pending_job(
    id: String,
    row: Row,
    partitions: &redb::ReadOnlyTable<(u64, u32), &'static [u8]>,
) -> Result<PendingJob, JournalError> {
    let (request_bytes, _) = row.request_bytes();
    let (mut finished, mut damaged) = (Vec::new(), Vec::new());
    let range = partitions
        .range((row.sequence, 0)..=(row.sequence, u32::MAX))
        .map_err(JournalError::store)?;
    for entry in range {
        let (at, stored) = entry.map_err(JournalError::store)?;
        let (sequence, partition) = at.value();
        match unseal(&partition_key(sequence, partition), stored.value()) {
            Some(proof) => finished.push((partition, proof.to_vec())),
            None => damaged.push(partition),
        }
    }
    Ok(PendingJob {
        id,
        options: row.options,
        accepted_unix_ms: row.accepted_unix_ms,
        request_bytes,
        finished,
        damaged,
    })
}
