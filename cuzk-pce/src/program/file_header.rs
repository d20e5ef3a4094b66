//! The header of a program's file.
//!
//! It is written with the version [`VERSION`]. A file of the version [`WITHOUT_VARIABLES`] has
//! no counts of variables, and is otherwise the same.

use super::{compiled::Program, dimensions::Dimensions, folded::Folded, tables::Counts};
use crate::{
    csr::CsrError,
    disk::{self, CHECKSUM_BYTES, DiskFault, LABEL_BYTES_MAX, field_id},
    fingerprint::Fingerprint,
    variable_counts::VariableCounts,
};
use ff::PrimeField;

pub(super) const MAGIC: [u8; 8] = *b"CUZKPROG";

/// The version that is written.
pub(super) const VERSION: u32 = 3;

/// The version before the counts of variables, which is read, too.
pub(super) const WITHOUT_VARIABLES: u32 = 2;

/// Magic, version, label length, field, fingerprint, four dimensions, three
/// numbers of nonzeros, six counts of entries. The counts of variables follow, and the label.
pub(super) const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 32 + 4 * 4 + 3 * 8 + 6 * 4;

/// The header of a file of the version that is written, without its label.
pub(super) const HEADER_BYTES_MAX: usize = HEADER_BYTES + VariableCounts::BYTES;

/// The description of the circuit in a file.
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
    /// The variables of each sort, as the writer counted them. `None` for a file of an earlier
    /// version, or of plain rows.
    pub variables: Option<VariableCounts>,
    pub(super) coefficients: u32,
    pub(super) counts: Counts,
}

/// Where the parts of a file are, in bytes from its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    pub(super) coefficients: u64,
    pub(super) words: u64,
    pub(super) checksum: u64,
}

impl ProgramHeader {
    pub(super) fn of<S: PrimeField>(
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
            fingerprint: program.fingerprint(),
            num_inputs: program.dimensions.num_inputs,
            num_aux: program.dimensions.num_aux,
            rows: program.dimensions.rows,
            nnz: program.dimensions.nnz,
            variables: Some(program.variable_counts()),
            coefficients,
            counts: folded.tables.counts(),
        })
    }

    /// The header of plain rows.
    pub(super) fn of_plain(header: disk::Header) -> Result<Self, DiskFault> {
        let to_u32 = disk::to_u32;
        Ok(ProgramHeader {
            label: header.label,
            fingerprint: header.fingerprint,
            num_inputs: to_u32("inputs", header.num_inputs)?,
            num_aux: to_u32("auxiliary variables", header.num_aux)?,
            rows: to_u32("rows", header.rows)?,
            nnz: header.nnz,
            variables: None,
            coefficients: 0,
            counts: Counts::default(),
        })
    }

    pub(super) fn dimensions(&self) -> Dimensions {
        Dimensions {
            num_inputs: self.num_inputs,
            num_aux: self.num_aux,
            rows: self.rows,
            nnz: self.nnz,
        }
    }

    /// Returns an error if the header announces more variables than the circuit has.
    pub(super) fn check_limits(&self) -> Result<(), DiskFault> {
        match self.variables {
            Some(announced) => announced.check_limits(self.num_inputs, self.num_aux),
            None => Ok(()),
        }
    }

    fn version(&self) -> u32 {
        match self.variables {
            Some(_) => VERSION,
            None => WITHOUT_VARIABLES,
        }
    }

    /// Counts are 32 bits, so no sum of these overflows 64.
    pub(super) fn offsets(&self, scalar_bytes: usize) -> Offsets {
        let header_bytes = match self.variables {
            Some(_) => HEADER_BYTES_MAX,
            None => HEADER_BYTES,
        };
        let coefficients = (header_bytes + self.label.len()).next_multiple_of(4) as u64;
        let coefficient_bytes = u64::from(self.coefficients) * scalar_bytes as u64;
        let words = (coefficients + coefficient_bytes).next_multiple_of(4);
        let checksum = words + 4 * self.counts.words();
        Offsets {
            coefficients,
            words,
            checksum,
        }
    }

    pub(super) fn to_bytes<S: PrimeField>(&self) -> Result<Vec<u8>, DiskFault> {
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
        bytes.extend(self.version().to_le_bytes());
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
        for word in self.variables.iter().flat_map(|counts| counts.words()) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.label.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Ok(bytes)
    }

    pub(super) fn from_bytes<S: PrimeField>(file: &[u8]) -> Result<Self, DiskFault> {
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
        if ![WITHOUT_VARIABLES, VERSION].contains(&version) {
            let expected = VERSION;
            return Err(DiskFault::Version {
                expected,
                got: version,
            });
        }
        let label_bytes = word().unwrap_or(0) as usize;
        Self::after_version::<S>(rest, version, label_bytes)
            .ok_or_else(|| too_short(least, file))?
    }

    /// The rest of the header of a file of this version; `None` if the file ends before it.
    fn after_version<S: PrimeField>(
        mut rest: &[u8],
        version: u32,
        label_bytes: usize,
    ) -> Option<Result<Self, DiskFault>> {
        if take(&mut rest)? != field_id::<S>() {
            return Some(Err(DiskFault::Field));
        }
        let fingerprint = Fingerprint::from_bytes(take(&mut rest)?);
        let [num_inputs, num_aux, rows, root] = take_words(&mut rest)?;
        let mut long = || take(&mut rest).map(u64::from_le_bytes);
        let nnz = [long()?, long()?, long()?];
        let [coefficients, parts, items, shapes, nodes, children] = take_words(&mut rest)?;
        let variables = match version {
            WITHOUT_VARIABLES => None,
            _ => Some(VariableCounts::of_words(take_words(&mut rest)?)),
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
            variables,
            coefficients,
            counts: Counts {
                parts,
                items,
                shapes,
                nodes,
                children,
                root,
            },
        }))
    }
}

/// The next `N` bytes, if there are so many.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (&bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(bytes)
}

/// The next `N` words, if there are so many.
fn take_words<const N: usize>(rest: &mut &[u8]) -> Option<[u32; N]> {
    let mut words = [0; N];
    for word in &mut words {
        *word = u32::from_le_bytes(take(rest)?);
    }
    Some(words)
}

pub(super) fn too_short(expected: u64, file: &[u8]) -> DiskFault {
    DiskFault::Size {
        expected: expected.into(),
        got: file.len() as u64,
    }
}
