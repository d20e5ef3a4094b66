//! A request as it is on disk: compressed, in chunks that fit the store's
//! pages, under the digest of what an id stands for.

use std::io::{self, Read};

use crate::job::JobOptions;

/// The largest stored value. With its key and the page's own fields it fits a
/// page of 256 KiB; a byte more would take one of 512 KiB.
pub(crate) const CHUNK_BYTES: usize = (256 << 10) - 256;

/// Level 1 takes JSON of base64 to a sixth at several hundred MB/s; higher
/// levels cost more time than they save on the disk.
const LEVEL: i32 = 1;

/// The digest of the input: what it is, in how many partitions, and its bytes.
pub(crate) fn digest(options: &JobOptions, request: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(options.kind.len() as u64).to_le_bytes());
    hasher.update(&options.kind);
    hasher.update(&options.partitions.to_le_bytes());
    hasher.update(request);
    *hasher.finalize().as_bytes()
}

/// The request as it is stored.
pub(crate) fn compress(request: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(request, LEVEL)
}

/// The request of `request_bytes` whose stored form is `chunks`, if that is
/// what they hold.
pub(crate) fn decompress(
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

/// Chunks, one after the other.
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
