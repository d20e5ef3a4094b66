//! A compiled circuit in a file, used where it lies.
//!
//! A file is little-endian throughout. It has a fixed header (magic, version, field,
//! circuit fingerprint, dimensions, section counts, counts of variables) and a label. Then
//! come the coefficients, the words of the tables at a multiple of four bytes, and a blake3
//! checksum of everything before it.
//!
//! A program that keeps its rows plain is written and read as [`crate::disk`]
//! does it, and told from the others by the first bytes.
//!
//! Invariant: nothing from a file is used before it is checked. The size that the header
//! announces must be that of the file. The checksum must hold. The tables must pass their
//! own check before a program is made of them. A file appears under its name complete or
//! not at all. So two processes that build at once end with one good file.
//!
//! [`map`] does not count the variables in the rows, which takes seconds at full size. [`read`]
//! counts them and compares them with the header.

use super::{
    body::Body,
    check_tables::check_tables,
    compiled::Program,
    file_header::{HEADER_BYTES, HEADER_BYTES_MAX, ProgramHeader, too_short},
    folded::Folded,
    tables::Tables,
};
use crate::{
    bytes::Words,
    csr::CsrError,
    disk::{
        self, CHECKSUM_BYTES, DiskError, DiskFault, at, check_fingerprint, scalar_bytes,
        write_whole,
    },
    fingerprint::Fingerprint,
    r1cs::variables,
};
use cuzk_files::MappedFile;
use ff::PrimeField;
use std::{fs::File, io::Write, path::Path};

/// Size of a file of folded rows without its label, and with the padding that
/// follows some labels.
pub(super) fn folded_bytes<S: PrimeField>(folded: &Folded<S>) -> u64 {
    let coefficients = (folded.coefficients.len() * scalar_bytes::<S>()) as u64;
    let words = 4 * folded.tables.counts().words();
    let fixed = (HEADER_BYTES_MAX + 3 + CHECKSUM_BYTES) as u64;
    fixed + coefficients.next_multiple_of(4) + words
}

/// Writes `program` to `path`, replacing what was there in one step. `label`
/// is the caller's name for the circuit, its kind and sector size for example.
///
/// # Errors
/// [`DiskFault::Io`], or [`DiskFault::Label`] if the label is too long.
pub fn write<S: PrimeField>(
    path: &Path,
    program: &Program<S>,
    label: &str,
) -> Result<(), DiskError> {
    write_file(path, program, label).map_err(at(path))
}

fn write_file<S: PrimeField>(
    path: &Path,
    program: &Program<S>,
    label: &str,
) -> Result<(), DiskFault> {
    let folded = match &program.body {
        Body::Folded(folded) => folded,
        Body::Plain(r1cs) => return disk::write_file(path, r1cs, label),
    };
    let header = ProgramHeader::of(program, folded, label)?;
    write_folded(path, &header, folded)
}

