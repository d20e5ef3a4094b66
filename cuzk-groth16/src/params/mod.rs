//! Groth16 parameters: the proving and verifying keys of a circuit, in
//! bellperson's `.params` and `.vk` formats.
//!
//! | module | content |
//! |---|---|
//! | `file` | maps a file and checks its lengths |
//! | `reader` | reads parameters out of a stream |
//! | `query` | decodes points |
//! | `check` | checks every point by itself |
//! | `part` | a piece of a query |
//! | `assignment` | random values of a circuit's variables, and what its products need |
//! | `relation` | checks the points against the circuit, by a random assignment |
//! | `mapped` | a file in use, with its multiples |
//! | `multiples` | multiples of points, in a file beside the parameters |
//! | `manager` | the folder of the files; opens each once |
//! | `new_file` | writes new files of the folder |
//! | `generate` | makes insecure parameters for tests (`toxic_waste` → `qap` → points) |
//!
//! Nothing here fetches anything or knows a circuit by name. The invariants:
//!
//! * A file's lengths are checked against its real size before any of it is used.
//! * A parameter file is never copied whole.
//! * An existing parameter file is never overwritten.

mod assignment;
mod check;
mod error;
mod file;
mod generate;
mod manager;
mod map;
mod mapped;
mod multiples;
mod new_file;
mod part;
mod qap;
mod query;
mod reader;
mod relation;
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
pub use relation::{Relation, check_relation, relation_bytes};
pub use toxic_waste::ToxicWaste;
