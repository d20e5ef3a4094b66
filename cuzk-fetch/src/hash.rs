//! The digest of a file that is hashed while it comes.
//!
//! The invariant: the state at a position is of exactly the bytes before it. The caller
//! rewinds to the first byte that was replaced.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use blake2b_simd::State;

use crate::Digest;

/// The bytes that are hashed at a time.
pub(crate) const STEP_BYTES: u64 = 1 << 20;

/// The bytes between two states that are kept. A rewind hashes at most so many bytes again.
const KEPT_EVERY_BYTES: u64 = 512 << 20;

/// The hash of a prefix of a file.
#[derive(Debug)]
pub(crate) struct PrefixHash {
    state: State,
    position: u64,
    /// Positions with their states, in their order.
    kept: Vec<(u64, State)>,
    buffer: Vec<u8>,
}

impl PrefixHash {
    pub(crate) fn new() -> Self {
        Self {
            state: State::new(),
            position: 0,
            kept: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Returns the number of bytes that were hashed.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Hashes the bytes of a file up to `end`, or less. One call hashes at most
    /// [`STEP_BYTES`] bytes.
    ///
    /// # Errors
    /// An error of the file system, also if the file is shorter.
    pub(crate) fn advance(&mut self, file: &File, end: u64) -> io::Result<()> {
        let bytes = end.saturating_sub(self.position).min(STEP_BYTES);
        self.buffer.resize(usize::try_from(bytes).unwrap_or(0), 0);
        file.read_exact_at(&mut self.buffer, self.position)?;
        self.state.update(&self.buffer);
        self.position += bytes;
        let last = self.kept.last().map_or(0, |(at, _)| *at);
        if self.position - last >= KEPT_EVERY_BYTES {
            self.kept.push((self.position, self.state.clone()));
        }
        Ok(())
    }

    /// Forgets the bytes from `position` on.
    pub(crate) fn rewind(&mut self, position: u64) {
        if position >= self.position {
            return;
        }
        self.kept.retain(|(at, _)| *at <= position);
        (self.position, self.state) = match self.kept.last() {
            Some((at, state)) => (*at, state.clone()),
            None => (0, State::new()),
        };
    }

    /// Returns the digest of the bytes that were hashed.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.state)
    }
}

/// Returns the digest of a file on the disk. `advanced` gets the number of bytes of each
/// step, and returns false to stop.
///
/// # Errors
/// An error of the file system. [`io::ErrorKind::Interrupted`] if `advanced` returned false.
pub fn file_digest(path: &Path, mut advanced: impl FnMut(u64) -> bool) -> io::Result<Digest> {
    let file = File::open(path)?;
    opened_digest(&file, &mut advanced)
}

/// Returns the digest of an opened file, as [`file_digest`] does.
pub(crate) fn opened_digest(
    file: &File,
    advanced: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Digest> {
    let length = file.metadata()?.len();
    let mut hash = PrefixHash::new();
    while hash.position() < length {
        let before = hash.position();
        hash.advance(file, length)?;
        if !advanced(hash.position() - before) {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
    Ok(hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_that_changed_is_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
        let length = bytes.len() as u64;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(
            file_digest(&path, |_| true).unwrap(),
            Digest::of_bytes(&bytes)
        );
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut hash = PrefixHash::new();
        hash.advance(&file, length).unwrap();
        hash.advance(&file, length).unwrap();
        bytes[1_500_000] ^= 1;
        file.write_all_at(&bytes[1_500_000..1_500_001], 1_500_000)
            .unwrap();
        hash.rewind(1_500_000);
        while hash.position() < length {
            hash.advance(&file, length).unwrap();
        }
        hash.rewind(length);
        assert_eq!(hash.digest(), Digest::of_bytes(&bytes));
        assert!(hash.advance(&file, length + 1).is_err());
    }

    #[test]
    fn a_digest_can_be_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [1; 100]).unwrap();
        let stopped = file_digest(&path, |bytes| bytes != 100).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }
}
