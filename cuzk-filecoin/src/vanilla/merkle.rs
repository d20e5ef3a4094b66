//! Merkle trees over more leaves than there is memory for: all but a few
//! leaves repeat.
//!
//! Not a store: it keeps the nodes above the leaves that do not repeat, and one copy of
//! those above the leaves that do. The invariant: root and paths are those of the full tree
//! over the same leaves.

use std::collections::BTreeMap;

use filecoin_hashers::{HashFunction, Hasher, PoseidonArity};
use rayon::prelude::*;
use storage_proofs_core::merkle::MerkleProof;

/// A level's nodes that do not repeat, by ascending index.
type Nodes<D> = Vec<(usize, D)>;

/// A tree of which every level but the topmost may branch differently; all
/// numbers of children are powers of two.
pub(super) struct SparseTree<H: Hasher> {
    /// Children of a node at each level, those of leaves' parents first.
    arities: Vec<usize>,
    /// Equal parts of the leaves, in order, each repeating a pattern.
    blocks: Vec<Block<H::Domain>>,
    /// The nodes that do not repeat, leaves first, the root last.
    single: Vec<Nodes<H::Domain>>,
}

/// A part of the leaves: at each level, leaves first, the nodes that repeat
/// until the part is full.
struct Block<D> {
    rows: Vec<Vec<D>>,
}

impl<H: Hasher> SparseTree<H> {
    /// The tree whose leaves are made of as many equal blocks as there are
    /// `patterns`, each pattern repeating in its block, except for `leaves`.
    ///
    /// The number of patterns and their lengths are powers of two, and a
    /// pattern is no longer than its block.
    pub(super) fn new(
        arities: Vec<usize>,
        patterns: Vec<Vec<H::Domain>>,
        leaves: BTreeMap<usize, H::Domain>,
    ) -> Self {
        let block_leaves = arities.iter().product::<usize>() / patterns.len();
        let block_arities = levels_within(&arities, block_leaves);
        let blocks = patterns
            .into_par_iter()
            .map(|pattern| Block::new::<H>(pattern, block_arities))
            .collect();
        let block_levels = block_arities.len();
        let mut tree = Self {
            single: vec![leaves.into_iter().collect()],
            blocks,
            arities,
        };
        for level in 0..tree.arities.len() {
            let nodes = tree.parents(level, level >= block_levels);
            tree.single.push(nodes);
        }
        tree
    }

    /// The nodes above those that do not repeat at `level`, or all of the next
    /// level's nodes.
    fn parents(&self, level: usize, all: bool) -> Nodes<H::Domain> {
        let arity = self.arities[level];
        let indices: Vec<usize> = if all {
            (0..self.arities[level + 1..].iter().product()).collect()
        } else {
            let mut above: Vec<_> = self.single[level].iter().map(|(i, _)| i / arity).collect();
            above.dedup();
            above
        };
        indices
            .into_par_iter()
            .map(|index| {
                let children = (index * arity..(index + 1) * arity).map(|i| self.node(level, i));
                (index, hash::<H>(children))
            })
            .collect()
    }

    /// The node at `index` of a level, which is 0 for leaves.
    pub(super) fn node(&self, level: usize, index: usize) -> H::Domain {
        let nodes = &self.single[level];
        match nodes.binary_search_by_key(&index, |(i, _)| *i) {
            Ok(at) => nodes[at].1,
            Err(_) => self.repeating(level, index),
        }
    }

    fn repeating(&self, level: usize, index: usize) -> H::Domain {
        let nodes_in_level: usize = self.arities[level..].iter().product();
        let block = &self.blocks[index / (nodes_in_level / self.blocks.len())];
        let row = &block.rows[level];
        row[index % row.len()]
    }

    pub(super) fn root(&self) -> H::Domain {
        self.node(self.arities.len(), 0)
    }

    /// The proof that a leaf is in the tree. The arities must be the tree's.
    pub(super) fn proof<A, B, C>(&self, leaf: usize) -> MerkleProof<H, A, B, C>
    where
        A: PoseidonArity,
        B: PoseidonArity,
        C: PoseidonArity,
    {
        MerkleProof::from_parts(self.node(0, leaf), self.root(), self.path(leaf))
    }

    /// At each level the siblings of the node above `leaf`, and its position
    /// among them.
    fn path(&self, leaf: usize) -> Vec<(Vec<H::Domain>, usize)> {
        let mut index = leaf;
        let mut path = Vec::with_capacity(self.arities.len());
        for (level, arity) in self.arities.iter().enumerate() {
            let (first, position) = (index - index % arity, index % arity);
            let siblings = (0..*arity)
                .filter(|i| *i != position)
                .map(|i| self.node(level, first + i))
                .collect();
            path.push((siblings, position));
            index /= arity;
        }
        path
    }
}

impl<D> Block<D> {
    fn new<H: Hasher<Domain = D>>(pattern: Vec<D>, arities: &[usize]) -> Self
    where
        D: Copy,
    {
        let mut rows = vec![pattern];
        for arity in arities {
            let row = &rows[rows.len() - 1];
            // A pattern shorter than a node's children is all of them in turn.
            let above = (0..(row.len() / arity).max(1))
                .map(|i| hash::<H>((i * arity..(i + 1) * arity).map(|j| row[j % row.len()])))
                .collect();
            rows.push(above);
        }
        Self { rows }
    }
}

/// The arities of the levels whose nodes have at most `leaves` leaves below.
fn levels_within(arities: &[usize], leaves: usize) -> &[usize] {
    let mut below = 1;
    let within = arities
        .iter()
        .take_while(|arity| {
            below *= **arity;
            below <= leaves
        })
        .count();
    &arities[..within]
}

