//! Batches of additions of affine points.
//!
//! Adding two affine points takes one inversion and few multiplications;
//! Montgomery's trick shares the inversion among a batch. Everything this
//! crate does with curves is such batches: buckets of a multi-scalar
//! multiplication, trees that sum selected points, accumulators of a
//! fixed-base table. This module says what a batch is, and what an
//! implementation (a [`Kernel`]) must do; it knows no scalars.

#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod encodings;
mod prefetch;
mod serial;
mod sum;

pub(crate) use prefetch::prefetch;
#[cfg(target_arch = "x86_64")]
pub(crate) use prefetch::prefetch_early;
pub(crate) use serial::{Coordinates, Serial, Step};
pub(crate) use sum::sum;

use blstrs::Scalar;
use bytemuck::{Pod, Zeroable};
use group::{Group, prime::PrimeCurveAffine};

use crate::isa::Isa;
use cuzk_memory::Plain;

/// Most additions that share one inversion. Large enough that the inversion
/// costs a few per cent, small enough that the batch's intermediate values
/// stay in the second-level cache.
pub(crate) const BATCH: usize = 2048;

/// `targets[target] += ±sources[source]`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Addition {
    /// Index into the targets.
    pub(crate) target: u32,
    source_and_sign: u32,
}

impl Addition {
    /// The first to the first.
    pub(crate) const ZERO: Addition = Addition {
        target: 0,
        source_and_sign: 0,
    };

    /// Largest index of a source.
    pub(crate) const SOURCE_MAX: usize = (u32::MAX >> 1) as usize;

    /// The sign's bit in the word that an addition is, little-endian.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const SIGN_BIT: u32 = 32;

    /// Names an addition. Both indices fit 31 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "indices fit 31 bits")]
    pub(crate) fn new(target: usize, source: usize, negative: bool) -> Addition {
        debug_assert!(target <= Self::SOURCE_MAX && source <= Self::SOURCE_MAX);
        Addition {
            target: target as u32,
            source_and_sign: ((source as u32) << 1) | u32::from(negative),
        }
    }

    /// Index into the sources.
    #[inline]
    pub(crate) fn source(self) -> usize {
        (self.source_and_sign >> 1) as usize
    }

    /// Returns true if the source is subtracted.
    #[inline]
    pub(crate) fn negative(self) -> bool {
        self.source_and_sign & 1 != 0
    }
}

/// The curve group of a kernel.
pub(crate) type CurveOf<K> = <<K as Kernel>::Affine as PrimeCurveAffine>::Curve;

/// An implementation of batched affine additions on one curve.
pub(crate) trait Kernel: Copy + Send + Sync {
    /// The curve's points as callers hold them.
    type Affine: PrimeCurveAffine<Scalar = Scalar>;
    /// The curve's points as this implementation holds them.
    type Point: Plain;
    /// An addition in progress, or a few.
    type Step: Plain;
    /// Steps that a batch takes.
    const STEPS: usize;

    /// The instructions it uses.
    fn isa(self) -> Isa;

    /// [`Kernel::STEPS`] steps, on the heap.
    fn steps(self) -> Vec<Self::Step>;

    /// The neutral element.
    fn infinity(self) -> Self::Point;

    /// The points that these bytes are; `None` where they cannot be read in
    /// place. Whether they are on the curve is not looked at.
    fn points_of(self, _bytes: &[u8]) -> Option<&[Self::Point]> {
        None
    }

    /// The inverse of [`Kernel::points_of`]; empty where that is `None`.
    fn bytes_of(self, _points: &[Self::Point]) -> &[u8] {
        &[]
    }

    /// Converts points into this implementation's form; the slices are
    /// equally long.
    fn import(self, from: &[Self::Affine], to: &mut [Self::Point]);

    /// Converts the points with these indices among `encoded` ones, which are
    /// uncompressed as in ZCash's format, one for each place of `to`. Returns
    /// `false` if one is missing, infinite, not on the curve or of order three,
    /// or if this implementation reads no encodings. Then `to` is of no use.
    fn import_encoded(self, _encoded: &[u8], _indices: &[u32], _to: &mut [Self::Point]) -> bool {
        false
    }

    /// Converts points back; the slices are equally long.
    fn export(self, from: &[Self::Point], to: &mut [Self::Affine]);

    /// The inverse of a point.
    fn negate(self, point: &Self::Point) -> Self::Point;

    /// Carries out `additions`, whose targets are pairwise different. Equal,
    /// opposite and infinite points are all right. `steps` are [`Kernel::STEPS`],
    /// whatever they are.
    fn accumulate(
        self,
        targets: &mut [Self::Point],
        sources: &[Self::Point],
        additions: &[Addition],
        steps: &mut [Self::Step],
    );

