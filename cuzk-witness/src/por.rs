//! Merkle paths over Poseidon, from a leaf to its tree's root.
//!
//! Paths of one shape are climbed together, a level of all of them at a time,
//! and written one by one wherever their variables belong.

use crate::error::expect_len;
use crate::insertion::{insert, write_insertion};
use crate::poseidon::{Hash, Hashes};
use crate::{Builder, Isa, ShapeError};
use blstrs::Scalar;

/// The branching of a tree, from leaf to root. There are `base_levels` levels of `base`
/// children a node, then one level of `sub` and one of `top` children, unless that number
/// is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    base: usize,
    base_levels: usize,
    sub: usize,
    top: usize,
}

impl TreeShape {
    /// A tree's shape.
    ///
    /// # Errors
    /// If an arity is not 2, 4 or 8, or the leaves are more than 2^63.
    pub fn new(
        base: usize,
        base_levels: usize,
        sub: usize,
        top: usize,
    ) -> Result<TreeShape, ShapeError> {
        Hash::nodes(base)?;
        for arity in [sub, top] {
            if arity > 0 {
                Hash::nodes(arity)?;
            }
        }
        let shape = TreeShape {
            base,
            base_levels,
            sub,
            top,
        };
        if base_levels > 63 || shape.index_bits() > 63 {
            return Err(ShapeError::new(
                "levels of a tree",
                "at most 63 bits of index",
                base_levels,
            ));
        }
        Ok(shape)
    }

    /// Arities, leaf to root.
    pub fn arities(self) -> impl Iterator<Item = usize> {
        let base = std::iter::repeat_n(self.base, self.base_levels);
        base.chain([self.sub, self.top].into_iter().filter(|arity| *arity > 0))
    }

    /// Bits of a leaf's index.
    pub fn index_bits(self) -> u32 {
        self.arities().map(usize::trailing_zeros).sum()
    }

    /// Checks that these are the siblings, by level, of one of the tree's leaves.
    ///
    /// # Errors
    /// For more or fewer levels, or siblings on one of them.
    pub fn check_siblings(self, siblings: &[Vec<Scalar>]) -> Result<(), ShapeError> {
        let levels = self.arities().count();
        expect_len("levels of a Merkle path", levels, siblings.len())?;
        for (level, (siblings, arity)) in siblings.iter().zip(self.arities()).enumerate() {
            let part = || format!("siblings on level {level} of a Merkle path");
            expect_len(part(), arity - 1, siblings.len())?;
        }
        Ok(())
    }

    /// Variables of a path as [`Climb::write`] writes it, to reserve for.
    pub fn variables(self) -> usize {
        let level = |arity: usize| {
            let hash = Hash::nodes(arity).map_or(0, |hash| hash.function().variables());
            hash + 4 * arity + 3
        };
        self.arities().map(level).sum()
    }
}

/// A leaf, its place, and its siblings up to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MerklePath {
    /// The leaf.
    pub leaf: Scalar,
    /// The leaf's index among all leaves: the places on the levels, the lowest
    /// bits for the level next to the leaf.
    pub index: u64,
    /// By level from the leaf: the other children of the parent, in order.
    pub siblings: Vec<Vec<Scalar>>,
}

impl MerklePath {
    /// Checks that the path is one of such a tree.
    ///
    /// # Errors
    /// For a path that is too long or too short, another number of siblings,
    /// or an index without a leaf.
    pub fn check(&self, shape: TreeShape) -> Result<(), ShapeError> {
        shape.check_siblings(&self.siblings)?;
        if self.index >> shape.index_bits() != 0 {
            let expected = format!("below 2^{}", shape.index_bits());
            return Err(ShapeError::new("a leaf's index", expected, self.index));
        }
        Ok(())
    }

    /// By level: its arity, the place on it, and the siblings.
    pub(crate) fn levels(
        &self,
        shape: TreeShape,
    ) -> impl Iterator<Item = (usize, usize, &[Scalar])> {
        let mut index = self.index;
        shape
            .arities()
            .zip(&self.siblings)
            .map(move |(arity, siblings)| {
                #[expect(clippy::cast_possible_truncation, reason = "below the arity")]
                let place = (index % arity as u64) as usize;
                index /= arity as u64;
                (arity, place, &siblings[..])
            })
    }
}

