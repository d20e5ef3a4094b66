//! A constraint system in a file.
//!
//! A file is little-endian throughout. It has a fixed header (magic, version, field,
//! circuit fingerprint, dimensions) and a label. Then come the three matrices as row
//! pointers, columns and scalars, and a blake3 checksum of everything before it.
//!
//! Invariant: nothing from a file is used before it is checked. The size that the header
//! announces must be the size of the file before anything is allocated. The checksum must
//! hold before a row is decoded. The rows must pass the checked constructors, and have the
//! announced fingerprint. A file appears under its name complete or not at all.

mod error;
mod header;
mod rows;
mod whole;

pub use error::{DiskError, DiskFault, LABEL_BYTES_MAX};
pub(crate) use error::{at, check_fingerprint};
pub use header::Header;
pub(crate) use header::{field_id, plain_bytes, scalar_bytes};
pub use rows::{Stored, inspect, read, write};
pub(crate) use rows::{inspect_file, is_plain, read_file, to_u32, write_file};
pub(crate) use whole::{CHECKSUM_BYTES, write_whole};
