//! Insertion of a node among its siblings, and selection of one of many.
//!
//! The gadgets are those of `storage_proofs_core::gadgets::insertion`: every
//! choice between two numbers is a variable.

use crate::{Builder, ShapeError};
use blstrs::Scalar;

/// Writes the variables of the insertion of `element` at place `index` of
/// `siblings`, of which there are 1, 3 or 7.
///
/// # Errors
/// If there are other numbers of them.
pub fn write_insertion(
    element: Scalar,
    index: usize,
    siblings: &[Scalar],
    builder: &mut Builder,
) -> Result<(), ShapeError> {
    match *siblings {
        [b] => write_2(element, index, b, builder),
        [b, c, d] => write_4(element, index, [b, c, d], builder),
        [b, c, d, e, f, g, h] => write_8(element, index, [b, c, d, e, f, g, h], builder),
        _ => {
            let got = siblings.len();
            return Err(ShapeError::new("siblings", "1, 3 or 7", got));
        }
    }
    Ok(())
}

/// Appends `siblings` with `element` inserted at `index` to `preimage`.
pub fn insert(element: Scalar, index: usize, siblings: &[Scalar], preimage: &mut Vec<Scalar>) {
    let (before, after) = siblings.split_at(index.min(siblings.len()));
    preimage.extend_from_slice(before);
    preimage.push(element);
    preimage.extend_from_slice(after);
}

fn pick(condition: bool, a: Scalar, b: Scalar) -> Scalar {
    if condition { a } else { b }
}

fn write_2(a: Scalar, index: usize, b: Scalar, builder: &mut Builder) {
    let bit = index & 1 == 1;
    builder.extend(&[pick(bit, b, a), pick(bit, a, b)]);
}

/// At each place, a choice by the lower bit and one by the higher.
fn write_4(a: Scalar, index: usize, [b, c, d]: [Scalar; 3], builder: &mut Builder) {
    let (low, high) = (index & 1 == 1, index & 2 == 2);
    let at_0 = pick(low, b, a);
    let at_1 = pick(low, a, b);
    let at_2 = pick(low, d, a);
    let at_3 = pick(low, a, d);
    builder.extend(&[
        at_0,
        pick(high, b, at_0),
        at_1,
        pick(high, c, at_1),
        at_2,
        pick(high, at_2, c),
        at_3,
        pick(high, at_3, d),
    ]);
}

/// Places 0, 3, 4 and 7 take two choices, the others three.
fn write_8(a: Scalar, index: usize, [b, c, d, e, f, g, h]: [Scalar; 7], builder: &mut Builder) {
    let [low, middle, high] = [1, 2, 4].map(|bit| index & bit == bit);
    let (neither, both) = (!low && !middle, low && middle);
    builder.push_bits(u64::from(neither) | u64::from(both) << 1, 2);

    let at_0 = pick(neither, a, b);
    builder.extend(&[at_0, pick(high, b, at_0)]);
    let first = pick(low, a, b);
    let at_1 = pick(middle, c, first);
    builder.extend(&[first, at_1, pick(high, c, at_1)]);
    let first = pick(low, d, a);
    let at_2 = pick(middle, first, c);
    builder.extend(&[first, at_2, pick(high, d, at_2)]);
    let at_3 = pick(both, a, d);
    builder.extend(&[at_3, pick(high, e, at_3)]);

    let at_4 = pick(neither, a, f);
    builder.extend(&[at_4, pick(high, at_4, e)]);
    let first = pick(low, a, f);
    let at_5 = pick(middle, g, first);
    builder.extend(&[first, at_5, pick(high, at_5, f)]);
    let first = pick(low, h, a);
    let at_6 = pick(middle, first, g);
    builder.extend(&[first, at_6, pick(high, at_6, g)]);
    let at_7 = pick(both, a, h);
    builder.extend(&[at_7, pick(high, at_7, h)]);
}

/// Writes the variables of the selection of `from[index]`: half of what is
/// left by each bit, the highest first. `from` has 2^n elements.
pub fn write_selection(from: &[Scalar], index: usize, builder: &mut Builder) {
    let mut left = from;
    while left.len() > 1 {
        let (low, high) = left.split_at(left.len() / 2);
        left = if index & low.len() == 0 { low } else { high };
        builder.extend(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_writes, scalars};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
    use bellperson::gadgets::num::AllocatedNum;
    use bellperson::util_cs::witness_cs::WitnessCS;
    use storage_proofs_core::gadgets::insertion;

    fn nums(cs: &mut WitnessCS<Scalar>, values: &[Scalar]) -> Vec<AllocatedNum<Scalar>> {
        let alloc = |value: &Scalar| AllocatedNum::alloc(&mut *cs, || Ok(*value));
        values.iter().map(alloc).map(Result::unwrap).collect()
    }

    fn bits(cs: &mut WitnessCS<Scalar>, index: usize, count: usize) -> Vec<Boolean> {
        let alloc = |k| AllocatedBit::alloc(&mut *cs, Some(index >> k & 1 == 1));
        let bits = (0..count).map(alloc).map(Result::unwrap);
        bits.map(Boolean::from).collect()
    }

    #[test]
    fn inserts_as_the_gadget_at_every_place() {
        for levels in 1..=3 {
            for index in 0..1 << levels {
                let values = scalars(1 << levels, index as u64);
                let mut preimage = Vec::new();
                insert(values[0], index, &values[1..], &mut preimage);
                assert_writes(
                    |cs| {
                        let (nums, bits) = (nums(cs, &values), bits(cs, index, levels));
                        let inserted = insertion::insert(cs, &nums[0], &bits, &nums[1..]).unwrap();
                        let inserted: Vec<_> = inserted
                            .iter()
                            .map(|num| num.get_value().unwrap())
                            .collect();
                        assert_eq!(inserted, preimage);
                    },
                    |builder| {
                        builder.extend(&values);
                        builder.push_bits(index as u64, u32::try_from(levels).unwrap());
                        write_insertion(values[0], index, &values[1..], builder).unwrap();
                    },
                );
            }
        }
    }

    #[test]
    fn selects_as_the_gadget() {
        for levels in 0..5 {
            for index in 0..1 << levels {
                let values = scalars(1 << levels, index as u64);
                assert_writes(
                    |cs| {
                        let (nums, bits) = (nums(cs, &values), bits(cs, index, levels));
                        insertion::select(cs.namespace(|| "select"), &nums, &bits).unwrap();
                    },
                    |builder| {
                        builder.extend(&values);
                        builder.push_bits(index as u64, u32::try_from(levels).unwrap());
                        write_selection(&values, index, builder);
                    },
                );
            }
        }
    }

    #[test]
    fn other_arities_are_refused() {
        let values = scalars(16, 1);
        for siblings in [0, 2, 8, 15] {
            let mut builder = Builder::default();
            let written = write_insertion(values[0], 0, &values[..siblings], &mut builder);
            assert!(written.is_err());
        }
    }
}
