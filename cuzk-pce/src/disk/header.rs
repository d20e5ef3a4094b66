//! The header of a file of plain rows.

use super::error::{DiskFault, LABEL_BYTES_MAX};
use super::whole::CHECKSUM_BYTES;
use crate::fingerprint::Fingerprint;
use ff::PrimeField;
use std::{
    fs::File,
    io::{self, Read},
};

pub(super) const MAGIC: [u8; 8] = *b"CUZKR1CS";
pub(super) const VERSION: u32 = 1;

/// Magic, version, label length, field, fingerprint, six dimensions.
pub(super) const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 32 + 6 * 8;

/// The description of the circuit in a file.
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
    pub(super) fn file_bytes(&self, scalar_bytes: usize) -> u128 {
        let row_ptrs = 3 * 4 * (u128::from(self.rows) + 1);
        let nnz: u128 = self.nnz.iter().copied().map(u128::from).sum();
        let fixed = HEADER_BYTES + self.label.len() + CHECKSUM_BYTES;
        fixed as u128 + row_ptrs + nnz * (4 + scalar_bytes as u128)
    }

    pub(super) fn to_bytes<S: PrimeField>(&self) -> Result<Vec<u8>, DiskFault> {
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

/// Names a field by its modulus.
pub(crate) fn field_id<S: PrimeField>() -> [u8; 32] {
    *blake3::hash(S::MODULUS.as_bytes()).as_bytes()
}

pub(crate) fn scalar_bytes<S: PrimeField>() -> usize {
    S::Repr::default().as_ref().len()
}

/// Returns the size of a file of plain rows without a label. The dimensions are the numbers
/// of public inputs, auxiliary variables and rows. `nnz` counts the nonzeros of A, B and C.
pub(crate) fn plain_bytes<S: PrimeField>(
    [num_inputs, num_aux, rows]: [usize; 3],
    nnz: [u64; 3],
) -> u128 {
    let header = Header {
        label: String::new(),
        fingerprint: Fingerprint::from_bytes([0; 32]),
        num_inputs: num_inputs as u64,
        num_aux: num_aux as u64,
        rows: rows as u64,
        nnz,
    };
    header.file_bytes(scalar_bytes::<S>())
}

pub(super) fn read_header<S: PrimeField>(file: &mut File) -> Result<Header, DiskFault> {
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
