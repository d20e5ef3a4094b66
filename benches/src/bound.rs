//! The least that arithmetic needs: multiplications, as the formulas have them.
//!
//! Not a simulator: what kernels do besides (loading, carrying, choosing buckets,
//! waiting for memory) is what the distance to the bound is made of.

use cuzk_kernels::Isa;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// An instruction that multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// `vpmadd52luq` or `vpmadd52huq` of 512 bits: half of a product of two limbs of 52 bits, of
    /// eight values.
    Madd52,
    /// `vfmadd231pd` of 256 bits: half of a product of two limbs of 48 or 43 bits, of four values.
    Fma,
    /// `mulx`, a product of two words of 64 bits.
    Mulx,
}

impl Instruction {
    /// That of transforms and of additions of points.
    pub fn of(isa: Isa) -> Self {
        match Some(isa) {
            isa if isa == Isa::ifma() => Self::Madd52,
            isa if isa == Isa::avx2() => Self::Fma,
            _ => Self::Mulx,
        }
    }

    /// That of Poseidon, which has no kernel with AVX2.
    pub fn of_poseidon(isa: Isa) -> Self {
        match Self::of(isa) {
            Self::Fma => Self::Mulx,
            other => other,
        }
    }

    /// The name that processors' manuals have for it, with the width.
    pub fn name(self) -> &'static str {
        match self {
            Self::Madd52 => "vpmadd52 (512 bits)",
            Self::Fma => "vfmadd (256 bits)",
            Self::Mulx => "mulx",
        }
    }
}

/// Multiplications that arithmetic needs, a value. [`crate::multiplication_rate`] has the cycles
/// that a core needs for them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multiplier {
    /// Multiplications of a product before its reduction, in the scalar field.
    scalar_product: f64,
    /// Those of a reduction.
    scalar_reduction: f64,
    /// A product in the base field.
    base_product: f64,
    /// A square in the base field.
    base_square: f64,
    /// A product in its quadratic extension.
    extension_product: f64,
    /// A square there.
    extension_square: f64,
}

impl Multiplier {
    /// That of these instructions.
    pub fn of(instruction: Instruction) -> Self {
        match instruction {
            // Limbs of 52 bits, 5 and 8 of them; each product has a low and a high half.
            Instruction::Madd52 => Self::of_limbs(5.0, 8.0),
            // Limbs of 43 bits and 48 bits, 6 and 8 of them; a product is rounded, and its rest.
            Instruction::Fma => Self::of_limbs(6.0, 4.0),
            // Words of 64 bits, 4 and 6 of them. In the extension three products, or two, are
            // reduced as two.
            Instruction::Mulx => {
                let (product, reduction) = (36.0, 42.0);
                Self {
                    scalar_product: 16.0,
                    scalar_reduction: 20.0,
                    base_product: product + reduction,
                    base_square: 21.0 + reduction,
                    extension_product: 3.0 * product + 2.0 * reduction,
                    extension_square: 2.0 * (product + reduction),
                }
            }
        }
    }

    /// That of so many limbs of a scalar and eight of a coordinate, in so many lanes. Two limbs
    /// are multiplied by two instructions.
    fn of_limbs(scalar_limbs: f64, lanes: f64) -> Self {
        let scalar = 2.0 * scalar_limbs * scalar_limbs / lanes;
        Self {
            scalar_product: scalar,
            scalar_reduction: scalar,
            base_product: 256.0 / lanes,
            base_square: 200.0 / lanes,
            extension_product: 640.0 / lanes,
            extension_square: 512.0 / lanes,
        }
    }

    /// A sum of so many products in the scalar field, reduced once.
    pub fn dot(self, products: usize) -> f64 {
        products as f64 * self.scalar_product + self.scalar_reduction
    }

    /// An addition of affine points of G1 in a batch whose differences are inverted
    /// together: five products and a square.
    pub fn addition_g1(self) -> f64 {
        5.0 * self.base_product + self.base_square
    }

    /// An addition of affine points of G2, in a batch as of [`Self::addition_g1`].
    pub fn addition_g2(self) -> f64 {
        5.0 * self.extension_product + self.extension_square
    }

    /// A transform's share of one of its 2^`log` points. A butterfly has a product; those
    /// by one, of which the first three layers have 7/4 of a layer, need none.
    pub fn transform(self, log: u32) -> f64 {
        (f64::from(log) - 1.75) / 2.0 * self.dot(1)
    }
}

/// The clock of the core this runs on, as it is now: cycles a second.
pub fn clock_hz() -> f64 {
    const STEPS: u32 = 4_000_000;
    // A multiplication takes three cycles and an exclusive or one, and each waits for the
    // one before.
    const CYCLES_PER_STEP: f64 = 4.0;
    let run = || {
        let (factor, mask) = (black_box(0x9e37_79b9_7f4a_7c15_u64), black_box(1_u64));
        let started = Instant::now();
        let end = (0..STEPS).fold(mask, |x, _| x.wrapping_mul(factor) ^ mask);
        black_box(end);
        started.elapsed()
    };
    let best = (0..5).map(|_| run()).min().unwrap_or(Duration::ZERO);
    f64::from(STEPS) * CYCLES_PER_STEP / best.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_cost_less_than_one_value_and_a_sum_less_than_its_products() {
        let [madd52, fma, mulx] =
            [Instruction::Madd52, Instruction::Fma, Instruction::Mulx].map(Multiplier::of);
        assert!(mulx.dot(9) < 9.0 * mulx.dot(1));
        assert_eq!((madd52.addition_g1(), fma.addition_g1()), (185.0, 370.0));
        assert_eq!((madd52.dot(1), fma.dot(1)), (12.5, 36.0));
        assert!(madd52.addition_g2() < mulx.addition_g2());
        assert!(fma.addition_g2() < mulx.addition_g2());
    }

    #[test]
    fn each_instruction_set_has_its_multiplication() {
        assert_eq!(Instruction::of(Isa::SCALAR), Instruction::Mulx);
        assert_eq!(Instruction::of(Isa::PORTABLE), Instruction::Mulx);
        if let Some(isa) = Isa::avx2() {
            assert_eq!(Instruction::of(isa), Instruction::Fma);
            assert_eq!(Instruction::of_poseidon(isa), Instruction::Mulx);
        }
        if let Some(isa) = Isa::ifma() {
            assert_eq!(Instruction::of(isa), Instruction::Madd52);
            assert_eq!(Instruction::of_poseidon(isa), Instruction::Madd52);
        }
    }

    #[test]
    fn a_transform_grows_by_half_a_product_a_layer() {
        let multiplier = Multiplier::of(Instruction::Mulx);
        let layer = multiplier.transform(21) - multiplier.transform(20);
        assert!((layer - multiplier.dot(1) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_clock_is_that_of_a_processor() {
        let hertz = clock_hz();
        assert!((1e7..1e11).contains(&hertz), "{hertz}");
    }
}
