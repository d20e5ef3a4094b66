//! A compiled circuit in a file, used where it lies.
//!
//! Little-endian throughout: a fixed header (magic, version, field, circuit
//! fingerprint, dimensions, section counts), a label, the coefficients, the
//! words of the tables at a multiple of four bytes, and a blake3 checksum of
//! all that came before.
//!
//! A program that keeps its rows plain is written and read as [`crate::disk`]
//! does it, and told from the others by the first bytes.
//!
//! Invariant: nothing from a file is used before it is checked. The size that
//! the header announces must be that of the file, the checksum must hold, and
//! the tables must pass their own check before a program is made of them. A
//! file appears under its name complete or not at all, so two processes that
//! build at once end with one good file.

use super::{
    Body, Dimensions, Program,
    folded::Folded,
    tables::{Counts, Tables},
};
use crate::{
    bytes::{self, Words},
    csr::CsrError,
    disk::{
        self, CHECKSUM_BYTES, DiskError, DiskFault, LABEL_BYTES_MAX, at, check_fingerprint,
        field_id, scalar_bytes, write_whole,
    },
    fingerprint::Fingerprint,
    r1cs::variables,
};
use ff::PrimeField;
use memmap2::Mmap;
use std::{fs::File, io::Write, path::Path};

const MAGIC: [u8; 8] = *b"CUZKPROG";
const VERSION: u32 = 2;

/// Magic, version, label length, field, fingerprint, four dimensions, three
/// numbers of nonzeros, six counts.
const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 32 + 4 * 4 + 3 * 8 + 6 * 4;

/// What a file says about the circuit in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramHeader {
    /// The writer's name for the circuit.
    pub label: String,
    /// The identity of the circuit.
    pub fingerprint: Fingerprint,
    /// Public inputs, ONE among them.
    pub num_inputs: u32,
    /// Auxiliary variables.
    pub num_aux: u32,
    /// Constraints.
    pub rows: u32,
    /// Nonzeros of A, B and C.
    pub nnz: [u64; 3],
    coefficients: u32,
    counts: Counts,
}

/// Where the parts of a file are, in bytes from its start.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    coefficients: u64,
    words: u64,
    checksum: u64,
}

impl ProgramHeader {
    fn of<S: PrimeField>(
        program: &Program<S>,
        folded: &Folded<S>,
        label: &str,
    ) -> Result<Self, DiskFault> {
        let got = folded.coefficients.len();
        let limit = u32::MAX as usize;
        let what = "coefficients";
        let coefficients =
            u32::try_from(got).map_err(|_| CsrError::TooLarge { what, got, limit })?;
        Ok(ProgramHeader {
            label: label.to_owned(),
            fingerprint: program.fingerprint,
            num_inputs: program.dimensions.num_inputs,
            num_aux: program.dimensions.num_aux,
            rows: program.dimensions.rows,
            nnz: program.dimensions.nnz,
            coefficients,
            counts: folded.tables.counts(),
        })
    }

    /// The header of plain rows.
    fn of_plain(header: disk::Header) -> Result<Self, DiskFault> {
        let to_u32 = disk::to_u32;
        Ok(ProgramHeader {
            label: header.label,
            fingerprint: header.fingerprint,
            num_inputs: to_u32("inputs", header.num_inputs)?,
            num_aux: to_u32("auxiliary variables", header.num_aux)?,
            rows: to_u32("rows", header.rows)?,
            nnz: header.nnz,
            coefficients: 0,
            counts: Counts::default(),
        })
    }

    fn dimensions(&self) -> Dimensions {
        Dimensions {
            num_inputs: self.num_inputs,
            num_aux: self.num_aux,
            rows: self.rows,
            nnz: self.nnz,
        }
    }

    /// Counts are 32 bits, so no sum of these overflows 64.
    fn offsets(&self, scalar_bytes: usize) -> Offsets {
        let coefficients = (HEADER_BYTES + self.label.len()).next_multiple_of(4) as u64;
        let coefficient_bytes = u64::from(self.coefficients) * scalar_bytes as u64;
        let words = (coefficients + coefficient_bytes).next_multiple_of(4);
        let checksum = words + 4 * self.counts.words();
        Offsets {
            coefficients,
            words,
            checksum,
        }
    }