fn hash<H: Hasher>(children: impl Iterator<Item = H::Domain>) -> H::Domain {
    let mut bytes = Vec::with_capacity(8 * 32);
    for child in children {
        bytes.extend_from_slice(child.as_ref());
    }
    H::Function::hash(&bytes)
}

#[cfg(test)]
mod tests {
    use filecoin_hashers::Domain;
    use filecoin_hashers::poseidon::PoseidonHasher;
    use filecoin_hashers::sha256::Sha256Hasher;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use storage_proofs_core::merkle::{
        BinaryMerkleTree, DiskTree, MerkleProofTrait, MerkleTreeTrait, create_base_merkle_tree,
    };

    use super::*;
    use crate::tree::SubTree;

    /// The arity of large sectors' replica trees, and that of no level.
    type Eight = <SubTree as MerkleTreeTrait>::SubTreeArity;
    type None0 = <SubTree as MerkleTreeTrait>::TopTreeArity;

    /// The slow twin: every node of every level, leaves first.
    fn full<H: Hasher>(arities: &[usize], leaves: Vec<H::Domain>) -> Vec<Vec<H::Domain>> {
        let mut rows = vec![leaves];
        for arity in arities {
            let below = &rows[rows.len() - 1];
            let row = below
                .chunks(*arity)
                .map(|children| hash::<H>(children.iter().copied()))
                .collect();
            rows.push(row);
        }
        rows
    }

    /// Random patterns and leaves, and all leaves that they make.
    fn random<H: Hasher>(
        arities: &[usize],
        rng: &mut ChaCha8Rng,
    ) -> (SparseTree<H>, Vec<H::Domain>) {
        let count: usize = arities.iter().product();
        let blocks = 1 << rng.gen_range(0..=count.ilog2());
        let length = 1 << rng.gen_range(0..=(count / blocks).ilog2());
        let patterns: Vec<Vec<_>> = (0..blocks)
            .map(|_| (0..length).map(|_| H::Domain::random(rng)).collect())
            .collect();
        let mut leaves: Vec<_> = patterns
            .iter()
            .flat_map(|pattern| pattern.iter().cycle().take(count / blocks).copied())
            .collect();
        let single: BTreeMap<_, _> = (0..rng.gen_range(0..=count))
            .map(|_| (rng.gen_range(0..count), H::Domain::random(rng)))
            .collect();
        for (index, leaf) in &single {
            leaves[*index] = *leaf;
        }
        (SparseTree::new(arities.to_vec(), patterns, single), leaves)
    }

    fn check<H: Hasher>(arities: &[usize], rng: &mut ChaCha8Rng) {
        let (sparse, leaves) = random::<H>(arities, rng);
        let full = full::<H>(arities, leaves);
        for (level, row) in full.iter().enumerate() {
            for (index, node) in row.iter().enumerate() {
                assert_eq!(
                    sparse.node(level, index),
                    *node,
                    "level {level}, node {index} of {arities:?}"
                );
            }
        }
        assert_eq!(sparse.root(), full[arities.len()][0]);
    }

    #[test]
    fn nodes_are_those_of_the_full_tree() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..30 {
            for arities in [&[2][..], &[2; 6], &[2; 9]] {
                check::<Sha256Hasher>(arities, &mut rng);
            }
        }
        for _ in 0..4 {
            for arities in [&[8, 8][..], &[8, 8, 4], &[8, 8, 2]] {
                check::<PoseidonHasher>(arities, &mut rng);
            }
        }
    }

    fn check_proofs<Tree: MerkleTreeTrait>(
        library: &Tree,
        sparse: &SparseTree<Tree::Hasher>,
        leaves: usize,
    ) {
        assert_eq!(library.root(), sparse.root());
        for leaf in 0..leaves {
            let theirs = library.gen_proof(leaf).unwrap();
            let ours = sparse.proof::<Tree::Arity, Tree::SubTreeArity, Tree::TopTreeArity>(leaf);
            assert!(ours.validate(leaf));
            assert_eq!(
                (ours.leaf(), ours.path()),
                (theirs.leaf(), theirs.path()),
                "leaf {leaf}"
            );
        }
    }

    fn library<Tree: MerkleTreeTrait>(leaves: &[<Tree::Hasher as Hasher>::Domain]) -> Tree {
        let bytes: Vec<u8> = leaves.iter().flat_map(Domain::into_bytes).collect();
        create_base_merkle_tree(None, leaves.len(), &bytes).unwrap()
    }

    #[test]
    fn proofs_are_the_librarys() {
        type Base = DiskTree<PoseidonHasher, Eight, None0, None0>;
        type Compound = DiskTree<PoseidonHasher, Eight, Eight, None0>;

        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for _ in 0..3 {
            // The trees of a 2 KiB sector.
            let (sparse, leaves) = random(&[2; 6], &mut rng);
            check_proofs(
                &library::<BinaryMerkleTree<Sha256Hasher>>(&leaves),
                &sparse,
                64,
            );
            let (sparse, leaves) = random(&[8, 8], &mut rng);
            check_proofs(&library::<Base>(&leaves), &sparse, 64);
            // Eight of them under one node, as in a sector of 32 GiB.
            let (sparse, leaves) = random(&[8, 8, 8], &mut rng);
            let trees = leaves.chunks(64).map(library::<Base>).collect();
            check_proofs(&Compound::from_trees(trees).unwrap(), &sparse, 512);
        }
    }
}
