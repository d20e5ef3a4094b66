//! The common parts of the criterion targets.
//!
//! Reading order: [`mode`] says how a target was started. [`study`] runs its arms in
//! turns and hands the samples to criterion. [`table`] and [`plot`] print. The rest is
//! the work that is measured:
//!
//! * [`vm`], [`sizes`] and [`article`] for cells;
//! * [`victim`] and [`working_set`] for freeing;
//! * [`circuit`], [`porep`], [`msm`], [`g2`] and [`throttled`] for the MSM in G2 and the
//!   work beside it;
//! * [`columns`] for sums over the same bases;
//! * [`stage`] for the stages of a proof, and [`mimc`] for the words of an example that makes whole ones;
//! * [`multiples`] for parameters with multiples of their points;
//! * [`bound`] for the multiplications that kernels need, and [`multiplication_rate`] for
//!   those that a core starts a cycle.
//!
//! Nothing here is part of the engine.

#![deny(unsafe_code)]

pub mod article;
pub mod bound;
pub mod circuit;
pub mod columns;
pub mod g2;
pub mod mimc;
pub mod mode;
pub mod msm;
pub mod multiples;
pub mod multiplication_rate;
pub mod plot;
pub mod porep;
pub mod sizes;
pub mod stage;
pub mod study;
pub mod table;
pub mod throttled;
pub mod victim;
pub mod vm;
pub mod working_set;

/// The result of a target's `main`.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
