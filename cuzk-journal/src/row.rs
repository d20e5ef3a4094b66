//! A job on disk: one row, sealed with a checksum over its key and its contents. The
//! store checks its pages only after a crash, so rows have checksums of their own.

use bincode::Options as _;
use serde::{Deserialize, Serialize};

use crate::JournalError;
use crate::job::{End, FAILURE_BYTES_MAX, JobOptions, KIND_BYTES_MAX, PROOF_BYTES_MAX, State};

const SEAL_BYTES: usize = 8;
/// The length of the largest row: its proof, which may be longer than a failure, its options,
/// and the few fixed fields.
const ROW_BYTES_MAX: u64 = (PROOF_BYTES_MAX + KIND_BYTES_MAX + 1024) as u64;
const _: () = assert!(FAILURE_BYTES_MAX <= PROOF_BYTES_MAX);

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The number of the job in the order of acceptance. It is the key of everything
    /// else of this job.
    pub(crate) sequence: u64,
    /// The digest of the input; see [`crate::request::digest`].
    pub(crate) digest: [u8; 32],
    pub(crate) options: JobOptions,
    pub(crate) accepted_unix_ms: u64,
    pub(crate) phase: Phase,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    Pending {
        /// The length of the request.
        request_bytes: u64,
        /// The length of its stored form.
        stored_bytes: u64,
    },
    Ended {
        unix_ms: u64,
        end: End,
    },
}

impl Row {
    pub(crate) fn encode(&self, id: &str) -> Result<Vec<u8>, JournalError> {
        let body = options().serialize(self).map_err(|error| {
            JournalError::store_says(format!("cannot encode job {id:?}: {error}"))
        })?;
        Ok(seal(id.as_bytes(), body))
    }

    pub(crate) fn decode(id: &str, stored: &[u8]) -> Result<Self, JournalError> {
        unseal(id.as_bytes(), stored)
            .and_then(|body| options().deserialize(body).ok())
            .ok_or_else(|| JournalError::DamagedJob {
                id: id.to_owned(),
                what: "state",
            })
    }

    pub(crate) fn state(&self) -> State {
        match &self.phase {
            Phase::Pending { .. } => State::Pending,
            Phase::Ended { end, .. } => State::Ended(end.clone()),
        }
    }

    /// Returns the length of the request while the job is pending, as submitted and as
    /// stored.
    pub(crate) fn request_bytes(&self) -> (u64, u64) {
        match self.phase {
            Phase::Pending {
                request_bytes,
                stored_bytes,
            } => (request_bytes, stored_bytes),
            Phase::Ended { .. } => (0, 0),
        }
    }
}

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_limit(ROW_BYTES_MAX)
}

/// Returns the key under which a partition's proof is sealed.
pub(crate) fn partition_key(sequence: u64, partition: u32) -> [u8; 12] {
    let mut key = [0; 12];
    let (first, last) = key.split_at_mut(8);
    first.copy_from_slice(&sequence.to_le_bytes());
    last.copy_from_slice(&partition.to_le_bytes());
    key
}

/// Returns `body` with a checksum over it and its key.
pub(crate) fn seal(key: &[u8], mut body: Vec<u8>) -> Vec<u8> {
    let seal = checksum(key, &body);
    body.extend_from_slice(&seal);
    body
}

/// Returns the body that was sealed under `key`, or `None` if it was changed.
pub(crate) fn unseal<'a>(key: &[u8], stored: &'a [u8]) -> Option<&'a [u8]> {
    let (body, seal) = stored.split_last_chunk::<SEAL_BYTES>()?;
    (checksum(key, body) == *seal).then_some(body)
}

fn checksum(key: &[u8], body: &[u8]) -> [u8; SEAL_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(body);
    let mut seal = [0; SEAL_BYTES];
    hasher.finalize_xof().fill(&mut seal);
    seal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_and_any_other_key_is_noticed() {
        let sealed = seal(b"key", b"some body".to_vec());
        assert_eq!(unseal(b"key", &sealed), Some(&b"some body"[..]));
        assert_eq!(unseal(b"kez", &sealed), None);
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(b"key", &flipped), None, "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(unseal(b"key", &sealed[..length]), None, "length {length}");
        }
    }

    #[test]
    fn a_proof_at_another_place_is_noticed() {
        let proof = seal(&partition_key(1, 2), b"proof".to_vec());
        assert_eq!(unseal(&partition_key(1, 2), &proof), Some(&b"proof"[..]));
        for (sequence, partition) in [(2, 1), (1, 3), (0, 2)] {
            assert_eq!(unseal(&partition_key(sequence, partition), &proof), None);
        }
    }

    #[test]
    fn the_largest_row_can_be_written_and_read() {
        for end in [
            End::Done(vec![7; PROOF_BYTES_MAX]),
            End::Failed("x".repeat(FAILURE_BYTES_MAX)),
        ] {
            let row = Row {
                sequence: u64::MAX,
                digest: [9; 32],
                options: JobOptions {
                    kind: vec![1; KIND_BYTES_MAX],
                    partitions: u32::MAX,
                    priority: u8::MAX,
                    deadline_unix_ms: Some(u64::MAX),
                },
                accepted_unix_ms: u64::MAX,
                phase: Phase::Ended {
                    unix_ms: u64::MAX,
                    end: end.clone(),
                },
            };
            let stored = row.encode("id").unwrap();
            let read = Row::decode("id", &stored).unwrap();
            assert_eq!(read.state(), State::Ended(end));
        }
        // A damaged length makes nobody ask for much more memory than that.
        const { assert!(ROW_BYTES_MAX < PROOF_BYTES_MAX as u64 * 2) };
    }

    /// The input is the body of a row. Each mutant is sealed.
    #[test]
    fn mutated_rows_are_read_or_damaged() {
        let row = |phase| Row {
            sequence: 7,
            digest: [9; 32],
            options: JobOptions {
                kind: b"porep".to_vec(),
                partitions: 10,
                priority: 2,
                deadline_unix_ms: Some(1_700_000_000_000),
            },
            accepted_unix_ms: 1_600_000_000_000,
            phase,
        };
        let pending = Phase::Pending {
            request_bytes: 70_000,
            stored_bytes: 50_000,
        };
        let ends = [End::Done(vec![7; 192]), End::Failed("no memory".to_owned())];
        let ended = ends.map(|end| Phase::Ended { unix_ms: 1, end });
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/rows");
        let corpus = [pending].into_iter().chain(ended);
        let corpus = corpus.fold(cuzk_fuzz::Corpus::read(folder), |corpus, phase| {
            corpus.with(options().serialize(&row(phase)).unwrap())
        });
        let decode = |body: &[u8]| {
            Row::decode("id", &seal(b"id", body.to_vec())).map(|row| {
                let again = Row::decode("id", &row.encode("id").unwrap()).unwrap();
                assert_eq!(format!("{again:?}"), format!("{row:?}"));
            })
        };
        let is_expected = |error: &JournalError| matches!(error, JournalError::DamagedJob { .. });
        corpus.fuzz_decoder("rows", 20_000, decode, is_expected);
    }
}