/// Writes folded rows under this header.
fn write_folded<S: PrimeField>(
    path: &Path,
    header: &ProgramHeader,
    folded: &Folded<S>,
) -> Result<(), DiskFault> {
    let mut content = header.to_bytes::<S>()?;
    for value in &folded.coefficients {
        content.extend_from_slice(value.to_repr().as_ref());
    }
    content.resize(content.len().next_multiple_of(4), 0);
    content.extend(
        folded
            .tables
            .words()
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    write_whole(path, |out| out.write_all(&content))
}

/// Checks the whole file but its tables and returns its header. The rows are not counted.
///
/// # Errors
/// Every [`DiskFault`] that can be seen without looking at the tables.
pub fn inspect<S: PrimeField>(path: &Path) -> Result<ProgramHeader, DiskError> {
    let open = || match disk::is_plain(path)? {
        true => ProgramHeader::of_plain(disk::inspect_file::<S>(path)?),
        false => verified::<S>(path).map(|(header, _)| header),
    };
    open().map_err(at(path))
}

/// Maps a program, checking everything about it but the fingerprint of its
/// rows, which is announced by the writer and covered by the checksum. With
/// `expected`, a file of any other circuit is refused.
///
/// # Errors
/// Every [`DiskFault`].
pub fn read<S: PrimeField>(
    path: &Path,
    expected: Option<Fingerprint>,
) -> Result<(ProgramHeader, Program<S>), DiskError> {
    let (header, program) = map(path, expected)?;
    if let Some(announced) = header.variables {
        announced
            .check(program.variable_counts())
            .map_err(at(path))?;
    }
    Ok((header, program))
}

/// Maps a program as [`read`] does, but in milliseconds at full size: the variables that its header
/// announces are not counted in the rows.
///
/// # Errors
/// Every [`DiskFault`] but [`DiskFault::VariableCount`].
pub fn map<S: PrimeField>(
    path: &Path,
    expected: Option<Fingerprint>,
) -> Result<(ProgramHeader, Program<S>), DiskError> {
    map_file(path, expected).map_err(at(path))
}

fn map_file<S: PrimeField>(
    path: &Path,
    expected: Option<Fingerprint>,
) -> Result<(ProgramHeader, Program<S>), DiskFault> {
    if disk::is_plain(path)? {
        return read_plain(path, expected);
    }
    let (header, map) = verified::<S>(path)?;
    if let Some(expected) = expected {
        check_fingerprint(expected, header.fingerprint)?;
    }
    let offsets = header.offsets(scalar_bytes::<S>());
    let got = map.len() as u64;
    let gone = || DiskFault::Size {
        expected: offsets.checksum.into(),
        got,
    };
    // The sum of them has been compared with the length of the map.
    let [from, words, end] = [offsets.coefficients, offsets.words, offsets.checksum]
        .map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
    let count = header.coefficients as usize;
    let coefficients = coefficients(map.get(from..words).ok_or_else(gone)?, count)?;
    let words = Words::from_file(map, words..end).ok_or_else(gone)?;
    variables(header.num_inputs, header.num_aux)?;
    let tables = Tables::from_words(words, header.counts)?;
    check_tables(
        &tables,
        coefficients.len(),
        header.num_inputs,
        header.num_aux,
        header.rows,
    )?;
    let folded = Folded::new(header.dimensions(), coefficients, tables);
    let program = Program::of_folded(header.fingerprint, folded);
    Ok((header, program))
}

fn read_plain<S: PrimeField>(
    path: &Path,
    expected: Option<Fingerprint>,
) -> Result<(ProgramHeader, Program<S>), DiskFault> {
    let disk::Stored { header, r1cs } = disk::read_file(path, expected)?;
    let header = ProgramHeader::of_plain(header)?;
    let too_large = CsrError::TooLarge {
        what: "rows",
        got: r1cs.rows(),
        limit: u32::MAX as usize,
    };
    let program = Program::of_plain(header.fingerprint, r1cs).ok_or(too_large)?;
    Ok((header, program))
}

/// The header of a file whose size and checksum are right, and its bytes.
fn verified<S: PrimeField>(path: &Path) -> Result<(ProgramHeader, MappedFile), DiskFault> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        // An empty file cannot be mapped.
        return Err(too_short((HEADER_BYTES + CHECKSUM_BYTES) as u64, &[]));
    }
    let map = MappedFile::new(&file)?;
    let header = ProgramHeader::from_bytes::<S>(&map)?;
    let expected = header.offsets(scalar_bytes::<S>()).checksum + CHECKSUM_BYTES as u64;
    if map.len() as u64 != expected {
        return Err(too_short(expected, &map));
    }
    match map.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((content, checksum)) if blake3::hash(content) == *checksum => {
            header.check_limits()?;
            Ok((header, map))
        }
        _ => Err(DiskFault::Checksum),
    }
}

fn coefficients<S: PrimeField>(bytes: &[u8], count: usize) -> Result<Vec<S>, DiskFault> {
    let size = scalar_bytes::<S>();
    let scalars = bytes.chunks_exact(size).take(count).enumerate();
    scalars
        .map(|(index, bytes)| {
            let mut repr = S::Repr::default();
            repr.as_mut().copy_from_slice(bytes);
            S::from_repr_vartime(repr).ok_or(DiskFault::Coefficient { index })
        })
        .collect()
}

#[cfg(test)]
mod tests;
