//! Mutation tests of the workspace.
//!
//! A mutant is a small change of a source, such as `<` in place of `<=`. A test has to notice it.
//! One build of a crate has all its mutants, each behind a number that a variable of the environment
//! chooses when a test runs. Such a build is called a schema (Untch, Offutt and Harrold, 1993). So a
//! mutant costs a run of a few tests, and no build of its own.
//!
//! # Reading order
//!
//! * The sources: [`values`] and [`operators`] have the changes, [`sites`] their places, which [`walk`]
//!   finds. [`render`] writes a source with its mutants. [`runtime`] is how a program knows the chosen
//!   one.
//! * The build: [`tree`] and [`target`] are its folders. [`wrapper`] is the compiler, as Cargo calls
//!   it. [`schema`] takes out the mutants that do not compile.
//! * The trials: [`suite`] runs each test once, [`trial`] runs those that reach a mutant. [`choice`]
//!   and [`packages`] say which mutants and tests. [`run`] does all of it, and [`report`] counts.
//!
//! # What it is not
//!
//! It does not mutate the arguments of macros, constants, `const fn`, tests, unsafe code, and the
//! functions that [`values`] names. It deletes no field of a struct literal. The tests of other crates
//! are not run.
//!
//! # Invariants
//!
//! * No source of the repository is changed, and no artifact of an ordinary build.
//! * A schema in which no mutant is chosen does what the source does.

#![forbid(unsafe_code)]

pub mod choice;
pub mod conditions;
pub mod operators;
pub mod packages;
pub mod process;
pub mod render;
pub mod report;
pub mod run;
pub mod runtime;
pub mod schema;
pub mod sites;
pub mod suite;
pub mod target;
pub mod tree;
pub mod trial;
pub mod values;
pub mod walk;
pub mod wrapper;
