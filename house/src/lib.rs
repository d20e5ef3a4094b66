//! Checks of the workspace's own sources.
//!
//! The tests of this crate read every source of the workspace with a parser. They check
//! that
//!
//! * the public API of each library is the one that is committed in `house/api`;
//! * imports point down, from crate to crate and from module to module;
//! * files, functions, tests and the engine's types keep their limits;
//! * the methods of a type are in one file;
//! * threads of the provers and of the engine wait for pools in one source.
//!
//! The lists beside this crate's manifest have the exceptions, each with a reason.
//!
//! # Reading order
//!
//! [`workspace`] (members and files) → [`sources`] (where text comes from) →
//! [`conditions`] (`#[cfg]`) → [`modules`] (the modules of a crate) → [`names`] (paths
//! to definitions) → [`api`] (the listing). [`imports`] has the paths of a module.
//! [`functions`] and [`impls`] measure. [`exceptions`] and [`listing`] compare with
//! committed files.
//!
//! # What it is not
//!
//! It is no compiler: it expands no macro, and it shows types as the source names them.
//! It does not know auto traits. A type that reaches the public API only through the
//! return of a function is missing from the listing. Of the other crates, only cuzk-mutants
//! depends on it.
//!
//! # Invariant
//!
//! The results depend on the sources only. They do not depend on the toolchain, on the
//! chosen features or on what was built before.

#![forbid(unsafe_code)]

pub mod api;
pub mod conditions;
mod error;
pub mod exceptions;
pub mod functions;
pub mod impls;
pub mod imports;
pub mod listing;
pub mod modules;
pub mod names;
pub mod sources;
pub mod workspace;

pub use error::{Error, Result};
