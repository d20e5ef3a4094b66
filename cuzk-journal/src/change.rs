//! The changes to a journal.
//!
//! Each change checks everything that could refuse it before it writes anything. So a
//! refused change leaves no trace in the transaction that it shares with others.

use redb::{ReadableTable as _, ReadableTableMetadata as _};

use crate::job::{Accepted, End, State};
use crate::request::CHUNK_BYTES;
use crate::row::{Phase, Row, partition_key, seal, unseal};
use crate::tables::{Tables, find};
use crate::{JobOptions, JournalError, Limits};

/// A change, with all its inputs.
#[derive(Debug)]
pub(crate) enum Change {
    Accept {
        id: String,
        options: JobOptions,
        digest: [u8; 32],
        /// The request's length before compression.
        request_bytes: u64,
        compressed: Vec<u8>,
    },
    Finish {
        id: String,
        partition: u32,
        proof: Vec<u8>,
    },
    End {
        id: String,
        end: End,
    },
    Forget {
        id: String,
    },
    /// Removes the jobs that were accepted with this sequence or a later one.
    Withdraw {
        from: u64,
    },
    /// Does only the work of every transaction: old results expire.
    Expire,
}

/// The answer of a change.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Accepted(Accepted),
    /// True if the change had something to do.
    Done(bool),
}

/// The totals that a transaction carries beside its tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) next_sequence: u64,
    /// The uncompressed request bytes of all pending jobs.
    pub(crate) request_bytes: u64,
}

/// The time of a change, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The clock's time.
    pub(crate) unix_ms: u64,
    /// The time by which results age ([`crate::aging`]).
    pub(crate) aging_ms: u64,
}

/// A write transaction with its limits and its time.
pub(crate) struct Step<'a, 't> {
    pub(crate) tables: &'a mut Tables<'t>,
    pub(crate) totals: &'a mut Totals,
    pub(crate) limits: &'a Limits,
    pub(crate) now: Now,
}

impl Step<'_, '_> {
    pub(crate) fn apply(&mut self, change: Change) -> Result<Answer, JournalError> {
        match change {
            Change::Accept {
                id,
                options,
                digest,
                request_bytes,
                compressed,
            } => self
                .accept(&id, options, digest, request_bytes, &compressed)
                .map(Answer::Accepted),
            Change::Finish {
                id,
                partition,
                proof,
            } => self.finish(&id, partition, proof).map(Answer::Done),
            Change::End { id, end } => self.end(&id, end).map(Answer::Done),
            Change::Forget { id } => self.forget(&id).map(Answer::Done),
            Change::Withdraw { from } => self.withdraw(from).map(Answer::Done),
            Change::Expire => Ok(Answer::Done(false)),
        }
    }

    fn accept(
        &mut self,
        id: &str,
        options: JobOptions,
        digest: [u8; 32],
        request_bytes: u64,
        compressed: &[u8],
    ) -> Result<Accepted, JournalError> {
        if let Some(row) = find(&self.tables.jobs, id)? {
            return attach(id, &row, &digest).map(Accepted::Attached);
        }
        let pending = self.tables.pending()?;
        room(
            self.limits,
            pending,
            self.totals.request_bytes,
            request_bytes,
        )?;

        let sequence = self.totals.next_sequence;
        self.totals.next_sequence += 1;
        self.totals.request_bytes += request_bytes;
        for (chunk, bytes) in (0u32..).zip(compressed.chunks(CHUNK_BYTES)) {
            self.tables
                .requests
                .insert((sequence, chunk), bytes)
                .map_err(JournalError::store)?;
        }
        self.tables
            .order
            .insert(sequence, id.as_bytes())
            .map_err(JournalError::store)?;
        let row = Row {
            sequence,
            digest,
            options,
            accepted_unix_ms: self.now.unix_ms,
            phase: Phase::Pending {
                request_bytes,
                stored_bytes: compressed.len() as u64,
            },
        };
        self.tables.put(id, &row)?;
        Ok(Accepted::New)
    }

    fn finish(&mut self, id: &str, partition: u32, proof: Vec<u8>) -> Result<bool, JournalError> {
        let row = self.known(id)?;
        if partition >= row.options.partitions {
            return Err(JournalError::InvalidInput {
                field: "partition",
                expected: format!("below {}, as job {id:?} has", row.options.partitions),
                got: partition.to_string(),
            });
        }
        if let Phase::Ended { end, .. } = &row.phase {
            return Err(ended(id, end));
        }
        let key = partition_key(row.sequence, partition);
        let at = (row.sequence, partition);
        let stored = self.tables.partitions.get(at);
        let stored = stored.map_err(JournalError::store)?;
        // A proof that can no longer be read is replaced like any other.
        if stored.is_some_and(|stored| unseal(&key, stored.value()) == Some(&proof[..])) {
            return Ok(false);
        }
        self.tables
            .partitions
            .insert(at, seal(&key, proof).as_slice())
            .map_err(JournalError::store)?;
        Ok(true)
    }

