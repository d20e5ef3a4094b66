//! Vanilla proofs as they come, and the checks they pass on the way to the
//! proofs library's own types.
//!
//! Not verification, which hashes: these checks need no hash. The types mirror the
//! library's serialised ones field by field, for two reasons:
//!
//! * The library panics on a proof of another shape: a value that is not a field element,
//!   a path with the wrong number of siblings, a missing column.
//! * Its own types hide values that a circuit trusts.
//!
//! A proof is read once, checked, and moved over. The invariants of a checked proof:
//!
//! * It has exactly the shape of its circuit's blank instance.
//! * Every node in it is a field element.
//! * Values that it contains twice are equal.

mod merkle;
mod porep;
mod post;
mod update;

use bincode::Options;
use filecoin_hashers::Domain;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(super) use porep::{PorepChallenge, PorepShape};
pub(super) use post::PostSector;
pub(super) use update::UpdatePartition;

use crate::request::field_element;

/// A node of a tree, as it came.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
struct Node([u8; 32]);

impl Node {
    /// The node as an element of the field.
    fn element<D: Domain>(self, what: &str) -> Result<D, Mismatch> {
        if field_element(self.0) {
            Ok(D::from(self.0))
        } else {
            Err(format!("{what} is not a field element"))
        }
    }
}

fn elements<D: Domain>(nodes: Vec<Node>, what: &str) -> Result<Vec<D>, Mismatch> {
    nodes.into_iter().map(|node| node.element(what)).collect()
}

/// The place of a mismatch, from the outside in, and the mismatch.
pub(super) type Mismatch = String;

/// Prefixes a mismatch with where it is.
fn within<T>(place: impl FnOnce() -> String, result: Result<T, Mismatch>) -> Result<T, Mismatch> {
    result.map_err(|mismatch| format!("{}: {mismatch}", place()))
}

fn expect_count(what: &str, expected: usize, got: usize) -> Result<(), Mismatch> {
    if expected == got {
        Ok(())
    } else {
        Err(format!("expected {expected} {what}, got {got}"))
    }
}

fn expect_node(expected: u64, got: u64) -> Result<(), Mismatch> {
    if expected == got {
        Ok(())
    } else {
        Err(format!("expected node {expected}, got {got}"))
    }
}

/// Checks items one by one, and says which is at fault.
fn each<T, U>(
    name: &str,
    items: Vec<T>,
    check: impl Fn(T) -> Result<U, Mismatch>,
) -> Result<Vec<U>, Mismatch> {
    items
        .into_iter()
        .enumerate()
        .map(|(i, item)| within(|| format!("{name} {i}"), check(item)))
        .collect()
}

/// Reads bincode as the proofs library writes it, all of it, with no length
/// taken on trust.
pub(super) fn from_bincode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Mismatch> {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_limit(bytes.len() as u64)
        .reject_trailing_bytes()
        .deserialize(bytes)
        .map_err(|problem| problem.to_string())
}
