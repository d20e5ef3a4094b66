//! Who computes: the twiddles in the form that an implementation wants, and
//! the choice between implementations.

use blstrs::Scalar;
use ff::Field;

use super::pass::{self, Direction};
use super::pointwise;
use super::twiddles::Twiddles;
use crate::checkpoint::Checkpoint;
use crate::error::KernelError;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};

/// An implementation, ready for one domain.
pub(crate) enum Engine {
    /// Scalar instructions.
    Portable(Twiddles),
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    Ifma(Ifma),
}

impl Engine {
    /// The engine for the domain of `root`, of order 2^`log_size`. Domains too
    /// small for vectors are computed without.
    pub(super) fn new(isa: Isa, root: Scalar, log_size: u32) -> Engine {
        match isa.implementation() {
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(token) if log_size >= ifma::ntt::LOG_SIZE_MIN => {
                Engine::Ifma(Ifma::new(token, root, log_size))
            }
            _ => Engine::Portable(Twiddles::new(root, log_size, Scalar::ONE)),
        }
    }

    /// Natural order in, bit-reversed order out.
    pub(super) fn scatter(
        &self,
        values: &mut [Scalar],
        direction: Direction,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(twiddles) => pass::scatter(values, twiddles, direction, checkpoint),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let inverse = direction == Direction::Inverse;
                ifma::ntt::scatter(ifma::words_mut(values), engine.table(), inverse, checkpoint)
            }
        }
    }

    /// Bit-reversed order in, natural order out.
    pub(super) fn gather(
        &self,
        values: &mut [Scalar],
        direction: Direction,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(twiddles) => pass::gather(values, twiddles, direction, checkpoint),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let inverse = direction == Direction::Inverse;
                ifma::ntt::gather(ifma::words_mut(values), engine.table(), inverse, checkpoint)
            }
        }
    }

    /// `a[i] *= b[i]`.
    pub(crate) fn multiply(
        &self,
        a: &mut [Scalar],
        b: &[Scalar],
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(_) => pointwise::multiply(a, b, checkpoint),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let (a, b) = (ifma::words_mut(a), ifma::words(b));
                ifma::coset::multiply(engine.token, a, b, checkpoint)
            }
        }
    }

    /// `values[i] *= factor · T[i]`, T being the table of twiddles.
    pub(crate) fn shift(
        &self,
        values: &mut [Scalar],
        factor: Scalar,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(twiddles) => pointwise::shift(values, twiddles, factor, checkpoint),
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let factor = factor * engine.scale;
                let values = ifma::words_mut(values);
                ifma::coset::shift(engine.table(), values, ifma::word(&factor), checkpoint)
            }
        }
    }

    /// `values[i] = sums[i] · sum_scale − values[i] · scale / T[i]`.
    pub(crate) fn unshift_from(
        &self,
        (sums, sum_scale): (&[Scalar], Scalar),
        values: &mut [Scalar],
        scale: Scalar,
        checkpoint: &dyn Checkpoint,
    ) -> Result<(), KernelError> {
        match self {
            Engine::Portable(twiddles) => {
                pointwise::unshift_from((sums, sum_scale), values, twiddles, scale, checkpoint)
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Ifma(engine) => {
                let (sum_scale, scale) = (sum_scale * engine.scale, scale * engine.scale);
                ifma::coset::unshift_from(
                    (ifma::words(sums), ifma::word(&sum_scale)),
                    engine.table(),
                    ifma::words_mut(values),
                    ifma::word(&scale),
                    checkpoint,
                )
            }
        }
    }
}

/// Twiddles for AVX-512, whose factors are sixteen times their value.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Ifma {
    token: ifma::Ifma,
    scale: Scalar,
    minus_one: Scalar,
    twiddles: Twiddles,
}

#[cfg(target_arch = "x86_64")]
impl Ifma {
    fn new(token: ifma::Ifma, root: Scalar, log_size: u32) -> Ifma {
        let scale = Scalar::from(16);
        Ifma {
            token,
            scale,
            minus_one: -scale,
            twiddles: Twiddles::new(root, log_size, scale),
        }
    }

    fn table(&self) -> ifma::ntt::Table<'_> {
        let entries = ifma::words(self.twiddles.entries());
        ifma::ntt::Table::new(self.token, entries, ifma::word(&self.minus_one))
    }
}
