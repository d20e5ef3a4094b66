//! A constraint system in a file.
//!
//! Little-endian throughout: a fixed header (magic, version, field, circuit
//! fingerprint, dimensions), a label, the three matrices as row pointers,
//! columns and scalars, and a blake3 checksum of all that came before.
//!
//! Invariant: nothing from a file is used before it is checked. The size that
//! the header announces must be the size of the file before anything is
//! allocated, the checksum must hold before a row is decoded, and the rows
//! must pass the checked constructors and have the fingerprint announced. A
//! file appears under its name complete or not at all.

use crate::{
    csr::{CsrError, CsrMatrix},
    fingerprint::Fingerprint,
    program::{Program, TablesError},
    r1cs::R1cs,
};
use cuzk_files::Draft;
use ff::PrimeField;
use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

const MAGIC: [u8; 8] = *b"CUZKR1CS";
const VERSION: u32 = 1;
pub(crate) const CHECKSUM_BYTES: usize = 32;

/// Magic, version, label length, field, fingerprint, six dimensions.
const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 32 + 6 * 8;

/// Longest label, in bytes: a label names a circuit, it does not describe it.
pub const LABEL_BYTES_MAX: usize = 255;

/// Bytes read, decoded or encoded at a time.
const BLOCK_BYTES: usize = 1 << 16;

/// A file that could not be written or used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct DiskError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: DiskFault,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is another kind of file.
    #[error("another kind of file: its first bytes are {got:02x?}, expected {expected:02x?}")]
    Magic {
        /// The bytes this kind of file starts with.
        expected: [u8; 8],
        /// The first eight bytes.
        got: [u8; 8],
    },
    /// It was written by another version of this format.
    #[error("format version {got}, expected {expected}: delete it and build it again")]
    Version {
        /// The version this crate writes.
        expected: u32,
        /// The version in the file.
        got: u32,
    },
    /// Its scalars are of another field.
    #[error("its scalars belong to another field than the one asked for")]
    Field,
    /// It is shorter or longer than its header says.
    #[error("expected {expected} bytes, got {got}: cut short or damaged, build it again")]
    Size {
        /// The size its header announces, or the least it could be.
        expected: u128,
        /// The size of the file.
        got: u64,
    },
    /// Its bytes are not those that were written.
    #[error("its checksum does not hold: damaged, delete it and build it again")]
    Checksum,
    /// It is of another circuit.
    #[error("circuit fingerprint: expected {expected}, got {got}: it is of another circuit")]
    Fingerprint {
        /// The circuit asked for, or announced in the header.
        expected: Fingerprint,
        /// The circuit found.
        got: Fingerprint,
    },
    /// A label is too long to write, or not text.
    #[error("label: expected UTF-8 text of at most {LABEL_BYTES_MAX} bytes, got {got} bytes")]
    Label {
        /// Its length in bytes.
        got: usize,
    },
    /// A scalar is not reduced.
    #[error("scalar {index} of matrix {matrix} is not below the field's modulus")]
    Scalar {
        /// Which matrix: `A`, `B` or `C`.
        matrix: char,
        /// Which nonzero, from 0.
        index: usize,
    },
    /// A coefficient of a program is not reduced.
    #[error("coefficient {index} is not below the field's modulus")]
    Coefficient {
        /// Which coefficient, from 0.
        index: usize,
    },
    /// The rows break an invariant.
    #[error("its rows are not a constraint system: {0}")]
    Rows(#[from] CsrError),
    /// The tables of a program break an invariant.
    #[error("its tables are inconsistent: {0}")]
    Tables(#[from] TablesError),
}

/// What a file says about the circuit in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The writer's name for the circuit.
    pub label: String,
    /// The identity of the circuit.
    pub fingerprint: Fingerprint,
    /// Public inputs, ONE among them.
    pub num_inputs: u64,
    /// Auxiliary variables.
    pub num_aux: u64,
    /// Constraints.
    pub rows: u64,
    /// Nonzeros of A, B and C.
    pub nnz: [u64; 3],
}

impl Header {
    /// Size of the whole file for scalars of `scalar_bytes`.
    fn file_bytes(&self, scalar_bytes: usize) -> u128 {
        let row_ptrs = 3 * 4 * (u128::from(self.rows) + 1);
        let nnz: u128 = self.nnz.iter().copied().map(u128::from).sum();
        let fixed = HEADER_BYTES + self.label.len() + CHECKSUM_BYTES;
        fixed as u128 + row_ptrs + nnz * (4 + scalar_bytes as u128)
    }

