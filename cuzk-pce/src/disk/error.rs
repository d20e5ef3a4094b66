//! The errors of files.

use crate::{csr::CsrError, fingerprint::Fingerprint, tables_error::TablesError};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Longest label, in bytes: a label names a circuit, it does not describe it.
pub const LABEL_BYTES_MAX: usize = 255;

/// A file that could not be written or used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct DiskError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub fault: DiskFault,
}

/// The problem of a file.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    /// The operating system refused.
    #[error("{}{}", .0, remedy(.0))]
    Io(#[from] io::Error),
    /// It is another kind of file.
    #[error(
        "another kind of file: its first bytes are {got:02x?}, expected {expected:02x?}; name the \
         file that was built for this"
    )]
    Magic {
        /// The bytes this kind of file starts with.
        expected: [u8; 8],
        /// The first eight bytes.
        got: [u8; 8],
    },
    /// It was written by another version of this format.
    #[error("format version {got}, expected {expected}; delete it and build it again")]
    Version {
        /// The version this crate writes.
        expected: u32,
        /// The version in the file.
        got: u32,
    },
    /// Its scalars are of another field.
    #[error("its scalars belong to another field than the one asked for; build it for this one")]
    Field,
    /// It is shorter or longer than its header says.
    #[error("expected {expected} bytes, got {got}: cut short or damaged; build it again")]
    Size {
        /// The size its header announces, or the least it could be.
        expected: u128,
        /// The size of the file.
        got: u64,
    },
    /// Its bytes are not those that were written.
    #[error("its checksum does not hold: damaged; delete it and build it again")]
    Checksum,
    /// It is of another circuit.
    #[error(
        "circuit fingerprint: expected {expected}, got {got}: it is of another circuit; name the \
         file of this one or build it again"
    )]
    Fingerprint {
        /// The circuit asked for, or announced in the header.
        expected: Fingerprint,
        /// The circuit found.
        got: Fingerprint,
    },
    /// Its header announces more variables of a sort than there can be.
    #[error(
        "its header announces {announced} {what}, expected at most {limit}: damaged; delete it \
         and build it again"
    )]
    VariableLimit {
        /// The sort of the variables.
        what: &'static str,
        /// The number in the header.
        announced: u32,
        /// The most that there can be.
        limit: u32,
    },
    /// Its header announces other numbers of variables than its rows have.
    #[error(
        "its header announces {announced} {what}, and its rows have {counted}: damaged; delete \
         it and build it again"
    )]
    VariableCount {
        /// The sort of the variables.
        what: &'static str,
        /// The number in the header.
        announced: u32,
        /// The number in the rows.
        counted: u32,
    },
    /// A label is too long to write, or not text.
    #[error("label: expected UTF-8 text of at most {LABEL_BYTES_MAX} bytes, got {got} bytes")]
    Label {
        /// Its length in bytes.
        got: usize,
    },
    /// A scalar is not reduced.
    #[error("scalar {index} of matrix {matrix} is not below the field's modulus; build it again")]
    Scalar {
        /// Which matrix: `A`, `B` or `C`.
        matrix: char,
        /// Which nonzero, from 0.
        index: usize,
    },
    /// A coefficient of a program is not reduced.
    #[error("coefficient {index} is not below the field's modulus; build it again")]
    Coefficient {
        /// Which coefficient, from 0.
        index: usize,
    },
    /// The rows break an invariant.
    #[error("its rows are not a constraint system: {0}; build it again")]
    Rows(#[from] CsrError),
    /// The tables of a program break an invariant.
    #[error("its tables are inconsistent: {0}; build it again")]
    Tables(#[from] TablesError),
}

/// Adds the path to a fault.
pub(crate) fn at(path: &Path) -> impl FnOnce(DiskFault) -> DiskError {
    move |fault| DiskError {
        path: path.to_owned(),
        fault,
    }
}

pub(crate) fn check_fingerprint(expected: Fingerprint, got: Fingerprint) -> Result<(), DiskFault> {
    if expected == got {
        Ok(())
    } else {
        Err(DiskFault::Fingerprint { expected, got })
    }
}

/// Returns what to do about a file that the operating system refused, where that is clear.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; build it first, or name the file that was built",
        io::ErrorKind::PermissionDenied => "; give this user the right to it",
        io::ErrorKind::StorageFull => "; free some space, or use another disk",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_file_says_what_to_do() {
        let io = |kind: io::ErrorKind| DiskFault::Io(kind.into());
        for (fault, remedy) in [
            (io(io::ErrorKind::NotFound), "build it first"),
            (io(io::ErrorKind::PermissionDenied), "give this user"),
            (io(io::ErrorKind::StorageFull), "free some space"),
            (
                DiskFault::Magic {
                    expected: *b"cuzkpce\0",
                    got: *b"PK\x03\x04....",
                },
                "name the file that was built",
            ),
            (DiskFault::Field, "build it"),
        ] {
            let error = at(Path::new("/some/file"))(fault).to_string();
            assert!(error.starts_with("/some/file: "), "{error}");
            assert!(error.contains(&format!("; {remedy}")), "{error}");
        }
        let unknown = io(io::ErrorKind::Interrupted).to_string();
        assert!(!unknown.contains("; "), "{unknown}");
    }
}
