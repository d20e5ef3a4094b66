//! Transforms of one element after the other, on any [`Arithmetic`].

use std::marker::PhantomData;

use blstrs::Scalar;

use super::direction::Direction;
use super::pass;
use super::pointwise;
use super::twiddles::Twiddles;
use crate::arithmetic::Arithmetic;
use crate::context::Context;
use crate::error::KernelError;
use crate::matrix::reverse::reverse_bits_in_place;

/// Twiddles for the arithmetic `A`. The operations are documented at
/// [`Engine`](super::engine::Engine).
pub(crate) struct Serial<A> {
    twiddles: Twiddles,
    arithmetic: PhantomData<A>,
}

impl<A: Arithmetic> Serial<A> {
    pub(super) fn new(twiddles: Twiddles) -> Self {
        Self {
            twiddles,
            arithmetic: PhantomData,
        }
    }

    pub(super) fn scatter(
        &self,
        values: &mut [Scalar],
        direction: Direction,
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        pass::scatter::<A>(values, &self.twiddles, direction, context)
    }

    pub(super) fn multiply(
        &self,
        to: &mut [Scalar],
        by: &[Scalar],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        pointwise::multiply::<A>(to, by, context)
    }

    pub(super) fn multiply_to(
        &self,
        to: &mut [Scalar],
        factors: [&[Scalar]; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        pointwise::multiply_to::<A>(to, factors, context)
    }

    pub(super) fn move_to_coset(
        &self,
        values: &mut [Scalar],
        factors: [Scalar; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let twiddles = &self.twiddles;
        pass::scatter::<A>(values, twiddles, Direction::Inverse, context)?;
        let (low, high) = values.split_at_mut(values.len().div_ceil(2));
        for (values, factor) in [low, high].into_iter().zip(factors) {
            pointwise::shift::<A>(values, twiddles, factor, context)?;
        }
        pass::gather::<A>(values, twiddles, Direction::Forward, context)
    }

    pub(super) fn interpolate_difference(
        &self,
        [values, to]: [&mut [Scalar]; 2],
        (sums, sum_factor): (&[Scalar], Scalar),
        factors: [Scalar; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let twiddles = &self.twiddles;
        pass::scatter::<A>(values, twiddles, Direction::Inverse, context)?;
        let middle = values.len().div_ceil(2);
        let halves = values.chunks_mut(middle).zip(sums.chunks(middle));
        for ((values, sums), factor) in halves.zip(factors) {
            let sums = (sums, sum_factor);
            pointwise::unshift_from::<A>(sums, values, twiddles, factor, context)?;
        }
        pointwise::copy(values, to, context)?;
        reverse_bits_in_place(to, context.checkpoint)
    }
}
