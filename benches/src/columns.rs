//! The ones of several partitions, and bases as a parameter file has them.

use blstrs::Scalar;
use cuzk_kernels::msm::{Bases, BasesError};
use group::{UncompressedEncoding, prime::PrimeCurveAffine};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::marker::PhantomData;

/// The share of scalars that are neither 0 nor 1, as in the witness of a 2 KiB PoRep. They
/// are at the same places in all partitions.
const WIDE: f64 = 0.016;

/// The share of the other scalars that are 1.
const ONE: f64 = 0.48;

/// How bits of one variable in several partitions depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitions {
    /// They do not.
    Independent,
    /// Half of the variables have the same bit in all partitions.
    HalfConstant,
}

impl Partitions {
    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::HalfConstant => "half constant",
        }
    }

    /// Returns the words of the ones of each partition, with `len` scalars each, the same
    /// every time.
    pub fn ones(self, partitions: usize, len: usize) -> Vec<Vec<u64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut columns = vec![vec![0; len.div_ceil(64)]; partitions];
        for i in 0..len {
            if rng.gen_bool(WIDE) {
                continue;
            }
            let constant = self == Self::HalfConstant && rng.r#gen();
            let common = rng.gen_bool(ONE);
            for words in &mut columns {
                let bit = if constant { common } else { rng.gen_bool(ONE) };
                words[i / 64] |= u64::from(bit) << (i % 64);
            }
        }
        columns
    }
}

/// Points in ZCash's uncompressed format.
pub struct Encoded<P> {
    bytes: Vec<u8>,
    points: PhantomData<fn() -> P>,
}

impl<P: UncompressedEncoding> Encoded<P> {
    /// Encodes points.
    pub fn new(points: &[P]) -> Self {
        let mut bytes = Vec::with_capacity(points.len() * Self::point_bytes());
        for point in points {
            bytes.extend_from_slice(point.to_uncompressed().as_ref());
        }
        Self {
            bytes,
            points: PhantomData,
        }
    }

    fn point_bytes() -> usize {
        P::Uncompressed::default().as_ref().len()
    }
}

impl<P> Bases<P> for Encoded<P>
where
    P: UncompressedEncoding + PrimeCurveAffine<Scalar = Scalar>,
{
    fn len(&self) -> usize {
        self.bytes.len() / Self::point_bytes()
    }

    fn encoded(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError> {
        let end = start.saturating_add(out.len());
        let point_bytes = Self::point_bytes();
        let range = start.saturating_mul(point_bytes)..end.saturating_mul(point_bytes);
        let bytes = self.bytes.get(range).ok_or(BasesError::OutOfRange {
            start,
            end,
            len: self.len(),
        })?;
        for (i, (out, bytes)) in (out.iter_mut().zip(bytes.chunks(point_bytes))).enumerate() {
            let mut encoded = P::Uncompressed::default();
            encoded.as_mut().copy_from_slice(bytes);
            // As parameters are read: on the curve, and in any subgroup.
            let point = Option::<P>::from(P::from_uncompressed_unchecked(&encoded));
            *out = point.ok_or_else(|| BasesError::Invalid {
                index: start + i,
                reason: "not on the curve".to_owned(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msm::bases;
    use blstrs::{G1Affine, G1Projective};

    #[test]
    fn nearly_half_of_the_scalars_are_ones() {
        for kind in [Partitions::Independent, Partitions::HalfConstant] {
            let columns = kind.ones(3, 10_000);
            assert_eq!(columns, kind.ones(3, 10_000));
            for words in &columns {
                let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
                assert!((4400..5050).contains(&ones), "{kind:?} {ones}");
            }
            let all = (0..columns[0].len())
                .map(|i| columns[0][i] & columns[1][i] & columns[2][i])
                .map(u64::count_ones)
                .sum::<u32>();
            let expected = match kind {
                Partitions::Independent => 950..1250,
                Partitions::HalfConstant => 2650..3150,
            };
            assert!(expected.contains(&all), "{kind:?} {all}");
        }
    }

    #[test]
    fn encoded_points_are_read_back() {
        let points = bases::<G1Projective>(5);
        let encoded = Encoded::new(&points);
        let mut read = [G1Affine::identity(); 3];
        encoded.read(1, &mut read).unwrap();
        assert_eq!(read, points[1..4]);
        assert_eq!(encoded.len(), 5);
        assert!(encoded.read(3, &mut read).is_err());
    }
}