    fn to_bytes<S: PrimeField>(&self) -> Result<Vec<u8>, DiskFault> {
        let too_long = DiskFault::Label {
            got: self.label.len(),
        };
        let label_bytes = match u32::try_from(self.label.len()) {
            Ok(bytes) if self.label.len() <= LABEL_BYTES_MAX => bytes,
            _ => return Err(too_long),
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.label.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(label_bytes.to_le_bytes());
        bytes.extend(field_id::<S>());
        bytes.extend(self.fingerprint.as_bytes());
        for dimension in [self.num_inputs, self.num_aux, self.rows] {
            bytes.extend(dimension.to_le_bytes());
        }
        for nnz in self.nnz {
            bytes.extend(nnz.to_le_bytes());
        }
        bytes.extend(self.label.as_bytes());
        Ok(bytes)
    }
}

/// A constraint system read from a file, and what the file says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<S> {
    /// The file's header.
    pub header: Header,
    /// The rows.
    pub r1cs: R1cs<S>,
}

/// Names a field by its modulus.
pub(crate) fn field_id<S: PrimeField>() -> [u8; 32] {
    *blake3::hash(S::MODULUS.as_bytes()).as_bytes()
}

pub(crate) fn scalar_bytes<S: PrimeField>() -> usize {
    S::Repr::default().as_ref().len()
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

/// Whether a file begins as files of plain rows do.
pub(crate) fn is_plain(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    let file = File::open(path)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(start == MAGIC)
}

/// Size of a file of `program`'s rows, plain and without a label.
pub(crate) fn plain_bytes<S: PrimeField>(program: &Program<S>) -> u128 {
    let header = Header {
        label: String::new(),
        fingerprint: program.fingerprint(),
        num_inputs: program.num_inputs() as u64,
        num_aux: program.num_aux() as u64,
        rows: program.rows() as u64,
        nnz: program.nnz(),
    };
    header.file_bytes(scalar_bytes::<S>())
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

pub(crate) fn at(path: &Path) -> impl FnOnce(DiskFault) -> DiskError {
    move |fault| DiskError {
        path: path.to_owned(),
        fault,
    }
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

/// Makes the file at `path`, complete with its checksum or not at all.
pub(crate) fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut HashingWriter<'_>) -> io::Result<()>,
) -> Result<(), DiskFault> {
    let draft = Draft::begin(path)?;
    let mut out = HashingWriter::new(draft.file());
    content(&mut out)?;
    out.finish()?;
    Ok(draft.publish()?)
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

/// Hashes what it writes.
pub(crate) struct HashingWriter<'a> {
    out: BufWriter<&'a File>,
    hasher: blake3::Hasher,
}

impl<'a> HashingWriter<'a> {
    fn new(file: &'a File) -> Self {
        HashingWriter {
            out: BufWriter::with_capacity(BLOCK_BYTES, file),
            hasher: blake3::Hasher::new(),
        }
    }

    /// Appends the checksum and empties the buffer.
    fn finish(mut self) -> io::Result<()> {
        let checksum = self.hasher.finalize();
        self.out.write_all(checksum.as_bytes())?;
        self.out.flush()
    }
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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

pub(crate) fn check_fingerprint(expected: Fingerprint, got: Fingerprint) -> Result<(), DiskFault> {
    if expected == got {
        Ok(())
    } else {
        Err(DiskFault::Fingerprint { expected, got })
    }
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

fn read_header<S: PrimeField>(file: &mut File) -> Result<Header, DiskFault> {
    let magic = read_array::<8>(file)?;
    if magic != MAGIC {
        return Err(DiskFault::Magic {
            expected: MAGIC,
            got: magic,
        });
    }
    let version = u32::from_le_bytes(read_array(file)?);
    if version != VERSION {
        return Err(DiskFault::Version {
            expected: VERSION,
            got: version,
        });
    }
    let label_bytes = u32::from_le_bytes(read_array(file)?) as usize;
    if read_array::<32>(file)? != field_id::<S>() {
        return Err(DiskFault::Field);
    }
    let fingerprint = Fingerprint::from_bytes(read_array(file)?);
    let [num_inputs, num_aux, rows] = read_dimensions(file)?;
    let nnz = read_dimensions(file)?;
    Ok(Header {
        label: read_label(file, label_bytes)?,
        fingerprint,
        num_inputs,
        num_aux,
        rows,
        nnz,
    })
}

fn read_dimensions(file: &mut File) -> io::Result<[u64; 3]> {
    let mut dimensions = [0; 3];
    for dimension in &mut dimensions {
        *dimension = u64::from_le_bytes(read_array(file)?);
    }
    Ok(dimensions)
}

fn read_label(file: &mut File, label_bytes: usize) -> Result<String, DiskFault> {
    if label_bytes > LABEL_BYTES_MAX {
        return Err(DiskFault::Label { got: label_bytes });
    }
    let mut label = vec![0; label_bytes];
    file.read_exact(&mut label)?;
    String::from_utf8(label).map_err(|_| DiskFault::Label { got: label_bytes })
}

fn read_array<const N: usize>(file: &mut File) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
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
mod tests {
    use super::*;
    use crate::{damage, record, testing::*};
    use blstrs::Scalar;
    use proptest::prelude::*;
    use std::fs;

    fn some_r1cs(rows: usize) -> R1cs<Scalar> {
        record(RandomCircuit::squares(rows).blank()).unwrap()
    }

    fn reading(path: &Path) -> Result<(), DiskError> {
        read::<Scalar>(path, None).map(drop)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn reads_what_was_written(circuit in random_circuit()) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("circuit.r1cs");
            let r1cs = record(circuit.blank()).unwrap();
            write(&path, &r1cs, "a label").unwrap();
            let header = inspect::<Scalar>(&path).unwrap();
            prop_assert_eq!(header.fingerprint, r1cs.fingerprint());
            prop_assert_eq!(&header.label, "a label");
            let stored = read(&path, Some(r1cs.fingerprint())).unwrap();
            prop_assert_eq!(stored, Stored { header, r1cs });
            prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn spans_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.r1cs");
        let r1cs = some_r1cs(40_000);
        write(&path, &r1cs, "").unwrap();
        assert_eq!(read::<Scalar>(&path, None).unwrap().r1cs, r1cs);
    }

    #[test]
    fn damage_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.r1cs");
        write(&path, &some_r1cs(2), "label").unwrap();
        damage::another_version_is_an_error(reading, &path, VERSION);
        write(&path, &some_r1cs(2), "label").unwrap();
        damage::every_damage_is_an_error(reading, &path, 96..128);
        damage::what_cannot_be_written_leaves_nothing(reading, |path, label| {
            write(path, &some_r1cs(2), label)
        });
    }

    #[test]
    fn a_hostile_file_with_a_good_checksum_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.r1cs");
        write(&path, &some_r1cs(2), "").unwrap();
        let good = fs::read(&path).unwrap();
        let with = |at: usize, bytes: &[u8]| {
            damage::replace(&path, &good, at, bytes);
            damage::fault(reading, &path)
        };
        let huge = u64::MAX.to_le_bytes();
        for at in [96, 104, 112, 120] {
            assert!(matches!(with(at, &huge), DiskFault::Size { .. }));
        }
        for at in [80, 88] {
            assert!(matches!(
                with(at, &huge),
                DiskFault::Rows(CsrError::TooLarge { .. })
            ));
        }
        let other_print = with(48, &[0; 32]);
        assert!(matches!(other_print, DiskFault::Fingerprint { .. }));
        // Row pointers of A, its columns, its values: 3, 2 and 2 of them.
        let rows = HEADER_BYTES;
        let pointers = with(rows, &7u32.to_le_bytes());
        assert!(matches!(
            pointers,
            DiskFault::Rows(CsrError::FirstRowPointer { got: 7 })
        ));
        let columns = with(rows + 12, &99u32.to_le_bytes());
        assert!(matches!(
            columns,
            DiskFault::Rows(CsrError::ColumnOutOfRange { .. })
        ));
        let scalar = with(rows + 20 + 32, &[0xff; 32]);
        assert!(matches!(
            scalar,
            DiskFault::Scalar {
                matrix: 'A',
                index: 1
            }
        ));
        let changed = with(rows + 20, &[2]);
        assert!(matches!(changed, DiskFault::Fingerprint { .. }));
    }

    #[test]
    fn another_circuit_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.r1cs");
        write(&path, &some_r1cs(2), "").unwrap();
        let error = read::<Scalar>(&path, Some(some_r1cs(3).fingerprint())).unwrap_err();
        assert!(matches!(error.fault, DiskFault::Fingerprint { .. }));
    }
}
