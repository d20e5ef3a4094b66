//! What the journal keeps of a job beside its request: which circuit, which input, how
//! urgent, until when.
//!
//! Not the journal, which does not look into these bytes. The invariant: what this
//! engine wrote it reads back; bytes of another version are none.

use std::time::{Duration, Instant, UNIX_EPOCH};

use cuzk_filecoin::CircuitId;
use cuzk_journal::JobOptions as StoredOptions;
use cuzk_scheduler::clock;
use cuzk_scheduler::priority::Priority;

use super::registry::Digest;

/// Returns the options that the journal keeps of a job.
pub(in crate::engine) fn stored_options(
    (circuit, digest): (CircuitId, Digest),
    partitions: usize,
    priority: Priority,
    deadline: Option<Duration>,
) -> StoredOptions {
    let deadline = deadline.and_then(|deadline| {
        let at = clock::wall().checked_add(deadline)?;
        u64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
    });
    StoredOptions {
        kind: write_kind(circuit, digest),
        partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
        priority: priority as u8,
        deadline_unix_ms: deadline,
    }
}

/// Returns the circuit and the request's digest, as text.
fn write_kind(circuit: CircuitId, digest: Digest) -> Vec<u8> {
    let CircuitId { kind, sector_size } = circuit;
    let digest = blake3::Hash::from_bytes(digest).to_hex();
    format!("{kind} {sector_size} {digest}").into_bytes()
}

/// Reads the circuit and the digest; none for text of another version.
pub(in crate::engine) fn parse_kind(kind: &[u8]) -> Option<(CircuitId, Digest)> {
    let mut words = std::str::from_utf8(kind).ok()?.split(' ');
    let circuit = CircuitId {
        kind: words.next()?.parse().ok()?,
        sector_size: words.next()?.parse().ok()?,
    };
    let digest = blake3::Hash::from_hex(words.next()?).ok()?;
    words.next().is_none().then_some((circuit, digest.into()))
}

/// Returns a time of the wall clock on the process's clock; now, if that clock does not
/// reach so far.
pub(in crate::engine) fn instant_of(unix_ms: u64) -> Instant {
    let (now, now_unix) = (clock::now(), clock::wall());
    let at = UNIX_EPOCH + Duration::from_millis(unix_ms);
    let instant = match at.duration_since(now_unix) {
        Ok(left) => now.checked_add(left),
        Err(gone) => now.checked_sub(gone.duration()),
    };
    instant.unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use cuzk_filecoin::{ProofKind, SectorSize};

    #[test]
    fn instants_are_as_far_from_now_as_they_were() {
        const FAR_S: u64 = 60;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let unix_ms = |s: u64| u64::try_from(now.as_millis()).unwrap() + s * 1000;
        let before = Instant::now();
        let [past, later] = [unix_ms(0) - FAR_S * 1000, unix_ms(FAR_S)].map(instant_of);
        let after = Instant::now();
        let far = Duration::from_secs(FAR_S);
        // Milliseconds are cut off.
        let near = Duration::from_millis(2);
        assert!(past + far + near >= before && past + far <= after);
        assert!(later + near >= before + far && later <= after + far);
        // Wherever that is, it is not over.
        assert!(instant_of(u64::MAX) >= after);
    }

    #[test]
    fn a_jobs_kind_reads_back() {
        for kind in ProofKind::ALL {
            for sector_size in SectorSize::ALL {
                let circuit = CircuitId { kind, sector_size };
                let text = write_kind(circuit, [7; 32]);
                assert_eq!(parse_kind(&text), Some((circuit, [7; 32])));
                assert_eq!(parse_kind(&text[..text.len() - 1]), None);
                assert_eq!(parse_kind(&[&text[..], b" more"].concat()), None);
            }
        }
        assert_eq!(parse_kind(b""), None);
        assert_eq!(parse_kind(&[0xff; 80]), None);
    }
}
