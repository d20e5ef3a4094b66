//! The challenges of SnarkPack, drawn from a hash of all that came before.
//!
//! The encoding is bellperson's, which the chain verifies: numbers are little-endian 64-bit
//! words, points are compressed, and vectors have a 64-bit length before them. The invariant:
//! a challenge is neither 0 nor 1.

use blstrs::{Fp12, G1Affine, G2Affine, Gt, Scalar};
use ff::{Field, PrimeField};
use sha2::{Digest, Sha256};

use super::commitment::Commitment;

/// The domain of all hashes.
const DOMAIN: &str = "snarkpack-v1";
/// The bits of the last byte of a hash that a scalar may have: it has 255 bits.
const LAST_BYTE: u8 = 0x7f;

/// A hash in progress.
pub(super) struct Transcript(Sha256);

impl Transcript {
    /// Begins a hash for one purpose.
    pub(super) fn new(purpose: &str) -> Self {
        Self(Sha256::new().chain_update(DOMAIN).chain_update(purpose))
    }

    /// Hashes a value.
    pub(super) fn with(mut self, value: &(impl Absorb + ?Sized)) -> Self {
        value.absorb(&mut self.0);
        self
    }

    /// Ends the hash with a challenge.
    pub(super) fn challenge(self) -> Scalar {
        let mut hash = self.0;
        let mut attempt: u64 = 0;
        loop {
            attempt += 1;
            hash.update(attempt.to_be_bytes());
            let mut bytes: [u8; 32] = hash.clone().finalize().into();
            bytes[31] &= LAST_BYTE;
            let scalar: Option<Scalar> = Scalar::from_repr_vartime(bytes);
            if let Some(scalar) = scalar
                && scalar != Scalar::ZERO
                && scalar != Scalar::ONE
            {
                return scalar;
            }
        }
    }
}

/// A value that a transcript hashes.
pub(super) trait Absorb {
    fn absorb(&self, hash: &mut Sha256);
}

impl Absorb for Scalar {
    fn absorb(&self, hash: &mut Sha256) {
        hash.update(self.to_bytes_le());
    }
}

impl Absorb for G1Affine {
    fn absorb(&self, hash: &mut Sha256) {
        hash.update(self.to_compressed());
    }
}

impl Absorb for G2Affine {
    fn absorb(&self, hash: &mut Sha256) {
        hash.update(self.to_compressed());
    }
}

impl Absorb for Gt {
    fn absorb(&self, hash: &mut Sha256) {
        let value = Fp12::from(*self);
        for half in [value.c0(), value.c1()] {
            for part in [half.c0(), half.c1(), half.c2()] {
                hash.update(part.c0().to_bytes_le());
                hash.update(part.c1().to_bytes_le());
            }
        }
    }
}

impl Absorb for Commitment {
    fn absorb(&self, hash: &mut Sha256) {
        self.0.iter().for_each(|part| part.absorb(hash));
    }
}

/// One after the other, without a length.
impl<T: Absorb, const N: usize> Absorb for [T; N] {
    fn absorb(&self, hash: &mut Sha256) {
        self.iter().for_each(|value| value.absorb(hash));
    }
}

/// Bytes with their number before them.
impl Absorb for [u8] {
    fn absorb(&self, hash: &mut Sha256) {
        hash.update((self.len() as u64).to_le_bytes());
        hash.update(self);
    }
}
