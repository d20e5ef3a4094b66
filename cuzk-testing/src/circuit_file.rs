//! Files of compiled circuits as an earlier version wrote them, and as a liar writes them.
//!
//! A file begins with 144 bytes, of which four are the version. The counts of its variables
//! follow in 24 bytes. It ends with a checksum of 32 bytes.

const VERSION_AT: usize = 8;
const COUNTS_AT: usize = 144;
const COUNTS_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 32;

/// The version that announces no variables.
const EARLIER: u32 = 2;

/// Returns a file as the version before wrote it, which announces no variables.
#[must_use]
pub fn of_earlier_version(file: &[u8]) -> Vec<u8> {
    let mut content = file[..file.len() - CHECKSUM_BYTES].to_vec();
    content.drain(COUNTS_AT..COUNTS_AT + COUNTS_BYTES);
    content[VERSION_AT..VERSION_AT + 4].copy_from_slice(&EARLIER.to_le_bytes());
    signed(content)
}

/// Returns a file that announces one variable less in its first count, the auxiliary variables
/// in A.
#[must_use]
pub fn that_lies(file: &[u8]) -> Vec<u8> {
    let mut content = file[..file.len() - CHECKSUM_BYTES].to_vec();
    let (count, _) = content[COUNTS_AT..].split_first_chunk().unwrap();
    let lie = u32::from_le_bytes(*count).checked_sub(1).unwrap();
    content[COUNTS_AT..COUNTS_AT + 4].copy_from_slice(&lie.to_le_bytes());
    signed(content)
}

fn signed(mut content: Vec<u8>) -> Vec<u8> {
    let checksum = blake3::hash(&content);
    content.extend_from_slice(checksum.as_bytes());
    content
}
