//! Transforms with AVX2, and pointwise work of one element after the other.

use blstrs::Scalar;

use super::direction::Direction;
use super::pointwise;
use super::twiddles::Twiddles;
use crate::arithmetic::Blst;
use crate::avx2::Avx2;
use crate::avx2::ntt::{Table, gather, scatter};
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::reverse::reverse_bits_in_place;

/// Twiddles for AVX2. The operations are documented at [`Engine`](super::engine::Engine).
pub(crate) struct Lanes {
    token: Avx2,
    twiddles: Twiddles,
    minus_one: Scalar,
}

impl Lanes {
    pub(super) fn new(token: Avx2, twiddles: Twiddles) -> Self {
        Self {
            token,
            twiddles,
            minus_one: -Scalar::from(1),
        }
    }

    fn table(&self) -> Table<'_> {
        Table::new(self.token, self.twiddles.entries(), &self.minus_one)
    }

    pub(super) fn scatter(
        &self,
        values: &mut [Scalar],
        direction: Direction,
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let is_inverse = direction == Direction::Inverse;
        scatter(values, is_inverse, self.table(), context)
    }

    pub(super) fn multiply(
        &self,
        to: &mut [Scalar],
        by: &[Scalar],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        pointwise::multiply::<Blst>(to, by, context)
    }

    pub(super) fn multiply_to(
        &self,
        to: &mut [Scalar],
        factors: [&[Scalar]; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        pointwise::multiply_to::<Blst>(to, factors, context)
    }

    pub(super) fn move_to_coset(
        &self,
        values: &mut [Scalar],
        factors: [Scalar; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        self.scatter(values, Direction::Inverse, context)?;
        let (low, high) = values.split_at_mut(values.len().div_ceil(2));
        for (values, factor) in [low, high].into_iter().zip(factors) {
            pointwise::shift::<Blst>(values, &self.twiddles, factor, context)?;
        }
        gather(values, self.table(), context)
    }

    pub(super) fn interpolate_difference(
        &self,
        [values, to]: [&mut [Scalar]; 2],
        (sums, sum_factor): (&[Scalar], Scalar),
        factors: [Scalar; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        self.scatter(values, Direction::Inverse, context)?;
        let middle = values.len().div_ceil(2);
        let halves = values.chunks_mut(middle).zip(sums.chunks(middle));
        for ((values, sums), factor) in halves.zip(factors) {
            let sums = (sums, sum_factor);
            pointwise::unshift_from::<Blst>(sums, values, &self.twiddles, factor, context)?;
        }
        pointwise::copy(values, to, context)?;
        reverse_bits_in_place(to, context.checkpoint)
    }
}
