//! Many multiples of one point: `scalars[i] · base` for millions of scalars,
//! as parameter generation needs them.
//!
//! A table holds every signed digit's multiple of the base for every window,
//! so that a multiplication is one addition per window. The additions of many
//! scalars are batched and share their inversions. Results are affine.

use blstrs::{G1Affine, G2Affine, Scalar};
use group::{Curve, Group, prime::PrimeCurveAffine};
use rayon::prelude::*;

use crate::affine::{Addition, BATCH, Kernel, Serial};
use crate::arithmetic::{Blst, Portable};
#[cfg(target_arch = "x86_64")]
use crate::avx2;
use crate::digits::{Recoded, Windows};
use crate::error::{KernelError, expect_len};
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};

/// Widest window: the table has 2^(bits − 1) points a window, and a window's
/// part should fit a last-level cache.
const BITS_MAX: u32 = 16;

/// Multiples of one point of G1.
pub struct G1Table(G1Implementation);

enum G1Implementation {
    Portable(Table<Serial<G1Affine, Portable>>),
    Scalar(Table<Serial<G1Affine, Blst>>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Table<avx2::G1>),
    #[cfg(target_arch = "x86_64")]
    Ifma(Table<ifma::G1>),
}

impl G1Table {
    /// Prepares multiplications of `base`; about `expected_len` of them are
    /// expected, which decides the size of the table (at most 100 MB).
    pub fn new(base: G1Affine, expected_len: usize) -> G1Table {
        G1Table::with(Isa::best(), base, expected_len)
    }

