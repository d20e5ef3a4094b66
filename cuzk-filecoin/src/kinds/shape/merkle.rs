//! Merkle paths of any tree.

use filecoin_hashers::{Hasher, PoseidonArity};
use serde::Deserialize;
use storage_proofs_core::merkle;

use super::{Mismatch, Node, elements, expect_count, expect_node};
use crate::tree::Branching;

#[derive(Deserialize)]
struct PathElement {
    hashes: Vec<Node>,
    index: usize,
}

#[derive(Deserialize)]
struct InclusionPath {
    path: Vec<PathElement>,
}

impl InclusionPath {
    fn check(&self, levels: usize, arity: usize) -> Result<(), Mismatch> {
        expect_count("levels in the Merkle path", levels, self.path.len())?;
        for element in &self.path {
            expect_count(
                "siblings in the Merkle path",
                arity - 1,
                element.hashes.len(),
            )?;
            if element.index >= arity {
                return Err(format!(
                    "expected a position below {arity} in the Merkle path, got {}",
                    element.index
                ));
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
enum ProofData {
    Single {
        root: Node,
        leaf: Node,
        path: InclusionPath,
    },
    Sub {
        base_proof: InclusionPath,
        sub_proof: InclusionPath,
        root: Node,
        leaf: Node,
    },
    Top {
        base_proof: InclusionPath,
        sub_proof: InclusionPath,
        top_proof: InclusionPath,
        root: Node,
        leaf: Node,
    },
}

/// That a leaf is in a tree.
#[derive(Deserialize)]
pub(super) struct MerkleProof {
    data: ProofData,
}

/// A proof of a tree's shape, whatever the shape: its paths one after the other.
struct Flat {
    root: Node,
    leaf: Node,
    path: Vec<PathElement>,
}

impl MerkleProof {
    /// Returns it as the library's type, if it is of the given tree and leaf.
    pub(super) fn open<H, A, B, C>(
        self,
        tree: Branching,
        leaf: u64,
    ) -> Result<merkle::MerkleProof<H, A, B, C>, Mismatch>
    where
        H: Hasher,
        A: PoseidonArity,
        B: PoseidonArity,
        C: PoseidonArity,
    {
        let flat = self.flatten(tree)?;
        expect_node(leaf, flat.index())?;
        flat.into_proof()
    }

    /// Returns it as the library's type, if it is of the given tree.
    pub(super) fn check<H, A, B, C>(
        self,
        tree: Branching,
    ) -> Result<merkle::MerkleProof<H, A, B, C>, Mismatch>
    where
        H: Hasher,
        A: PoseidonArity,
        B: PoseidonArity,
        C: PoseidonArity,
    {
        self.flatten(tree)?.into_proof()
    }

    fn flatten(self, tree: Branching) -> Result<Flat, Mismatch> {
        let (root, leaf, paths) = match (self.data, tree.sub, tree.top) {
            (ProofData::Single { root, leaf, path }, 0, 0) => (root, leaf, vec![path]),
            (
                ProofData::Sub {
                    base_proof,
                    sub_proof,
                    root,
                    leaf,
                },
                1..,
                0,
            ) => (root, leaf, vec![base_proof, sub_proof]),
            (
                ProofData::Top {
                    base_proof,
                    sub_proof,
                    top_proof,
                    root,
                    leaf,
                },
                1..,
                1..,
            ) => (root, leaf, vec![base_proof, sub_proof, top_proof]),
            _ => return Err("the Merkle proof is of a tree for another sector size".into()),
        };
        let levels = [(tree.base, tree.arity), (1, tree.sub), (1, tree.top)];
        for (path, (levels, arity)) in paths.iter().zip(levels) {
            path.check(levels, arity)?;
        }
        let path = paths.into_iter().flat_map(|path| path.path).collect();
        Ok(Flat { root, leaf, path })
    }
}

impl Flat {
    /// The number of the leaf that the path leads to.
    fn index(&self) -> u64 {
        // Sectors have fewer than 2⁶⁴ nodes, and so have paths of their shape.
        self.path.iter().rev().fold(0, |index, element| {
            index * (element.hashes.len() as u64 + 1) + element.index as u64
        })
    }

    fn into_proof<H, A, B, C>(self) -> Result<merkle::MerkleProof<H, A, B, C>, Mismatch>
    where
        H: Hasher,
        A: PoseidonArity,
        B: PoseidonArity,
        C: PoseidonArity,
    {
        let path = self
            .path
            .into_iter()
            .map(|element| {
                let siblings = elements(element.hashes, "a sibling in the Merkle path")?;
                Ok((siblings, element.index))
            })
            .collect::<Result<_, Mismatch>>()?;
        Ok(merkle::MerkleProof::from_parts(
            self.leaf.element("the leaf")?,
            self.root.element("the root")?,
            path,
        ))
    }
}
