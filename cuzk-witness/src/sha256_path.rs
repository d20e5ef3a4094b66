//! A Merkle path over SHA-256, from a leaf to its tree's root: the tree over
//! a sector's data.
//!
//! Paths are hashed while they are written, one at a time: the bits between
//! are most of what there is to write.

use crate::insertion::{insert, write_insertion};
use crate::num::write_bits;
use crate::pack::{digest_element, message_words};
use crate::por::{MerklePath, TreeShape};
use crate::sha256::sha256;
use crate::uint32::Word;
use crate::{Builder, ShapeError};
use blstrs::Scalar;

/// As `PoRCircuit` past its leaf: by level the bits of the place, the
/// siblings, the insertion and the hash. The leaf's index, which the circuit
/// packs into a public input, is not written. Gives the root.
///
/// # Errors
/// As [`MerklePath::check`].
pub fn write(
    shape: TreeShape,
    path: &MerklePath,
    builder: &mut Builder,
) -> Result<Scalar, ShapeError> {
    path.check(shape)?;
    write_levels(shape, path, builder, true)
}

/// As the siblings that a caller of `por_no_challenge_input` allocates,
/// followed by the gadget itself: by level the insertion and the hash. Gives
/// the root.
///
/// # Errors
/// As [`MerklePath::check`].
pub fn write_without_index(
    shape: TreeShape,
    path: &MerklePath,
    builder: &mut Builder,
) -> Result<Scalar, ShapeError> {
    path.check(shape)?;
    for siblings in &path.siblings {
        builder.extend(siblings);
    }
    write_levels(shape, path, builder, false)
}

/// As the gadget past its siblings, which were allocated before: by level the
/// insertion and the hash. Gives the root.
///
/// # Errors
/// As [`MerklePath::check`].
pub(crate) fn write_below_siblings(
    shape: TreeShape,
    path: &MerklePath,
    builder: &mut Builder,
) -> Result<Scalar, ShapeError> {
    path.check(shape)?;
    write_levels(shape, path, builder, false)
}

fn write_levels(
    shape: TreeShape,
    path: &MerklePath,
    builder: &mut Builder,
    with_index: bool,
) -> Result<Scalar, ShapeError> {
    let mut node = path.leaf;
    for (arity, place, siblings) in path.levels(shape) {
        if with_index {
            builder.push_bits(place as u64, arity.trailing_zeros());
            builder.extend(siblings);
        }
        write_insertion(node, place, siblings, builder)?;
        let mut children = Vec::with_capacity(arity);
        insert(node, place, siblings, &mut children);
        node = write_hash(&children, builder);
    }
    Ok(node)
}

/// As `Sha256Function::hash_multi_leaf_circuit`, and `hash2_circuit` of two.
pub(crate) fn write_hash(children: &[Scalar], builder: &mut Builder) -> Scalar {
    for child in children {
        write_bits(child, builder);
    }
    let message: Vec<Word> = children.iter().flat_map(message_words).collect();
    let node = digest_element(sha256(&message, builder));
    builder.push(node);
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_writes, options, path, scalars};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::boolean::AllocatedBit;
    use bellperson::gadgets::num::AllocatedNum;
    use filecoin_hashers::sha256::Sha256Hasher;
    use storage_proofs_core::gadgets::por::{PoRCircuit, por_no_challenge_input};
    use storage_proofs_core::gadgets::variables::Root;
    use storage_proofs_core::merkle::LCTree;
    use typenum::{U0, U2};

    type Tree = LCTree<Sha256Hasher, U2, U0, U0>;

    #[test]
    fn climbs_as_the_circuit() {
        for levels in [1, 2, 7] {
            let shape = TreeShape::new(2, levels, 0, 0).unwrap();
            let path = path(shape, levels as u64);
            let root = scalars(1, 2)[0];
            assert_writes(
                |cs| {
                    let root = AllocatedNum::alloc(cs.namespace(|| "root"), || Ok(root)).unwrap();
                    PoRCircuit::<Tree>::synthesize(
                        cs.namespace(|| "por"),
                        Root::Val(Some(path.leaf)),
                        options(shape, &path).into(),
                        Root::Var(root),
                        true,
                    )
                    .unwrap();
                },
                |builder| {
                    builder.push(root);
                    builder.push(path.leaf);
                    write(shape, &path, builder).unwrap();
                    builder.push_input(Scalar::from(path.index));
                },
            );
        }
    }

    #[test]
    fn climbs_as_the_circuit_without_index() {
        let shape = TreeShape::new(2, 3, 0, 0).unwrap();
        let path = path(shape, 6);
        assert_writes(
            |cs| {
                let leaf = AllocatedNum::alloc(&mut *cs, || Ok(path.leaf)).unwrap();
                let bit = |k: u32| AllocatedBit::alloc(&mut *cs, Some(path.index >> k & 1 == 1));
                let bits = (0..3).map(bit).map(Result::unwrap).collect();
                let alloc = |level: &Vec<Scalar>| AllocatedNum::alloc(&mut *cs, || Ok(level[0]));
                let siblings = path.siblings.iter().map(alloc);
                let siblings = siblings.map(|sibling| vec![sibling.unwrap()]).collect();
                let root = leaf.clone();
                por_no_challenge_input::<Tree, _>(&mut *cs, bits, leaf, siblings, root).unwrap();
            },
            |builder| {
                builder.push(path.leaf);
                builder.push_bits(path.index, 3);
                let root = write_without_index(shape, &path, builder);
                assert_eq!(root, write(shape, &path, &mut Builder::default()));
            },
        );
    }

    #[test]
    fn other_shapes_are_refused() {
        let shape = TreeShape::new(2, 3, 0, 0).unwrap();
        let mut path = path(shape, 6);
        path.siblings.pop();
        let mut builder = Builder::default();
        assert!(write(shape, &path, &mut builder).is_err());
        assert!(write_without_index(shape, &path, &mut builder).is_err());
        assert_eq!(builder.num_aux(), 0);
    }
}
