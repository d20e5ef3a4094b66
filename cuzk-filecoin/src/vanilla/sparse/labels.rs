//! The labels of challenged nodes and of their parents.
//!
//! Not of a whole sector: labels of nodes that are not challenged are drawn at
//! random. The invariant: a challenged node's label in each layer is the hash
//! of its parents' labels, also where a parent is challenged itself.

use std::collections::{BTreeMap, BTreeSet};

use filecoin_hashers::HashFunction;
use filecoin_hashers::sha256::Sha256Function;
use filecoin_proofs::constants::{DRG_DEGREE, DefaultTreeDomain, DefaultTreeHasher, EXP_DEGREE};
use rand_chacha::ChaCha8Rng;
use storage_proofs_core::drgraph::Graph as _;
use storage_proofs_porep::stacked::{StackedBucketGraph, TOTAL_PARENTS};

use super::node;
use crate::Error;
use crate::vanilla::failed;

/// The parents of a node: those in its own layer, which come before it, then
/// those in the layer below.
pub(super) type Parents = [u32; DRG_DEGREE + EXP_DEGREE];

/// Labels by node and layer, for the nodes that challenges touch.
pub(super) struct Labels {
    replica_id: DefaultTreeDomain,
    parents: BTreeMap<u32, Parents>,
    columns: BTreeMap<u32, Vec<DefaultTreeDomain>>,
}

impl Labels {
    /// The labels in all `layers` that `challenges` touch.
    pub(super) fn new(
        graph: &StackedBucketGraph<DefaultTreeHasher>,
        replica_id: DefaultTreeDomain,
        layers: u32,
        challenges: impl Iterator<Item = u32>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self, Error> {
        let parents = challenges
            .map(|challenge| Ok((challenge, parents(graph, challenge)?)))
            .collect::<Result<BTreeMap<_, _>, Error>>()?;
        let touched: BTreeSet<u32> = parents.values().flatten().copied().collect();
        let columns = touched
            .into_iter()
            .filter(|node| !parents.contains_key(node))
            .map(|parent| (parent, (0..layers).map(|_| node(rng)).collect()))
            .collect();
        let mut labels = Self {
            replica_id,
            parents,
            columns,
        };
        labels.label(layers);
        Ok(labels)
    }

    /// Labels the challenged nodes as sealing does: layer by layer, in each
    /// layer in order.
    fn label(&mut self, layers: u32) {
        let challenged: Vec<u32> = self.parents.keys().copied().collect();
        for layer in 1..=layers {
            for node in &challenged {
                let label = hash(
                    self.replica_id,
                    layer,
                    *node,
                    &self.parents_labels(layer, *node),
                );
                self.columns.entry(*node).or_default().push(label);
            }
        }
    }

    /// The nodes that have labels, ascending, each with its labels by layer.
    pub(super) fn columns(&self) -> &BTreeMap<u32, Vec<DefaultTreeDomain>> {
        &self.columns
    }

    /// The parents of a challenged node.
    pub(super) fn parents(&self, challenge: u32) -> &Parents {
        &self.parents[&challenge]
    }

    /// Returns the labels that a challenged node's label in a layer, counted from 1, is the
    /// hash of: its parents' labels, repeated. The first layer has none below it.
    pub(super) fn parents_labels(&self, layer: u32, challenge: u32) -> Vec<DefaultTreeDomain> {
        let label = |layer: u32| {
            // A u32 always fits.
            move |parent: &u32| self.columns[parent][layer as usize - 1]
        };
        let (same, below) = self.parents[&challenge].split_at(DRG_DEGREE);
        let same = same.iter().map(label(layer));
        let labels: Vec<_> = if layer == 1 {
            same.collect()
        } else {
            same.chain(below.iter().map(label(layer - 1))).collect()
        };
        labels.iter().copied().cycle().take(TOTAL_PARENTS).collect()
    }
}

/// A node's parents, computed without the cache of all of them.
fn parents(graph: &StackedBucketGraph<DefaultTreeHasher>, node: u32) -> Result<Parents, Error> {
    let mut parents = Parents::default();
    // A u32 always fits.
    graph
        .parents(node as usize, &mut parents)
        .map_err(|problem| failed("graph", &problem))?;
    Ok(parents)
}

/// The label of a node with parents: SHA-256 without its two highest bits.
fn hash(
    replica_id: DefaultTreeDomain,
    layer: u32,
    node: u32,
    parents: &[DefaultTreeDomain],
) -> DefaultTreeDomain {
    let mut preimage = Vec::with_capacity(64 + 32 * parents.len());
    preimage.extend_from_slice(replica_id.as_ref());
    preimage.extend_from_slice(&layer.to_be_bytes());
    preimage.extend_from_slice(&u64::from(node).to_be_bytes());
    preimage.resize(64, 0);
    for parent in parents {
        preimage.extend_from_slice(parent.as_ref());
    }
    Sha256Function::hash(&preimage).0.into()
}
