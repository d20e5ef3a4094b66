//! The partition's challenges, and each one's factor of the new data.

use super::inputs::{DIGEST_BITS, H_CHOICES, Update, UpdateShape};
use crate::num::{words, write_bits};
use crate::poseidon::{Hash, Hashes};
use crate::{Builder, Isa};
use blstrs::Scalar;

/// All that follows from the public inputs.
#[derive(Debug)]
pub(super) struct Randomness {
    /// H(comm_d_new, comm_r_old).
    phi: Hashes,
    /// H(comm_r_new, index), one for so many challenges.
    digests: Hashes,
    digest_indices: Vec<Scalar>,
    /// Leaves of the sector, by challenge.
    pub(super) challenges: Vec<u64>,
    /// H(phi, high bits of the challenge).
    rhos: Hashes,
    bits: u32,
    choices: [(u32, bool); H_CHOICES as usize],
}

impl Randomness {
    /// Of inputs that were checked.
    pub(super) fn new(isa: Isa, shape: &UpdateShape, update: &Update) -> Randomness {
        let function = Hash::Randomness2.function();
        let phi = function.hash(isa, &[update.comm_d_new, update.comm_r_old]);
        let random_bits = shape.random_bits();
        let per_digest = (DIGEST_BITS / random_bits) as usize;
        let count = shape.challenges.div_ceil(per_digest) as u64;
        let partition = shape.partition(update);
        let digest_indices: Vec<Scalar> = (0..count)
            .map(|j| Scalar::from(partition * count + j))
            .collect();
        let preimages: Vec<Scalar> = digest_indices
            .iter()
            .flat_map(|index| [update.comm_r_new, *index])
            .collect();
        let digests = function.hash(isa, &preimages);
        let digest_words: Vec<[u64; 4]> = digests.digests().map(|digest| words(&digest)).collect();
        let challenges: Vec<u64> = digest_words
            .iter()
            .flat_map(|words| {
                (0..DIGEST_BITS / random_bits).map(|i| bits_at(words, i * random_bits, random_bits))
            })
            .map(|random| random | partition << random_bits)
            .take(shape.challenges)
            .collect();
        let chosen = shape.chosen(update);
        let mut randomness = Randomness {
            digests,
            digest_indices,
            bits: shape.challenge_bits(),
            choices: std::array::from_fn(|k| (shape.high_bits[k], chosen[k])),
            rhos: function.hash(isa, &[]),
            challenges,
            phi,
        };
        let phi = randomness.phi.digest(0);
        let preimages: Vec<Scalar> = randomness
            .challenges
            .iter()
            .flat_map(|challenge| [phi, randomness.high(*challenge)])
            .collect();
        randomness.rhos = function.hash(isa, &preimages);
        randomness
    }

    /// The factor of the new data.
    pub(super) fn rho(&self, challenge: usize) -> Scalar {
        self.rhos.digest(challenge)
    }

    /// The challenge's high bits, as many as were chosen.
    fn high(&self, challenge: u64) -> Scalar {
        self.choices
            .iter()
            .filter(|(_, chosen)| *chosen)
            .map(|(high_bits, _)| Scalar::from(self.high_bits(challenge, *high_bits)))
            .sum()
    }

    fn high_bits(&self, challenge: u64, count: u32) -> u64 {
        challenge >> (self.bits - count)
    }

    pub(super) fn write_phi(&self, builder: &mut Builder) {
        self.phi.write(0, builder);
    }

    /// As `gen_challenge_bits`: by digest its index, the hash, and its bits.
    pub(super) fn write_challenges(&self, builder: &mut Builder) {
        for (j, index) in self.digest_indices.iter().enumerate() {
            builder.push(*index);
            self.digests.write(j, builder);
            write_bits(&self.digests.digest(j), builder);
        }
    }

    /// As `get_challenge_high_bits`, by choice the high bits and those or
    /// nothing, then those that were chosen; and the hash that gives rho.
    pub(super) fn write_rho(&self, challenge: usize, builder: &mut Builder) {
        let value = self.challenges[challenge];
        for (high_bits, chosen) in self.choices {
            let high = self.high_bits(value, high_bits);
            builder.push(Scalar::from(high));
            builder.push(Scalar::from(if chosen { high } else { 0 }));
        }
        builder.push(self.high(value));
        self.rhos.write(challenge, builder);
    }
}

/// `length` bits from `start` on, of 256; less than 64, and below the end.
fn bits_at(words: &[u64; 4], start: u32, length: u32) -> u64 {
    let (at, shift) = ((start / 64) as usize, start % 64);
    let above = words.get(at + 1).copied().unwrap_or(0);
    // Shifting by 64 is not shifting: in two steps it is.
    let bits = words[at] >> shift | above << 1 << (63 - shift);
    bits & ((1 << length) - 1)
}
