//! Proofs of circuits that are not Filecoin's, held against bellperson's.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

mod differential;
mod edges;
mod known;
mod names;
mod oracle;
mod prover;
mod random;
mod shape;
mod waits;
