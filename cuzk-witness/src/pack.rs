//! Field elements as the words of a message, and digests as field elements.
//!
//! In a message, a field element is its 32 bytes, the lowest first. Of their 256 bits, 255
//! are variables of the circuit, and the last is a constant zero. A digest is read in the
//! same way, without its two highest bits.

use crate::uint32::Word;
use blstrs::Scalar;
use ff::PrimeField;

/// The words of a field element's bytes, of which `write_bits` wrote the bits.
pub(crate) fn message_words(value: &Scalar) -> [Word; 8] {
    let bytes = value.to_repr();
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|i| {
        let word = words.get(i).copied().map_or(0, u32::from_be_bytes);
        // The highest bit of the last byte, which is the lowest of its word.
        let constant = if i == 7 { 1 << 7 } else { 0 };
        Word::mixed(word, constant)
    })
}

/// As `pack_bits` of a digest's bits in the order of a field element's: those
/// that surely make one.
pub(crate) fn digest_element(digest: [u32; 8]) -> Scalar {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(digest) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    bytes[31] &= 0x3f;
    #[expect(clippy::expect_used, reason = "the modulus has 255 bits")]
    Scalar::from_repr_vartime(bytes).expect("254 bits are below the modulus")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[test]
    fn a_digest_loses_two_bits() {
        assert_eq!(
            digest_element([u32::MAX; 8]),
            Scalar::from(2).pow([254]) - Scalar::ONE
        );
        let three = Scalar::from(3);
        assert_eq!(
            digest_element(message_words(&three).map(|w| w.value)),
            three
        );
    }
}