    fn end(&mut self, id: &str, end: End) -> Result<bool, JournalError> {
        let mut row = self.known(id)?;
        if let Phase::Ended { end: kept, .. } = &row.phase {
            return if *kept == end {
                Ok(false)
            } else {
                Err(ended(id, kept))
            };
        }
        let (request_bytes, _) = row.request_bytes();
        self.totals.request_bytes = self.totals.request_bytes.saturating_sub(request_bytes);
        self.tables.remove_pending(row.sequence)?;
        let unix_ms = self.end_unix_ms()?;
        self.tables
            .results
            .insert((unix_ms, row.sequence), id.as_bytes())
            .map_err(JournalError::store)?;
        row.phase = Phase::Ended { unix_ms, end };
        self.tables.put(id, &row)?;
        Ok(true)
    }

    /// Returns the end time of a job that ends now. It is later than all other end
    /// times, so that the oldest result is the one written first. This holds also if
    /// the clock is set back, or stands still while several jobs end.
    fn end_unix_ms(&self) -> Result<u64, JournalError> {
        let newest = self.tables.results.last().map_err(JournalError::store)?;
        let after = newest.map_or(0, |(at, _)| at.value().0.saturating_add(1));
        Ok(self.now.aging_ms.max(after))
    }

    fn forget(&mut self, id: &str) -> Result<bool, JournalError> {
        match find(&self.tables.jobs, id) {
            Ok(None) => Ok(false),
            Ok(Some(row)) => {
                let (request_bytes, _) = row.request_bytes();
                self.totals.request_bytes = self.totals.request_bytes.saturating_sub(request_bytes);
                self.tables.remove(id, &row)?;
                Ok(true)
            }
            Err(JournalError::DamagedJob { .. }) => {
                self.tables.remove_damaged(id)?;
                self.totals.request_bytes = self.recount()?;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn withdraw(&mut self, from: u64) -> Result<bool, JournalError> {
        let mut ids = Vec::new();
        let accepted = self.tables.order.range(from..);
        for entry in accepted.map_err(JournalError::store)? {
            let (_, id) = entry.map_err(JournalError::store)?;
            ids.push(String::from_utf8_lossy(id.value()).into_owned());
        }
        for id in &ids {
            self.forget(id)?;
        }
        Ok(!ids.is_empty())
    }

    /// Removes results that are too old or too many. Returns true if there were any.
    pub(crate) fn expire(&mut self) -> Result<bool, JournalError> {
        let mut any = false;
        loop {
            let count = self.tables.results.len().map_err(JournalError::store)?;
            let oldest = match self.tables.results.first().map_err(JournalError::store)? {
                Some((at, id)) => (at.value(), id.value().to_vec()),
                None => return Ok(any),
            };
            let ((ended_unix_ms, sequence), id) = oldest;
            let expired = is_expired(self.limits, self.now.aging_ms, ended_unix_ms);
            if count <= self.limits.results_max && !expired {
                return Ok(any);
            }
            self.tables
                .results
                .remove((ended_unix_ms, sequence))
                .map_err(JournalError::store)?;
            self.tables
                .jobs
                .remove(id.as_slice())
                .map_err(JournalError::store)?;
            any = true;
        }
    }

    fn known(&self, id: &str) -> Result<Row, JournalError> {
        find(&self.tables.jobs, id)?.ok_or_else(|| JournalError::Unknown { id: id.to_owned() })
    }

    /// Computes the total request bytes from the rows, because a removed row did not
    /// tell its share.
    fn recount(&self) -> Result<u64, JournalError> {
        let mut sum = 0;
        for entry in self.tables.jobs.iter().map_err(JournalError::store)? {
            let (id, stored) = entry.map_err(JournalError::store)?;
            let row = std::str::from_utf8(id.value())
                .ok()
                .and_then(|id| Row::decode(id, stored.value()).ok());
            sum += row.map_or(0, |row| row.request_bytes().0);
        }
        Ok(sum)
    }
}

/// Returns true if a result written at `ended_ms` has expired at `aging_ms`.
pub(crate) fn is_expired(limits: &Limits, aging_ms: u64, ended_ms: u64) -> bool {
    u128::from(aging_ms.saturating_sub(ended_ms)) >= limits.result_age.as_millis()
}

/// Returns the state of an existing job to a caller that submits it again. Fails if the
/// input differs.
pub(crate) fn attach(id: &str, row: &Row, digest: &[u8; 32]) -> Result<State, JournalError> {
    if row.digest == *digest {
        Ok(row.state())
    } else {
        Err(JournalError::OtherInput { id: id.to_owned() })
    }
}

/// Fails if one more job with this request does not fit.
pub(crate) fn room(
    limits: &Limits,
    jobs: u64,
    request_bytes: u64,
    more_bytes: u64,
) -> Result<(), JournalError> {
    let full = |what, used: u64, more: u64, max| {
        if used.saturating_add(more) <= max {
            return Ok(());
        }
        Err(JournalError::Full {
            what,
            used,
            more,
            max,
        })
    };
    full("jobs", jobs, 1, limits.jobs_max)?;
    full(
        "request bytes",
        request_bytes,
        more_bytes,
        limits.request_bytes_max,
    )
}

fn ended(id: &str, end: &End) -> JournalError {
    JournalError::Ended {
        id: id.to_owned(),
        end: end.name(),
    }
}
