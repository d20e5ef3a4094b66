//! Any prime field's elements in a cell, through their canonical bytes.
//!
//! This form is general: it needs only the promises of [`PrimeField`], and a modulus that
//! is written in hexadecimal. It is slow, because every access converts into or out of
//! Montgomery form. Fields whose limbs can be had directly should implement [`CellField`]
//! themselves.

use super::CellField;
use ff::PrimeField;

/// An element of a prime field of 193 to 255 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canonical<S>(pub S);

/// The greatest top limb of a field with this modulus, given as `0x` and 64 digits. For a
/// modulus in another form only the number of bits is used. That is right for all fields
/// but those of 255 bits, which are refused when the cell is compiled.
const fn top_limb_max(modulus: &str, num_bits: u32) -> u64 {
    assert!(num_bits > 192 && num_bits < 256);
    let all_ones = u64::MAX >> (256 - num_bits);
    let digits = modulus.as_bytes();
    if digits.len() != 66 || digits[0] != b'0' || digits[1] != b'x' {
        return all_ones;
    }
    let mut top = 0;
    let mut at = 2;
    while at < 18 {
        let digit = match digits[at] {
            d @ b'0'..=b'9' => d - b'0',
            d @ b'a'..=b'f' => d - b'a' + 10,
            d @ b'A'..=b'F' => d - b'A' + 10,
            _ => return all_ones,
        };
        top = top << 4 | digit as u64;
        at += 1;
    }
    top
}

/// Returns true if the field's bytes start with the least significant one.
fn is_little_endian<S: PrimeField>() -> bool {
    S::ONE.to_repr().as_ref().first() == Some(&1)
}

impl<S: PrimeField> CellField for Canonical<S> {
    const TOP_LIMB_MAX: u64 = top_limb_max(S::MODULUS, S::NUM_BITS);

    fn to_limbs(&self) -> [u64; 4] {
        let repr = self.0.to_repr();
        let mut limbs = [0; 4];
        for (at, &byte) in repr.as_ref().iter().take(32).enumerate() {
            let place = if is_little_endian::<S>() { 31 - at } else { at };
            limbs[place / 8] |= u64::from(byte) << (56 - place % 8 * 8);
        }
        limbs
    }

    fn from_limbs(limbs: [u64; 4]) -> Self {
        let mut repr = S::Repr::default();
        for (at, byte) in repr.as_mut().iter_mut().take(32).enumerate() {
            let place = if is_little_endian::<S>() { 31 - at } else { at };
            *byte = limbs[place / 8].to_be_bytes()[place % 8];
        }
        Canonical(S::from_repr_vartime(repr).unwrap_or(S::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::Field;

    #[test]
    fn the_greatest_top_limb_is_that_of_minus_one() {
        let minus_one = Canonical(-Scalar::ONE).to_limbs();
        assert_eq!(Canonical::<Scalar>::TOP_LIMB_MAX, minus_one[0]);
        assert_eq!(minus_one[3], 0xffff_ffff_0000_0000);
    }

    #[test]
    fn small_numbers_are_in_the_last_limb() {
        assert_eq!(Canonical(Scalar::from(7)).to_limbs(), [0, 0, 0, 7]);
        let limbs = [1, 2, 3, 4];
        assert_eq!(Canonical::<Scalar>::from_limbs(limbs).to_limbs(), limbs);
    }

    #[test]
    fn a_modulus_in_other_digits_leaves_its_number_of_bits() {
        assert_eq!(top_limb_max("21888242871839275222", 254), u64::MAX >> 2);
        let not_hexadecimal = format!("0x{}", "g".repeat(64));
        assert_eq!(top_limb_max(&not_hexadecimal, 255), u64::MAX >> 1);
    }
}