    /// [`Kernel::accumulate`] before the additions `next`, which are among the same targets
    /// and sources. The memory of those may be asked for meanwhile.
    fn accumulate_before(
        self,
        _next: &[Addition],
        targets: &mut [Self::Point],
        sources: &[Self::Point],
        additions: &[Addition],
        steps: &mut [Self::Step],
    ) {
        self.accumulate(targets, sources, additions, steps);
    }

    /// Doubles points, none of which is of order two.
    fn double(self, points: &mut [Self::Point], steps: &mut [Self::Step]) {
        let sources = points.to_vec();
        let same: Vec<_> = (0..points.len())
            .map(|i| Addition::new(i, i, false))
            .collect();
        self.accumulate(points, &sources, &same, steps);
    }

    /// The sum of a few points, taken one by one.
    fn sum_few(self, points: &[Self::Point]) -> CurveOf<Self> {
        let mut affine = vec![Self::Affine::identity(); points.len()];
        self.export(points, &mut affine);
        affine
            .iter()
            .fold(CurveOf::<Self>::identity(), |sum, point| sum + point)
    }

    /// The point, or its inverse.
    #[inline]
    fn signed(self, point: &Self::Point, negative: bool) -> Self::Point {
        if negative { self.negate(point) } else { *point }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ff::Field;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The property every kernel has: a batch does what single additions in
    /// the group do, whatever the points are.
    pub(crate) fn check_kernel<K: Kernel>(kernel: K)
    where
        K::Affine: From<<K::Affine as PrimeCurveAffine>::Curve>,
    {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let base = K::Affine::generator();
        let few: Vec<K::Affine> = [0, 1, 2, 3]
            .map(|k| (base * Scalar::from(k)).into())
            .to_vec();
        let many: Vec<K::Affine> = (0..40)
            .map(|_| (base * Scalar::random(&mut rng)).into())
            .collect();
        for size in [0, 1, 2, 7, 8, 9, 100, BATCH + 37] {
            for pool in [&few, &many] {
                check_batch(kernel, pool, size, &mut rng);
            }
        }
    }

    /// The additions that come next change nothing, however many they are.
    fn check_next<K: Kernel>(
        kernel: K,
        (before, after): (&[K::Affine], &[K::Point]),
        sources: &[K::Point],
        additions: &[Addition],
    ) {
        for next in [&additions[..additions.len() / 3], additions] {
            let mut targets = vec![kernel.infinity(); before.len()];
            kernel.import(before, &mut targets);
            let mut steps = kernel.steps();
            kernel.accumulate_before(next, &mut targets, sources, additions, &mut steps);
            let exported = |points: &[K::Point]| {
                let mut exported = vec![K::Affine::identity(); points.len()];
                kernel.export(points, &mut exported);
                exported
            };
            assert_eq!(exported(&targets), exported(after));
        }
    }

    fn check_batch<K: Kernel>(kernel: K, pool: &[K::Affine], size: usize, rng: &mut ChaCha8Rng) {
        let mut pick = || pool[rng.gen_range(0..pool.len())];
        let before: Vec<K::Affine> = (0..size + 3).map(|_| pick()).collect();
        let sources: Vec<K::Affine> = (0..size + 5).map(|_| pick()).collect();
        let additions: Vec<Addition> = (0..size)
            .map(|i| Addition::new(size + 2 - i, rng.gen_range(0..size + 5), rng.r#gen()))
            .collect();

        let mut targets = vec![kernel.infinity(); before.len()];
        let mut imported = vec![kernel.infinity(); sources.len()];
        kernel.import(&before, &mut targets);
        kernel.import(&sources, &mut imported);
        let mut steps = kernel.steps();
        kernel.accumulate(&mut targets, &imported, &additions, &mut steps);
        check_next(kernel, (&before, &targets), &imported, &additions);

        let mut doubled = vec![kernel.infinity(); before.len()];
        kernel.import(&before, &mut doubled);
        kernel.double(&mut doubled, &mut kernel.steps());
        let mut exported = vec![K::Affine::identity(); before.len()];
        kernel.export(&doubled, &mut exported);
        for (doubled, before) in exported.iter().zip(&before) {
            assert_eq!(doubled.to_curve(), before.to_curve().double());
        }

        let mut expected: Vec<_> = before.iter().map(K::Affine::to_curve).collect();
        for addition in &additions {
            let source = sources[addition.source()].to_curve();
            let signed = if addition.negative() { -source } else { source };
            expected[addition.target as usize] += signed;
        }
        let mut after = vec![K::Affine::identity(); targets.len()];
        kernel.export(&targets, &mut after);
        for (after, expected) in after.iter().zip(&expected) {
            assert_eq!(after.to_curve(), *expected);
        }
    }
}