    fn to_bytes<S: PrimeField>(&self) -> Result<Vec<u8>, DiskFault> {
        let got = self.label.len();
        let label_bytes = u32::try_from(got).map_err(|_| DiskFault::Label { got })?;
        if got > LABEL_BYTES_MAX {
            return Err(DiskFault::Label { got });
        }
        let Counts {
            parts,
            items,
            shapes,
            nodes,
            children,
            root,
        } = self.counts;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(label_bytes.to_le_bytes());
        bytes.extend(field_id::<S>());
        bytes.extend(self.fingerprint.as_bytes());
        for word in [self.num_inputs, self.num_aux, self.rows, root] {
            bytes.extend(word.to_le_bytes());
        }
        for nnz in self.nnz {
            bytes.extend(nnz.to_le_bytes());
        }
        for word in [self.coefficients, parts, items, shapes, nodes, children] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.label.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Ok(bytes)
    }

    fn from_bytes<S: PrimeField>(file: &[u8]) -> Result<Self, DiskFault> {
        let least = (HEADER_BYTES + CHECKSUM_BYTES) as u64;
        if (file.len() as u64) < least {
            return Err(too_short(least, file));
        }
        let mut rest = file;
        let mut word = || take(&mut rest).map(u32::from_le_bytes);
        let magic = [word(), word()].map(|word| word.unwrap_or(0).to_le_bytes());
        let mut got = [0; 8];
        got.copy_from_slice(magic.as_flattened());
        if got != MAGIC {
            let expected = MAGIC;
            return Err(DiskFault::Magic { expected, got });
        }
        let version = word().unwrap_or(0);
        if version != VERSION {
            let expected = VERSION;
            return Err(DiskFault::Version {
                expected,
                got: version,
            });
        }
        let label_bytes = word().unwrap_or(0) as usize;
        Self::after_version::<S>(rest, label_bytes).ok_or_else(|| too_short(least, file))?
    }

    /// The rest of the header; `None` if the file ends before it.
    fn after_version<S: PrimeField>(
        mut rest: &[u8],
        label_bytes: usize,
    ) -> Option<Result<Self, DiskFault>> {
        if take(&mut rest)? != field_id::<S>() {
            return Some(Err(DiskFault::Field));
        }
        let fingerprint = Fingerprint::from_bytes(take(&mut rest)?);
        let mut word = || take(&mut rest).map(u32::from_le_bytes);
        let [num_inputs, num_aux, rows, root] = [word()?, word()?, word()?, word()?];
        let mut long = || take(&mut rest).map(u64::from_le_bytes);
        let nnz = [long()?, long()?, long()?];
        let mut word = || take(&mut rest).map(u32::from_le_bytes);
        let coefficients = word()?;
        let counts = Counts {
            parts: word()?,
            items: word()?,
            shapes: word()?,
            nodes: word()?,
            children: word()?,
            root,
        };
        let not_a_label = DiskFault::Label { got: label_bytes };
        if label_bytes > LABEL_BYTES_MAX {
            return Some(Err(not_a_label));
        }
        let Ok(label) = std::str::from_utf8(rest.get(..label_bytes)?) else {
            return Some(Err(not_a_label));
        };
        Some(Ok(ProgramHeader {
            label: label.to_owned(),
            fingerprint,
            num_inputs,
            num_aux,
            rows,
            nnz,
            coefficients,
            counts,
        }))
    }
}

/// The next `N` bytes, if there are so many.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (&bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(bytes)
}

fn too_short(expected: u64, file: &[u8]) -> DiskFault {
    DiskFault::Size {
        expected: expected.into(),
        got: file.len() as u64,
    }
}

/// Size of a file of folded rows without its label, and with the padding that
/// follows some labels.
pub(super) fn folded_bytes<S: PrimeField>(folded: &Folded<S>) -> u64 {
    let coefficients = (folded.coefficients.len() * scalar_bytes::<S>()) as u64;
    let words = 4 * folded.tables.counts().words();
    let fixed = (HEADER_BYTES + 3 + CHECKSUM_BYTES) as u64;
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
    let mut content = ProgramHeader::of(program, folded, label)?.to_bytes::<S>()?;
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

/// Checks the whole file but its tables and returns its header.
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
    read_file(path, expected).map_err(at(path))
}