/// Paths of one shape with all their hashes.
#[derive(Debug)]
pub struct Climb<'a> {
    shape: TreeShape,
    leaves: Vec<Scalar>,
    paths: Vec<&'a MerklePath>,
    levels: Vec<Hashes>,
}

impl<'a> Climb<'a> {
    /// Hashes the paths from leaf to root, on the calling thread. As many as
    /// [`HASHES_AT_ONCE`](crate::poseidon::HASHES_AT_ONCE) cost the least.
    ///
    /// # Errors
    /// As [`MerklePath::check`].
    pub fn new(
        isa: Isa,
        shape: TreeShape,
        paths: Vec<&'a MerklePath>,
    ) -> Result<Climb<'a>, ShapeError> {
        let leaves = paths.iter().map(|path| path.leaf).collect();
        Climb::from_leaves(isa, shape, leaves, paths)
    }

    /// Climbs from other leaves than the paths have: those that the circuit computes.
    ///
    /// # Errors
    /// As [`MerklePath::check`], or if there are more or fewer leaves.
    pub fn from_leaves(
        isa: Isa,
        shape: TreeShape,
        leaves: Vec<Scalar>,
        paths: Vec<&'a MerklePath>,
    ) -> Result<Climb<'a>, ShapeError> {
        expect_len("leaves of Merkle paths", paths.len(), leaves.len())?;
        for path in &paths {
            path.check(shape)?;
        }
        let mut nodes = leaves.clone();
        let mut levels = Vec::new();
        let mut climbing: Vec<_> = paths.iter().map(|path| path.levels(shape)).collect();
        for arity in shape.arities() {
            let mut preimages = Vec::with_capacity(arity * paths.len());
            for (node, path) in nodes.iter().zip(&mut climbing) {
                if let Some((_, place, siblings)) = path.next() {
                    insert(*node, place, siblings, &mut preimages);
                }
            }
            let hashes = Hash::nodes(arity)?.function().hash(isa, &preimages);
            nodes = hashes.digests().collect();
            levels.push(hashes);
        }
        drop(climbing);
        Ok(Climb {
            shape,
            leaves,
            paths,
            levels,
        })
    }

    /// The root that the `index`-th path leads to.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn root(&self, index: usize) -> Scalar {
        let leaf = self.leaves[index];
        self.levels
            .last()
            .map_or(leaf, |hashes| hashes.digest(index))
    }

    /// As `PoRCircuit` past its leaf: by level the bits of the place, the
    /// siblings, the insertion and the hash. The leaf's index, which the
    /// circuit packs into a public input, and the root are not written.
    ///
    /// # Errors
    /// None, for a path that was climbed.
    ///
    /// # Panics
    /// If there are fewer paths.
    pub fn write(&self, index: usize, builder: &mut Builder) -> Result<(), ShapeError> {
        self.write_levels(index, builder, true)
    }

    /// As the siblings that a caller of `por_no_challenge_input` allocates,
    /// followed by the gadget itself: by level the insertion and the hash.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// If there are fewer paths.
    pub fn write_without_index(
        &self,
        index: usize,
        builder: &mut Builder,
    ) -> Result<(), ShapeError> {
        for siblings in &self.paths[index].siblings {
            builder.extend(siblings);
        }
        self.write_levels(index, builder, false)
    }

    fn write_levels(
        &self,
        index: usize,
        builder: &mut Builder,
        with_index: bool,
    ) -> Result<(), ShapeError> {
        let path = self.paths[index];
        let mut node = self.leaves[index];
        for ((arity, place, siblings), hashes) in path.levels(self.shape).zip(&self.levels) {
            if with_index {
                builder.push_bits(place as u64, arity.trailing_zeros());
                builder.extend(siblings);
            }
            write_insertion(node, place, siblings, builder)?;
            hashes.write(index, builder);
            node = hashes.digest(index);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_writes, path, scalars};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::boolean::AllocatedBit;
    use bellperson::gadgets::num::AllocatedNum;
    use filecoin_hashers::PoseidonArity;
    use filecoin_hashers::poseidon::PoseidonHasher;
    use storage_proofs_core::gadgets::por::{PoRCircuit, por_no_challenge_input};
    use storage_proofs_core::gadgets::variables::Root;
    use storage_proofs_core::merkle::LCTree;
    use typenum::{U0, U2, U4, U8};

    fn check<B: PoseidonArity + 'static, S: PoseidonArity + 'static, T: PoseidonArity + 'static>(
        levels: usize,
        count: usize,
    ) {
        let shape = TreeShape::new(B::to_usize(), levels, S::to_usize(), T::to_usize()).unwrap();
        let paths: Vec<_> = (0..count).map(|k| path(shape, k as u64)).collect();
        let climb = Climb::new(Isa::best(), shape, paths.iter().collect()).unwrap();
        let root = scalars(1, 9)[0];
        for (i, path) in paths.iter().enumerate() {
            assert_writes(
                |cs| {
                    let root = AllocatedNum::alloc(cs.namespace(|| "root"), || Ok(root)).unwrap();
                    PoRCircuit::<LCTree<PoseidonHasher, B, S, T>>::synthesize(
                        cs.namespace(|| "por"),
                        Root::Val(Some(path.leaf)),
                        crate::testing::options(shape, path).into(),
                        Root::Var(root),
                        true,
                    )
                    .unwrap();
                },
                |builder| {
                    builder.push(root);
                    builder.push(path.leaf);
                    let before = builder.num_aux();
                    climb.write(i, builder).unwrap();
                    assert!(builder.num_aux() - before <= shape.variables());
                    builder.push_input(Scalar::from(path.index));
                },
            );
            assert_writes(
                |cs| {
                    let alloc = |value: &Scalar| AllocatedNum::alloc(&mut *cs, || Ok(*value));
                    let [leaf, root] = [&path.leaf, &root].map(alloc).map(Result::unwrap);
                    let bit = |k| AllocatedBit::alloc(&mut *cs, Some(path.index >> k & 1 == 1));
                    let bits = (0..shape.index_bits())
                        .map(bit)
                        .map(Result::unwrap)
                        .collect();
                    let mut alloc = |value: &Scalar| AllocatedNum::alloc(&mut *cs, || Ok(*value));
                    let mut level = |level: &Vec<Scalar>| {
                        level
                            .iter()
                            .map(&mut alloc)
                            .map(Result::unwrap)
                            .collect::<Vec<_>>()
                    };
                    let siblings = path.siblings.iter().map(&mut level).collect();
                    por_no_challenge_input::<LCTree<PoseidonHasher, B, S, T>, _>(
                        cs.namespace(|| "por"),
                        bits,
                        leaf,
                        siblings,
                        root,
                    )
                    .unwrap();
                },
                |builder| {
                    builder.push(path.leaf);
                    builder.push(root);
                    builder.push_bits(path.index, shape.index_bits());
                    climb.write_without_index(i, builder).unwrap();
                },
            );
        }
    }

    #[test]
    fn climbs_as_the_circuit() {
        check::<U8, U0, U0>(2, 11);
        check::<U8, U8, U0>(3, 2);
        check::<U8, U8, U2>(2, 3);
        check::<U8, U4, U2>(1, 1);
        check::<U4, U0, U0>(3, 1);
        check::<U2, U0, U0>(5, 2);
    }

    #[test]
    fn other_shapes_are_refused() {
        let shape = TreeShape::new(8, 2, 8, 2).unwrap();
        let refusal = |change: fn(&mut MerklePath)| {
            let mut path = path(shape, 4);
            assert_eq!(path.check(shape), Ok(()));
            change(&mut path);
            let error = Climb::new(Isa::SCALAR, shape, vec![&path]).unwrap_err();
            assert_eq!(path.check(shape), Err(error.clone()));
            error.to_string()
        };
        assert_eq!(
            refusal(|path| path.siblings.truncate(3)),
            "levels of a Merkle path: expected 4, got 3"
        );
        assert_eq!(
            refusal(|path| path.siblings[3].push(Scalar::default())),
            "siblings on level 3 of a Merkle path: expected 1, got 2"
        );
        assert_eq!(
            refusal(|path| path.index = 1 << 10),
            "a leaf's index: expected below 2^10, got 1024"
        );
        for (base, levels, sub, top) in [(3, 2, 0, 0), (8, 2, 16, 0), (8, 2, 8, 5), (8, 22, 0, 0)] {
            assert!(TreeShape::new(base, levels, sub, top).is_err());
        }
    }
}
