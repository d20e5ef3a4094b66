//! Groth16 parameters: the proving and verifying keys of a circuit, in
//! bellperson's `.params` and `.vk` formats.
//!
//! `file` maps and checks them, `query` decodes their points, `check` checks
//! every one, `mapped` is a file in use with its multiples, `manager` knows where they are and opens each once, `multiples` keeps
//! multiples of points beside them, `generate` makes insecure ones for tests
//! (`toxic_waste` → `qap` → points). Nothing here fetches anything or knows a circuit by name. The
//! invariants: a file's lengths are checked against its real size before any of
//! it is used, a parameter file is never copied whole, and one that is there is
//! never overwritten.

mod check;
mod error;
mod file;
mod generate;
mod manager;
mod map;
mod mapped;
mod multiples;
mod qap;
mod query;
mod toxic_waste;

pub use crate::query_lengths::QueryLengths;
pub use check::check_points;
pub use error::{GenerateError, ParamsError};
pub use file::{ParamsFile, read_verifying_key};
pub use generate::{Generated, generate};
pub use manager::{GenerateOptions, LoadedParams, Loading, Outcome, ParamCache, ParameterFiles};
pub use mapped::MappedParams;
pub use multiples::{
    LIMIT_BYTES, MappedMultiples, Shapes, SharedFile, WrittenMultiples, multiples_path,
    planned_multiples, write_multiples, writing_bytes,
};
pub use query::{Query, QueryName};
pub use toxic_waste::ToxicWaste;