fn read_file<S: PrimeField>(
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
    tables.check(
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
fn verified<S: PrimeField>(path: &Path) -> Result<(ProgramHeader, Mmap), DiskFault> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        // An empty file cannot be mapped.
        return Err(too_short((HEADER_BYTES + CHECKSUM_BYTES) as u64, &[]));
    }
    let map = bytes::map(&file)?;
    let header = ProgramHeader::from_bytes::<S>(&map)?;
    let expected = header.offsets(scalar_bytes::<S>()).checksum + CHECKSUM_BYTES as u64;
    if map.len() as u64 != expected {
        return Err(too_short(expected, &map));
    }
    match map.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((content, checksum)) if blake3::hash(content) == *checksum => Ok((header, map)),
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
mod tests {
    use super::*;
    use crate::{
        damage,
        program::{check, compile::compile_folded},
        record,
        testing::*,
        witness,
    };
    use blstrs::Scalar;
    use ff::Field;
    use proptest::prelude::*;
    use std::fs;

    fn some_program(rows: usize) -> Program<Scalar> {
        compile_folded(RandomCircuit::squares(rows).blank()).unwrap()
    }

    fn reading(path: &Path) -> Result<(), DiskError> {
        read::<Scalar>(path, None).map(drop)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn reads_what_was_written(circuit in random_circuit(), label in ".{0,9}") {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("circuit.pce");
            let program = compile_folded(circuit.blank()).unwrap();
            write(&path, &program, &label).unwrap();
            let header = inspect::<Scalar>(&path).unwrap();
            prop_assert_eq!(header.fingerprint, program.fingerprint());
            prop_assert_eq!(&header.label, &label);
            let (again, stored) = read(&path, Some(program.fingerprint())).unwrap();
            prop_assert_eq!(again, header);
            prop_assert_eq!(stored.to_r1cs().unwrap(), record(circuit.blank()).unwrap());
            prop_assert_eq!(stored.nnz(), program.nnz());
            prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.pce");
        write(&path, &some_program(2), "label").unwrap();
        damage::another_version_is_an_error(reading, &path, VERSION);
        write(&path, &some_program(2), "label").unwrap();
        damage::every_damage_is_an_error(reading, &path, 120..144);
        damage::what_cannot_be_written_leaves_nothing(reading, |path, label| {
            write(path, &some_program(2), label)
        });
    }

    /// Whatever a writer of good checksums puts into a file, it is refused or
    /// it is a program: nothing is out of bounds when it runs.
    #[test]
    fn a_hostile_file_with_a_good_checksum_is_an_error_or_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.pce");
        let (circuit, _) = RandomCircuit::gadgets();
        write(&path, &compile_folded(circuit.blank()).unwrap(), "label").unwrap();
        let good = fs::read(&path).unwrap();
        let values = witness(circuit).unwrap();
        let mut refused = 0;
        for i in 0..good.len() - CHECKSUM_BYTES {
            for change in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[i] ^= change;
                damage::sign(&mut bad);
                fs::write(&path, &bad).unwrap();
                let Ok((_, program)) = read::<Scalar>(&path, None) else {
                    refused += 1;
                    continue;
                };
                let checked = check(&program, &values);
                if program.num_inputs() == values.num_inputs() && checked.is_ok() {
                    let len = program.rows() + program.num_inputs();
                    let (mut a, mut b) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
                    program
                        .evaluate_into(&values, &mut a, &mut b, &cuzk_memory::NEVER_STOP)
                        .unwrap();
                }
                program.boolean_columns();
                program.densities();
                assert_eq!(program.unfold().count(), program.rows());
            }
        }
        // Most changes make no sense; coefficients and the fingerprint may.
        assert!(refused > good.len(), "{refused}");
    }

    #[test]
    fn another_circuit_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.pce");
        write(&path, &some_program(2), "").unwrap();
        let other = some_program(3).fingerprint();
        let error = read::<Scalar>(&path, Some(other)).unwrap_err();
        assert!(matches!(error.fault, DiskFault::Fingerprint { .. }));
    }

    #[test]
    fn two_writers_leave_one_good_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.pce");
        let program = some_program(100);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| write(&path, &program, "same").unwrap()));
            }
            for _ in 0..50 {
                if path.exists() {
                    read::<Scalar>(&path, Some(program.fingerprint())).unwrap();
                }
            }
        });
        read::<Scalar>(&path, Some(program.fingerprint())).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
