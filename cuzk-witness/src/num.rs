//! A field element's bits.

use crate::Builder;
use blstrs::Scalar;
use ff::PrimeField;

/// The bits of a field element, the lowest first, in four words. There are
/// [`Scalar::NUM_BITS`] of them.
pub fn words(value: &Scalar) -> [u64; 4] {
    let bytes = value.to_repr();
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| words.get(i).copied().map_or(0, u64::from_le_bytes))
}

/// As bellperson's `AllocatedNum::to_bits_le`: a variable a bit, the lowest
/// first.
pub fn write_bits(value: &Scalar, builder: &mut Builder) {
    let [a, b, c, d] = words(value);
    builder.push_bits(a, 64);
    builder.push_bits(b, 64);
    builder.push_bits(c, 64);
    builder.push_bits(d, Scalar::NUM_BITS - 3 * 64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_writes, scalars};
    use bellperson::ConstraintSystem;
    use bellperson::gadgets::num::AllocatedNum;

    #[test]
    fn bits_are_the_gadgets() {
        for value in scalars(20, 3) {
            assert_writes(
                |cs| {
                    let num = AllocatedNum::alloc(cs.namespace(|| "num"), || Ok(value)).unwrap();
                    num.to_bits_le(cs.namespace(|| "bits")).unwrap();
                },
                |builder| {
                    builder.push(value);
                    write_bits(&value, builder);
                },
            );
        }
    }
}
