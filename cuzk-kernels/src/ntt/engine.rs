//! The choice between implementations, with the twiddles in the form that each wants.

use blstrs::Scalar;
use ff::Field;

use super::direction::Direction;
use super::pass;
use super::serial::Serial;
use super::twiddles::Twiddles;
use crate::arithmetic::{Blst, Portable};
#[cfg(target_arch = "x86_64")]
use crate::avx2;
use crate::context::Context;
use crate::error::KernelError;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};

/// An implementation, ready for one domain.
pub(crate) enum Engine {
    /// Plain Rust.
    Portable(Serial<Portable>),
    /// Scalar instructions.
    Scalar(Serial<Blst>),
    /// AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(Lanes<avx2::Avx2>),
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    Ifma(Lanes<ifma::Ifma>),
}

impl Engine {
    /// The engine for the domain of `root`, of order 2^`log_size`. Domains too
    /// small for vectors are computed without.
    ///
    /// # Errors
    /// [`KernelError::Memory`].
    pub(super) fn new(isa: Isa, root: Scalar, log_size: u32) -> Result<Engine, KernelError> {
        Ok(match isa.implementation() {
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(token) if log_size >= ifma::ntt::LOG_SIZE_MIN => {
                Engine::Ifma(Lanes::new(token, (root, log_size), Scalar::from(16))?)
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(token) if log_size >= avx2::ntt::LOG_SIZE_MIN => {
                Engine::Avx2(Lanes::new(token, (root, log_size), Scalar::ONE)?)
            }
            Implementation::Portable => {
                Engine::Portable(Serial::new(Twiddles::new(root, log_size, Scalar::ONE)?))
            }
            _ => Engine::Scalar(Serial::new(Twiddles::new(root, log_size, Scalar::ONE)?)),
        })
    }

    /// Bytes that a thread has rows in, over so many values.
    pub(super) fn rows_bytes(isa: Isa, len: usize) -> usize {
        match isa.implementation() {
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(_) if len.ilog2() >= ifma::ntt::LOG_SIZE_MIN => {
                ifma::ntt::rows_bytes(len)
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(_) if len.ilog2() >= avx2::ntt::LOG_SIZE_MIN => {
                avx2::ntt::rows_bytes(len)
            }
            _ => pass::copied(len) * size_of::<Scalar>(),
        }
    }

    /// Natural order in, bit-reversed order out.
    pub(super) fn scatter(
        &self,
        values: &mut [Scalar],
        direction: Direction,
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(engine) => engine.scatter(values, direction, context),
            Engine::Scalar(engine) => engine.scatter(values, direction, context),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(engine) => {
                let inverse = direction == Direction::Inverse;
                avx2::ntt::scatter(values, inverse, engine.work(context))
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let inverse = direction == Direction::Inverse;
                ifma::ntt::scatter(ifma::words_mut(values), inverse, engine.work(context))
            }
        }
    }

    /// `to[i] *= by[i]`.
    pub(crate) fn multiply(
        &self,
        to: &mut [Scalar],
        by: &[Scalar],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(engine) => engine.multiply(to, by, context),
            Engine::Scalar(engine) => engine.multiply(to, by, context),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(engine) => avx2::coset::multiply(to, by, engine.work(context)),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let (to, by) = (ifma::words_mut(to), ifma::words(by));
                ifma::coset::multiply(to, by, engine.work(context))
            }
        }
    }

    /// `to[i] = a[i] · b[i]`.
    pub(crate) fn multiply_to(
        &self,
        to: &mut [Scalar],
        factors: [&[Scalar]; 2],
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(engine) => engine.multiply_to(to, factors, context),
            Engine::Scalar(engine) => engine.multiply_to(to, factors, context),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(engine) => avx2::coset::multiply_to(to, factors, engine.work(context)),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let (to, factors) = (ifma::words_mut(to), factors.map(ifma::words));
                ifma::coset::multiply_to(to, factors, engine.work(context))
            }
        }
    }

    /// From a polynomial's values on the domain to those on its coset of `generator`,
    /// whose square is the domain's root, times the domain's size.
    ///
    /// Let rev reverse the bits of an index into the whole domain. For i in the lower half
    /// of the indices, generator^rev(i) is entry i of the table of twiddles. An index of
    /// the upper half has one more factor. So coefficients in bit-reversed order are
    /// shifted without a table of their own.
    pub(crate) fn move_to_coset(
        &self,
        values: &mut [Scalar],
        generator: Scalar,
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let factors = [Scalar::ONE, generator];
        match self {
            Engine::Portable(engine) => engine.move_to_coset(values, factors, context),
            Engine::Scalar(engine) => engine.move_to_coset(values, factors, context),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(engine) => {
                let work = engine.work(context);
                avx2::coset::move_to_coset(values, factors.each_ref(), work)
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let factors = factors.map(|factor| factor * engine.scale);
                let factors = factors.each_ref().map(ifma::word);
                let work = engine.work(context);
                ifma::coset::move_to_coset(ifma::words_mut(values), factors, work)
            }
        }
    }

    /// From a polynomial's values on the coset of `generator` to its coefficients c:
    /// `to[i]` becomes `sums[i'] · sum_factor − c[i] · size · factor`, i' being i with its bits
    /// reversed. `vectors` are the values, which are overwritten, and `to`.
    pub(crate) fn interpolate_difference(
        &self,
        vectors: [&mut [Scalar]; 2],
        (sums, sum_factor): (&[Scalar], Scalar),
        (factor, generator): (Scalar, Scalar),
        context: Context<'_>,
    ) -> Result<(), KernelError> {
        let generator_inverse = generator.invert().unwrap_or(Scalar::ZERO);
        let factors = [factor, factor * generator_inverse];
        match self {
            Engine::Portable(engine) => {
                engine.interpolate_difference(vectors, (sums, sum_factor), factors, context)
            }
            Engine::Scalar(engine) => {
                engine.interpolate_difference(vectors, (sums, sum_factor), factors, context)
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2(engine) => {
                let (sums, factors) = ((sums, &sum_factor), factors.each_ref());
                let work = engine.work(context);
                avx2::coset::interpolate_difference(vectors, sums, factors, work)
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let sum_factor = sum_factor * engine.scale;
                let sums = (ifma::words(sums), ifma::word(&sum_factor));
                let factors = factors.map(|factor| factor * engine.scale);
                let factors = factors.each_ref().map(ifma::word);
                let vectors = vectors.map(ifma::words_mut);
                let work = engine.work(context);
                ifma::coset::interpolate_difference(vectors, sums, factors, work)
            }
        }
    }
}

/// Twiddles for lanes, which are `scale` times their value.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Lanes<T> {
    token: T,
    scale: Scalar,
    minus_one: Scalar,
    twiddles: Twiddles,
}

#[cfg(target_arch = "x86_64")]
impl<T> Lanes<T> {
    fn new(token: T, (root, log_size): (Scalar, u32), scale: Scalar) -> Result<Self, KernelError> {
        Ok(Self {
            token,
            scale,
            minus_one: -scale,
            twiddles: Twiddles::new(root, log_size, scale)?,
        })
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes<avx2::Avx2> {
    fn work<'a>(&'a self, context: Context<'a>) -> avx2::ntt::Work<'a> {
        let entries = self.twiddles.entries();
        avx2::ntt::Work {
            table: avx2::ntt::Table::new(self.token, entries, &self.minus_one),
            context,
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes<ifma::Ifma> {
    fn work<'a>(&'a self, context: Context<'a>) -> ifma::ntt::Work<'a> {
        let entries = ifma::words(self.twiddles.entries());
        ifma::ntt::Work {
            table: ifma::twiddles::Table::new(self.token, entries, ifma::word(&self.minus_one)),
            context,
        }
    }
}
