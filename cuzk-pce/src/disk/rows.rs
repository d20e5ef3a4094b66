//! Plain rows in a file: written, read back and checked.

use super::error::{DiskError, DiskFault, at, check_fingerprint};
use super::header::{HEADER_BYTES, Header, MAGIC, read_header, scalar_bytes};
use super::whole::{BLOCK_BYTES, CHECKSUM_BYTES, write_whole};
use crate::{
    csr::{CsrError, CsrMatrix},
    fingerprint::Fingerprint,
    r1cs::R1cs,
};
use ff::PrimeField;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// A constraint system read from a file, and what the file says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<S> {
    /// The file's header.
    pub header: Header,
    /// The rows.
    pub r1cs: R1cs<S>,
}

/// Writes `r1cs` to `path`, replacing what was there in one step. `label` is
/// the caller's name for the circuit, its kind and sector size for example.
///
/// Two writers at once leave the file of one of them, whole.
///
/// # Errors
/// [`DiskFault::Io`], or [`DiskFault::Label`] if the label is too long.
pub fn write<S: PrimeField>(path: &Path, r1cs: &R1cs<S>, label: &str) -> Result<(), DiskError> {
    write_file(path, r1cs, label).map_err(at(path))
}

/// Checks the whole file and returns its header. The rows are not decoded.
///
/// # Errors
/// Every [`DiskFault`] that can be seen without decoding rows.
pub fn inspect<S: PrimeField>(path: &Path) -> Result<Header, DiskError> {
    inspect_file::<S>(path).map_err(at(path))
}

pub(crate) fn inspect_file<S: PrimeField>(path: &Path) -> Result<Header, DiskFault> {
    verified::<S>(&mut File::open(path)?)
}

/// Returns true if a file begins as files of plain rows do.
pub(crate) fn is_plain(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(start == MAGIC)
}

/// Reads a constraint system back, checking everything about it. With
/// `expected`, a file of any other circuit is refused.
///
/// # Errors
/// Every [`DiskFault`].
pub fn read<S: PrimeField>(
    path: &Path,
    expected: Option<Fingerprint>,
) -> Result<Stored<S>, DiskError> {
    read_file(path, expected).map_err(at(path))
}

pub(crate) fn write_file<S: PrimeField>(
    path: &Path,
    r1cs: &R1cs<S>,
    label: &str,
) -> Result<(), DiskFault> {
    let matrices = [r1cs.a(), r1cs.b(), r1cs.c()];
    let header = Header {
        label: label.to_owned(),
        fingerprint: r1cs.fingerprint(),
        num_inputs: r1cs.num_inputs() as u64,
        num_aux: r1cs.num_aux() as u64,
        rows: r1cs.rows() as u64,
        nnz: matrices.map(|m| m.nnz() as u64),
    };
    let header = header.to_bytes::<S>()?;
    write_whole(path, |out| {
        out.write_all(&header)?;
        matrices.into_iter().try_for_each(|m| write_matrix(out, m))
    })
}

fn write_matrix<S: PrimeField>(out: &mut impl Write, matrix: &CsrMatrix<S>) -> io::Result<()> {
    let (row_ptrs, cols, values) = matrix.parts();
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    for indices in [row_ptrs, cols] {
        for chunk in indices.chunks(BLOCK_BYTES / 4) {
            block.clear();
            chunk.iter().for_each(|i| block.extend(i.to_le_bytes()));
            out.write_all(&block)?;
        }
    }
    for chunk in values.chunks(BLOCK_BYTES / scalar_bytes::<S>()) {
        block.clear();
        for value in chunk {
            block.extend_from_slice(value.to_repr().as_ref());
        }
        out.write_all(&block)?;
    }
    Ok(())
}

pub(crate) fn read_file<S: PrimeField>(
    path: &Path,
    expected: Option<Fingerprint>,
) -> Result<Stored<S>, DiskFault> {
    let mut file = File::open(path)?;
    let header = verified::<S>(&mut file)?;
    if let Some(expected) = expected {
        check_fingerprint(expected, header.fingerprint)?;
    }
    file.seek(SeekFrom::Start((HEADER_BYTES + header.label.len()) as u64))?;
    let r1cs = read_r1cs::<S>(&mut file, &header)?;
    check_fingerprint(header.fingerprint, r1cs.fingerprint())?;
    Ok(Stored { header, r1cs })
}

