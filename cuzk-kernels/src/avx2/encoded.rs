//! Encoded points, sixteen at a time: read, checked to be on the curve, and converted.
//!
//! Not their subgroup, except that an x of zero is refused, as blst does: such a point has order
//! three. A point is x and y, uncompressed as in ZCash's format. Numbers have the highest byte
//! first. In G2 the second component comes before the first. The three highest bits of x are
//! flags, which a finite point does not have. With any of them x is no residue, because the
//! modulus has 381 bits.
//!
//! Invariant: coordinates are compared with the modulus, and the equation of the curve is
//! checked, in all bits.

use super::coordinate::{Coordinate, Elements, multiply, multiply_elements, square, zip};
use super::limbs::Work;
use super::points::{Components, words, words_mut};
use super::words::{Encoded, are_multiples, are_residues, bits, limbs, load_encoded, reduced};
use super::{BLOCK, GROUPS, LANES};
use crate::arithmetic::BASE_RADIX_SQUARED;
use std::arch::x86_64::*;

/// Reads the encoded points with these indices. Returns true if all are there, finite and on the
/// curve.
#[target_feature(enable = "avx2,fma")]
pub(super) fn decode<A: Components<N>, const N: usize>(
    encoded: &[u8],
    indices: &[u32],
    to: &mut [A],
) -> bool {
    let (components, _) = encoded.as_chunks();
    let count = components.len() / (2 * N);
    if indices.iter().any(|index| *index as usize >= count) {
        return false;
    }
    let mut decoder = Decoder::new::<A>();
    let blocks = indices.chunks(BLOCK).zip(to.chunks_mut(BLOCK));
    for (indices, to) in blocks {
        // The lanes that are left repeat the last.
        let index = |lane: usize| indices[lane.min(indices.len() - 1)] as usize;
        let block = Block {
            components,
            indices: std::array::from_fn(index),
        };
        if !decoder.read(&block) {
            return false;
        }
        decoder.write(to);
    }
    true
}

/// The points that are read together.
struct Block<'a> {
    /// Those of all encoded points.
    components: &'a [Encoded],
    indices: [usize; BLOCK],
}

impl Block<'_> {
    /// A component of x (0) or y (1) of a group's points.
    #[inline(always)]
    fn group<const N: usize>(
        &self,
        group: usize,
        axis: usize,
        component: usize,
    ) -> [&Encoded; LANES] {
        std::array::from_fn(|lane| {
            let point = self.indices[LANES * group + lane];
            &self.components[(2 * point + axis) * N + (N - 1 - component)]
        })
    }
}

/// The constants for reading a block, and its points.
struct Decoder<const N: usize> {
    radix_squared: Elements,
    b: Coordinate<N>,
    work: Work,
    numbers: Elements,
    /// x and y.
    point: [Coordinate<N>; 2],
    scratch: [Coordinate<N>; 2],
}

impl<const N: usize> Decoder<N> {
    #[target_feature(enable = "avx2,fma")]
    fn new<A: Components<N>>() -> Self {
        let b = Coordinate::splat(&words(&A::from_xy(A::b(), A::b()))[0]);
        let Coordinate([radix_squared]) = Coordinate::splat(&[BASE_RADIX_SQUARED]);
        Self {
            radix_squared,
            b,
            work: Work::new(),
            numbers: radix_squared,
            point: [b; 2],
            scratch: [b; 2],
        }
    }

    /// Reads a block. Returns true if all of its points are on the curve.
    #[target_feature(enable = "avx2,fma")]
    fn read(&mut self, block: &Block<'_>) -> bool {
        for axis in 0..2 {
            let mut any = [_mm256_setzero_si256(); GROUPS];
            for component in 0..N {
                for (group, any) in any.iter_mut().enumerate() {
                    let numbers = load_encoded(block.group::<N>(group, axis, component));
                    if !are_residues(&numbers) {
                        return false;
                    }
                    *any = _mm256_or_si256(*any, bits(&numbers));
                    self.numbers[group] = limbs(&numbers);
                }
                let to = &mut self.point[axis].0[component];
                multiply_elements(&self.numbers, &self.radix_squared, &mut self.work, to);
            }
            if axis == 0 && any.into_iter().any(|any| has_zero(any)) {
                return false;
            }
        }
        self.is_on_curve()
    }

    #[target_feature(enable = "avx2,fma")]
    fn is_on_curve(&mut self) -> bool {
        let [x, y] = &self.point;
        let [first, cube] = &mut self.scratch;
        square(x, &mut self.work, first);
        multiply(first, x, &mut self.work, cube);
        square(y, &mut self.work, first);
        let squares = first.0.as_flattened().iter();
        let others = cube.0.as_flattened().iter().zip(self.b.0.as_flattened());
        squares.zip(others).all(|(square, (cube, b))| {
            let between = zip(square, cube, |a, b| _mm256_sub_pd(a, b));
            are_multiples(&zip(&between, b, |a, b| _mm256_sub_pd(a, b)))
        })
    }

    /// Writes the points of the block, or the first of them.
    #[target_feature(enable = "avx2,fma")]
    fn write<A: Components<N>>(&self, to: &mut [A]) {
        for (axis, coordinate) in self.point.iter().enumerate() {
            for (component, elements) in coordinate.0.iter().enumerate() {
                for (points, limbs) in to.chunks_mut(LANES).zip(elements) {
                    for (point, residue) in points.iter_mut().zip(reduced(limbs)) {
                        words_mut(point)[axis][component] = residue;
                    }
                }
            }
        }
    }
}

/// Returns true if a lane is zero.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn has_zero(lanes: __m256i) -> bool {
    let zeros = _mm256_cmpeq_epi64(lanes, _mm256_setzero_si256());
    _mm256_testz_si256(zeros, zeros) == 0
}
