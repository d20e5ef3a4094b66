//! Parameters out of a stream.
//!
//! Not their check, which is of the bytes. The invariants: no byte after the parameters is
//! read, and memory grows with the bytes that come, not with a count that is read.

use std::io::{self, Read};

use super::file::{COUNT_BYTES, G1_BYTES, G2_BYTES, KEY_POINTS_BYTES};

/// Reads the bytes of parameters in bellperson's format.
///
/// # Errors
/// `UnexpectedEof` if there are too few, and the reader's.
pub(super) fn read_bytes(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    append(reader, KEY_POINTS_BYTES, &mut bytes)?;
    // IC, H, L, A, B in G1, B in G2.
    for point_bytes in [G1_BYTES, G1_BYTES, G1_BYTES, G1_BYTES, G1_BYTES, G2_BYTES] {
        let start = bytes.len();
        append(reader, COUNT_BYTES, &mut bytes)?;
        let count = bytes.get(start..).unwrap_or_default();
        let count = count
            .iter()
            .fold(0, |count, &byte| count << 8 | u64::from(byte));
        append(reader, count * point_bytes, &mut bytes)?;
    }
    Ok(bytes)
}

/// Appends `len` bytes.
fn append(reader: &mut impl Read, len: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let got = reader.by_ref().take(len).read_to_end(bytes)? as u64;
    if got == len {
        return Ok(());
    }
    let problem = format!("{len} bytes are due, and {got} are left");
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_left_and_too_few_bytes_are_an_error() {
        let mut bytes = vec![7; 864];
        for (count, point_bytes) in [(1, 96), (0, 96), (2, 96), (0, 96), (0, 96), (1, 192)] {
            bytes.extend(u32::to_be_bytes(count));
            bytes.extend(vec![9; count as usize * point_bytes]);
        }
        let with_more = [&bytes[..], b"more"].concat();
        let mut reader = &with_more[..];
        assert_eq!(read_bytes(&mut reader).unwrap(), bytes);
        assert_eq!(reader, b"more");
        for len in [0, 863, 865, bytes.len() - 1] {
            let error = read_bytes(&mut &bytes[..len]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_count_takes_no_memory_by_itself() {
        let mut bytes = vec![0; 864];
        bytes.extend([0xff; 4]);
        assert!(read_bytes(&mut &bytes[..]).is_err());
    }
}