/// The header of a file whose size and checksum are right.
fn verified<S: PrimeField>(file: &mut File) -> Result<Header, DiskFault> {
    let got = file.metadata()?.len();
    let least = (HEADER_BYTES + CHECKSUM_BYTES) as u64;
    if got < least {
        return Err(DiskFault::Size {
            expected: least.into(),
            got,
        });
    }
    let header = read_header::<S>(file)?;
    let expected = header.file_bytes(scalar_bytes::<S>());
    if u128::from(got) != expected {
        return Err(DiskFault::Size { expected, got });
    }
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(got - CHECKSUM_BYTES as u64))?;
    let mut checksum = [0; CHECKSUM_BYTES];
    file.read_exact(&mut checksum)?;
    // Comparing `blake3::Hash` takes the same time wherever they differ.
    if hasher.finalize() == checksum {
        Ok(header)
    } else {
        Err(DiskFault::Checksum)
    }
}

/// The rows, from the end of the label on. The header's counts have been
/// checked against the size of the file, so they may be allocated.
fn read_r1cs<S: PrimeField>(file: &mut File, header: &Header) -> Result<R1cs<S>, DiskFault> {
    let num_inputs = to_u32("inputs", header.num_inputs)?;
    let num_aux = to_u32("auxiliary variables", header.num_aux)?;
    let num_cols = crate::r1cs::variables(num_inputs, num_aux)?;
    let rows = to_u32("rows", header.rows)? as usize;
    let [a, b, c] = header.nnz;
    let mut matrix = |name, nnz| {
        let nnz = to_u32("nonzeros", nnz)? as usize;
        let row_ptrs = read_u32s(file, rows + 1)?;
        let cols = read_u32s(file, nnz)?;
        let values = read_scalars(file, nnz, name)?;
        Ok::<_, DiskFault>(CsrMatrix::new(num_cols, row_ptrs, cols, values)?)
    };
    let (a, b, c) = (matrix('A', a)?, matrix('B', b)?, matrix('C', c)?);
    Ok(R1cs::new(a, b, c, num_inputs, num_aux)?)
}

pub(crate) fn to_u32(what: &'static str, got: u64) -> Result<u32, CsrError> {
    u32::try_from(got).map_err(|_| CsrError::TooLarge {
        what,
        got: usize::try_from(got).unwrap_or(usize::MAX),
        limit: u32::MAX as usize,
    })
}

fn read_u32s(file: &mut File, count: usize) -> Result<Vec<u32>, DiskFault> {
    let mut values = Vec::with_capacity(count);
    read_blocks(file, count, 4, |bytes| {
        let (words, _) = bytes.as_chunks::<4>();
        values.extend(words.iter().map(|&word| u32::from_le_bytes(word)));
        Ok(())
    })?;
    Ok(values)
}

fn read_scalars<S: PrimeField>(
    file: &mut File,
    count: usize,
    matrix: char,
) -> Result<Vec<S>, DiskFault> {
    let size = scalar_bytes::<S>();
    let mut values = Vec::with_capacity(count);
    read_blocks(file, count, size, |bytes| {
        for bytes in bytes.chunks_exact(size) {
            let mut repr = S::Repr::default();
            repr.as_mut().copy_from_slice(bytes);
            let index = values.len();
            let value = S::from_repr_vartime(repr);
            values.push(value.ok_or(DiskFault::Scalar { matrix, index })?);
        }
        Ok(())
    })?;
    Ok(values)
}

/// Hands `count` items of `size` bytes to `take`, many at a time.
fn read_blocks(
    file: &mut File,
    count: usize,
    size: usize,
    mut take: impl FnMut(&[u8]) -> Result<(), DiskFault>,
) -> Result<(), DiskFault> {
    let block_items = BLOCK_BYTES / size;
    let mut block = vec![0; block_items * size];
    let mut left = count;
    while left > 0 {
        let items = left.min(block_items);
        let bytes = &mut block[..items * size];
        file.read_exact(bytes)?;
        take(bytes)?;
        left -= items;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
