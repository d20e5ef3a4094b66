//! The Merkle trees of a sector, by its size.
//!
//! Not the trees themselves. Replica trees hash eight children with Poseidon;
//! sectors of 32 GiB are eight such trees under one node, of 64 GiB twice that.

use filecoin_proofs::constants::{
    DefaultTreeHasher, SectorShapeBase, SectorShapeSub8, SectorShapeTop2,
};
use storage_proofs_core::merkle::MerkleTreeTrait;

use crate::sector_size::SectorSize;

/// A replica tree of any sector size.
pub(crate) trait ReplicaTree: 'static + MerkleTreeTrait<Hasher = DefaultTreeHasher> {}

impl<T: 'static + MerkleTreeTrait<Hasher = DefaultTreeHasher>> ReplicaTree for T {}

/// The replica tree up to 512 MiB.
pub(crate) type BaseTree = SectorShapeBase;
/// The replica tree of 32 GiB.
pub(crate) type SubTree = SectorShapeSub8;
/// The replica tree of 64 GiB.
pub(crate) type TopTree = SectorShapeTop2;

/// Calls `$function::<Tree, $more>($arguments)` with the replica tree of a size.
macro_rules! with_tree {
    ($size:expr, $($function:ident)::+ $(::<$($more:ty),*>)? ($($argument:expr),* $(,)?)) => {
        match $size {
            $crate::sector_size::SectorSize::KiB2
            | $crate::sector_size::SectorSize::MiB8
            | $crate::sector_size::SectorSize::MiB512 => {
                $($function)::+::<$crate::tree::BaseTree $(, $($more),*)?>($($argument),*)
            }
            $crate::sector_size::SectorSize::GiB32 => {
                $($function)::+::<$crate::tree::SubTree $(, $($more),*)?>($($argument),*)
            }
            $crate::sector_size::SectorSize::GiB64 => {
                $($function)::+::<$crate::tree::TopTree $(, $($more),*)?>($($argument),*)
            }
        }
    };
}
pub(crate) use with_tree;

/// The branching of a path from leaf to root. It has `base` levels of `arity` children,
/// then one of `sub` and one of `top` children, where those are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branching {
    pub(crate) arity: usize,
    pub(crate) base: usize,
    pub(crate) sub: usize,
    pub(crate) top: usize,
}

impl Branching {
    /// The binary tree over a sector's data.
    pub(crate) fn data(size: SectorSize) -> Self {
        Self {
            arity: 2,
            base: log2(size.nodes()),
            sub: 0,
            top: 0,
        }
    }

    /// The tree over a sector's replica or columns.
    pub(crate) fn replica(size: SectorSize) -> Self {
        let (sub, top) = match size {
            SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => (0, 0),
            SectorSize::GiB32 => (8, 0),
            SectorSize::GiB64 => (8, 2),
        };
        let arity = 8;
        let leaf_bits = log2(size.nodes()) - log2(sub.max(1)) - log2(top.max(1));
        Self {
            arity,
            base: leaf_bits / log2(arity),
            sub,
            top,
        }
    }

    /// The number of children at each level, those of leaves' parents first.
    pub(crate) fn arities(self) -> Vec<usize> {
        let above = [self.sub, self.top].into_iter().filter(|arity| *arity > 0);
        std::iter::repeat_n(self.arity, self.base)
            .chain(above)
            .collect()
    }
}

/// log₂ of a power of two.
fn log2(power: usize) -> usize {
    // At most 63, so that it always fits.
    power.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use filecoin_hashers::sha256::Sha256Hasher;
    use storage_proofs_core::merkle::{BinaryMerkleTree, compound_path_length};
    use storage_proofs_update::constants::validate_tree_r_shape;

    use super::*;

    fn check<Tree: ReplicaTree>(size: SectorSize) {
        // Panics unless the tree's arities are those of the size.
        validate_tree_r_shape::<Tree>(size.nodes());
        let replica = Branching::replica(size);
        let levels = replica.base + usize::from(replica.sub > 0) + usize::from(replica.top > 0);
        let expected = compound_path_length::<Tree::Arity, Tree::SubTreeArity, Tree::TopTreeArity>(
            size.nodes(),
        );
        assert_eq!(levels, expected, "{size}");
        let leaves: usize = replica.arities().into_iter().product();
        assert_eq!(leaves, size.nodes(), "{size}");
    }

    #[test]
    fn branching_is_the_librarys() {
        type DataTree = BinaryMerkleTree<Sha256Hasher>;
        for size in SectorSize::ALL {
            with_tree!(size, check(size));
            let expected = compound_path_length::<
                <DataTree as MerkleTreeTrait>::Arity,
                <DataTree as MerkleTreeTrait>::SubTreeArity,
                <DataTree as MerkleTreeTrait>::TopTreeArity,
            >(size.nodes());
            assert_eq!(Branching::data(size).base, expected, "{size}");
        }
    }
}
