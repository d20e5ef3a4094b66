//! The contents of the file: six tables, the look-ups in them, and the one place that
//! removes a job from all of them.
//!
//! Invariant, between transactions: a pending row in `jobs` has one entry in `order`. A
//! row that has ended has one entry in `results`, and none in `requests` and
//! `partitions`.

use redb::{
    ReadTransaction, ReadableTable, ReadableTableMetadata as _, Table, TableDefinition,
    WriteTransaction,
};

use crate::JournalError;
use crate::row::{Phase, Row};

/// The format of the rows. It is written first, and its place never changes.
pub(crate) const FORMAT: u64 = 1;
pub(crate) const FORMAT_KEY: &str = "format";

pub(crate) type Bytes = &'static [u8];

/// "format" → [`FORMAT`], little endian.
pub(crate) const META: TableDefinition<Bytes, Bytes> = TableDefinition::new("cuzk-journal");
/// id → [`Row`].
pub(crate) const JOBS: TableDefinition<Bytes, Bytes> = TableDefinition::new("jobs");
/// sequence → id, of pending jobs.
pub(crate) const ORDER: TableDefinition<u64, Bytes> = TableDefinition::new("order");
/// (end time, made later than the one before, sequence) → id.
pub(crate) const RESULTS: TableDefinition<(u64, u64), Bytes> = TableDefinition::new("results");
/// (sequence, chunk) → compressed bytes.
pub(crate) const REQUESTS: TableDefinition<(u64, u32), Bytes> = TableDefinition::new("requests");
/// (sequence, partition) → sealed proof.
pub(crate) const PARTITIONS: TableDefinition<(u64, u32), Bytes> =
    TableDefinition::new("partitions");

/// The tables of a write transaction.
pub(crate) struct Tables<'t> {
    pub(crate) jobs: Table<'t, Bytes, Bytes>,
    pub(crate) order: Table<'t, u64, Bytes>,
    pub(crate) results: Table<'t, (u64, u64), Bytes>,
    pub(crate) requests: Table<'t, (u64, u32), Bytes>,
    pub(crate) partitions: Table<'t, (u64, u32), Bytes>,
}

impl<'t> Tables<'t> {
    /// Opens all tables, and creates those that are missing.
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, JournalError> {
        Ok(Self {
            jobs: transaction.open_table(JOBS).map_err(JournalError::store)?,
            order: transaction.open_table(ORDER).map_err(JournalError::store)?,
            results: transaction
                .open_table(RESULTS)
                .map_err(JournalError::store)?,
            requests: transaction
                .open_table(REQUESTS)
                .map_err(JournalError::store)?,
            partitions: transaction
                .open_table(PARTITIONS)
                .map_err(JournalError::store)?,
        })
    }

    pub(crate) fn put(&mut self, id: &str, row: &Row) -> Result<(), JournalError> {
        let stored = row.encode(id)?;
        self.jobs
            .insert(id.as_bytes(), stored.as_slice())
            .map_err(JournalError::store)?;
        Ok(())
    }

    /// Removes the entries of a pending job beside its row.
    pub(crate) fn remove_pending(&mut self, sequence: u64) -> Result<(), JournalError> {
        self.order.remove(sequence).map_err(JournalError::store)?;
        self.requests
            .retain_in((sequence, 0)..=(sequence, u32::MAX), |_, _| false)
            .map_err(JournalError::store)?;
        self.partitions
            .retain_in((sequence, 0)..=(sequence, u32::MAX), |_, _| false)
            .map_err(JournalError::store)?;
        Ok(())
    }

    /// Removes a job from all tables.
    pub(crate) fn remove(&mut self, id: &str, row: &Row) -> Result<(), JournalError> {
        match row.phase {
            Phase::Pending { .. } => self.remove_pending(row.sequence)?,
            Phase::Ended { unix_ms, .. } => {
                self.results
                    .remove((unix_ms, row.sequence))
                    .map_err(JournalError::store)?;
            }
        }
        self.jobs
            .remove(id.as_bytes())
            .map_err(JournalError::store)?;
        Ok(())
    }

    /// Removes a job whose row cannot be read from all tables.
    pub(crate) fn remove_damaged(&mut self, id: &str) -> Result<(), JournalError> {
        let mut sequences = Vec::new();
        for entry in self.order.iter().map_err(JournalError::store)? {
            let (sequence, at) = entry.map_err(JournalError::store)?;
            if at.value() == id.as_bytes() {
                sequences.push(sequence.value());
            }
        }
        for sequence in sequences {
            self.remove_pending(sequence)?;
        }
        self.results
            .retain(|_, at| at != id.as_bytes())
            .map_err(JournalError::store)?;
        self.jobs
            .remove(id.as_bytes())
            .map_err(JournalError::store)?;
        Ok(())
    }

    pub(crate) fn pending(&self) -> Result<u64, JournalError> {
        self.order.len().map_err(JournalError::store)
    }
}

/// Returns the row of `id`.
pub(crate) fn find(
    jobs: &impl ReadableTable<Bytes, Bytes>,
    id: &str,
) -> Result<Option<Row>, JournalError> {
    let stored = jobs.get(id.as_bytes()).map_err(JournalError::store)?;
    stored
        .map(|stored| Row::decode(id, stored.value()))
        .transpose()
}

/// Returns the row of `id`, in a read transaction.
pub(crate) fn find_in(
    transaction: &ReadTransaction,
    id: &str,
) -> Result<Option<Row>, JournalError> {
    let jobs = transaction.open_table(JOBS).map_err(JournalError::store)?;
    find(&jobs, id)
}