    /// [`G1Table::new`] with chosen instructions.
    pub fn with(isa: Isa, base: G1Affine, expected_len: usize) -> G1Table {
        G1Table(match isa.implementation() {
            Implementation::Portable => {
                G1Implementation::Portable(Table::new(Serial::new(), base, expected_len))
            }
            Implementation::Scalar => {
                G1Implementation::Scalar(Table::new(Serial::new(), base, expected_len))
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(token) => {
                G1Implementation::Avx2(Table::new(avx2::G1::new(token), base, expected_len))
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(token) => {
                G1Implementation::Ifma(Table::new(ifma::G1::new(token), base, expected_len))
            }
        })
    }

    /// Additions that one multiplication takes, at most.
    pub fn additions(&self) -> usize {
        match &self.0 {
            G1Implementation::Portable(table) => table.additions(),
            G1Implementation::Scalar(table) => table.additions(),
            #[cfg(target_arch = "x86_64")]
            G1Implementation::Avx2(table) => table.additions(),
            #[cfg(target_arch = "x86_64")]
            G1Implementation::Ifma(table) => table.additions(),
        }
    }

    /// `out[i] = scalars[i] · base`.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] when the slices differ in length.
    pub fn mul_many(&self, scalars: &[Scalar], out: &mut [G1Affine]) -> Result<(), KernelError> {
        match &self.0 {
            G1Implementation::Portable(table) => table.mul_many(scalars, out),
            G1Implementation::Scalar(table) => table.mul_many(scalars, out),
            #[cfg(target_arch = "x86_64")]
            G1Implementation::Avx2(table) => table.mul_many(scalars, out),
            #[cfg(target_arch = "x86_64")]
            G1Implementation::Ifma(table) => table.mul_many(scalars, out),
        }
    }
}

/// Multiples of one point of G2.
pub struct G2Table(G2Implementation);

enum G2Implementation {
    Portable(Table<Serial<G2Affine, Portable>>),
    Scalar(Table<Serial<G2Affine, Blst>>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Table<avx2::G2>),
    #[cfg(target_arch = "x86_64")]
    Ifma(Table<ifma::G2>),
}

impl G2Table {
    /// Prepares multiplications of `base`; about `expected_len` of them are
    /// expected, which decides the size of the table (at most 135 MB).
    pub fn new(base: G2Affine, expected_len: usize) -> G2Table {
        G2Table::with(Isa::best(), base, expected_len)
    }

    /// [`G2Table::new`] with chosen instructions.
    pub fn with(isa: Isa, base: G2Affine, expected_len: usize) -> G2Table {
        G2Table(match isa.implementation() {
            Implementation::Portable => {
                G2Implementation::Portable(Table::new(Serial::new(), base, expected_len))
            }
            Implementation::Scalar => {
                G2Implementation::Scalar(Table::new(Serial::new(), base, expected_len))
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Avx2(token) => {
                G2Implementation::Avx2(Table::new(avx2::G2::new(token), base, expected_len))
            }
            #[cfg(target_arch = "x86_64")]
            Implementation::Ifma(token) => {
                G2Implementation::Ifma(Table::new(ifma::G2::new(token), base, expected_len))
            }
        })
    }

    /// Additions that one multiplication takes, at most.
    pub fn additions(&self) -> usize {
        match &self.0 {
            G2Implementation::Portable(table) => table.additions(),
            G2Implementation::Scalar(table) => table.additions(),
            #[cfg(target_arch = "x86_64")]
            G2Implementation::Avx2(table) => table.additions(),
            #[cfg(target_arch = "x86_64")]
            G2Implementation::Ifma(table) => table.additions(),
        }
    }

    /// `out[i] = scalars[i] · base`.
    ///
    /// # Errors
    /// [`KernelError::LengthMismatch`] when the slices differ in length.
    pub fn mul_many(&self, scalars: &[Scalar], out: &mut [G2Affine]) -> Result<(), KernelError> {
        match &self.0 {
            G2Implementation::Portable(table) => table.mul_many(scalars, out),
            G2Implementation::Scalar(table) => table.mul_many(scalars, out),
            #[cfg(target_arch = "x86_64")]
            G2Implementation::Avx2(table) => table.mul_many(scalars, out),
            #[cfg(target_arch = "x86_64")]
            G2Implementation::Ifma(table) => table.mul_many(scalars, out),
        }
    }
}

/// For every window w and digit d > 0, the point `d · 2^(cw) · base`.
struct Table<K: Kernel> {
    kernel: K,
    windows: Windows,
    multiples: Vec<Vec<K::Point>>,
}

impl<K: Kernel> Table<K>
where
    <K::Affine as PrimeCurveAffine>::Curve: Curve<AffineRepr = K::Affine>,
{
    fn new(kernel: K, base: K::Affine, expected_len: usize) -> Table<K> {
        let windows = choose_windows(expected_len);
        let multiples = shifted_bases(base, &windows)
            .par_iter()
            .map(|base| multiples(kernel, base, windows.digit_max()))
            .collect();
        Table {
            kernel,
            windows,
            multiples,
        }
    }

    /// One a window, but for the first, which is a copy.
    fn additions(&self) -> usize {
        self.windows.count() - 1
    }

    fn mul_many(&self, scalars: &[Scalar], out: &mut [K::Affine]) -> Result<(), KernelError> {
        expect_len("out", scalars.len(), out.len())?;
        scalars
            .par_chunks(BATCH)
            .zip(out.par_chunks_mut(BATCH))
            .for_each_init(
                || Accumulators::new(self.kernel),
                |accumulators, (scalars, out)| {
                    accumulators.multiply(self, scalars);
                    self.kernel.export(&accumulators.points[..out.len()], out);
                },
            );
        Ok(())
    }
}

/// The window width with the fewest additions, table included.
fn choose_windows(expected_len: usize) -> Windows {
    (2..=BITS_MAX)
        .map(Windows::new)
        .min_by_key(|windows| windows.count() * (expected_len + windows.digit_max()))
        .unwrap_or_else(|| Windows::new(BITS_MAX))
}

/// `2^(cw) · base` for every window w.
fn shifted_bases<A>(base: A, windows: &Windows) -> Vec<A>
where
    A: PrimeCurveAffine,
    A::Curve: Curve<AffineRepr = A>,
{
    let mut shifted = base.to_curve();
    (0..windows.count())
        .map(|_| {
            let affine = shifted.to_affine();
            shifted = (0..windows.bits()).fold(shifted, |point, _| point.double());
            affine
        })
        .collect()
}

/// `base, 2·base, …, len·base` for a power of two `len`: each batch adds the
/// last multiple known to all of them.
fn multiples<K: Kernel>(kernel: K, base: &K::Affine, len: usize) -> Vec<K::Point> {
    let mut points = vec![kernel.infinity(); len];
    kernel.import(&[*base], &mut points[..1]);
    let mut steps = kernel.steps();
    let mut known = 1;
    while known < len {
        let (low, high) = points[..2 * known].split_at_mut(known);
        high.copy_from_slice(low);
        let additions: Vec<_> = (0..known)
            .map(|i| Addition::new(i, known - 1, false))
            .collect();
        kernel.accumulate(high, low, &additions, &mut steps);
        known *= 2;
    }
    points
}

/// Sums in progress for up to [`BATCH`] scalars.
struct Accumulators<K: Kernel> {
    points: Vec<K::Point>,
    /// True for the accumulators to which a point was added.
    started: Vec<bool>,
    recoded: Vec<Recoded>,
    additions: Vec<Addition>,
    steps: Vec<K::Step>,
}

impl<K: Kernel> Accumulators<K> {
    fn new(kernel: K) -> Accumulators<K> {
        Accumulators {
            points: vec![kernel.infinity(); BATCH],
            started: vec![false; BATCH],
            recoded: Vec::with_capacity(BATCH),
            additions: Vec::with_capacity(BATCH),
            steps: kernel.steps(),
        }
    }

    /// Sets `points[i]` to `scalars[i]` times the table's base.
    fn multiply(&mut self, table: &Table<K>, scalars: &[Scalar]) {
        self.points.fill(table.kernel.infinity());
        self.started.fill(false);
        self.recoded.clear();
        self.recoded
            .extend(scalars.iter().map(|scalar| table.windows.recode(scalar)));
        for (window, multiples) in table.multiples.iter().enumerate() {
            self.schedule(table, window, multiples);
            table.kernel.accumulate(
                &mut self.points,
                multiples,
                &self.additions,
                &mut self.steps,
            );
        }
    }

    /// Lists one window's additions; a scalar's first is a copy.
    fn schedule(&mut self, table: &Table<K>, window: usize, multiples: &[K::Point]) {
        let window = table.windows.window(window);
        self.additions.clear();
        for (i, recoded) in self.recoded.iter().enumerate() {
            let (magnitude, negative) = window.digit(recoded);
            if magnitude == 0 {
            } else if self.started[i] {
                self.additions
                    .push(Addition::new(i, magnitude - 1, negative));
            } else {
                self.started[i] = true;
                self.points[i] = table.kernel.signed(&multiples[magnitude - 1], negative);
            }
        }
    }
}
