//! The check that points are in the subgroup of prime order, many at a time.
//!
//! One point is checked with a multiplication by a 64-bit number. Many points are checked
//! in rounds. A round adds every point to a bucket that is chosen at random, and checks the
//! buckets' sums: one addition a point. Take a point outside the subgroup, and fix the
//! buckets of the others. At most one choice of its bucket leaves all sums inside. So a
//! round overlooks it with a chance of at most 1 / buckets, however the points were chosen,
//! if they were chosen before the seed. Rounds are independent: their buckets are bits of
//! ChaCha8's streams.

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

use super::buckets::Buckets;
use super::import::import_selected;
use super::pieces::{CHUNK, TASK};
use super::term::check_terms;
use super::workspace::Area;
use crate::affine::{Addition, Coordinates, Kernel, Serial};
use crate::arithmetic::{Blst, Portable};
#[cfg(target_arch = "x86_64")]
use crate::avx2;
use crate::bases::{Bases, BasesError};
use crate::error::KernelError;
#[cfg(target_arch = "x86_64")]
use crate::ifma;
use crate::isa::{Implementation, Isa};
use cuzk_memory::{Lent, Mapped};

/// Buckets of a round.
const BUCKETS: usize = 1 << 11;

/// A set with a point outside is accepted with a chance of at most 2^-66, which is
/// `BUCKETS^-ROUNDS`. That holds if ChaCha8's output cannot be told from random bits.
const ROUNDS: usize = 6;

/// Returns true if all points are in G1. They must be on the curve and not infinite, as
/// [`Bases`] promises. `seed` is drawn at random after the points were
/// fixed.
///
/// # Errors
/// When a base cannot be read, or there are more than 2^31.
pub fn all_in_g1<B>(isa: Isa, bases: &B, seed: [u8; 32]) -> Result<bool, KernelError>
where
    B: Bases<G1Affine> + ?Sized,
{
    // So the kernels are compiled here, and not for each kind of bases in each crate.
    inside_g1(isa, &bases, seed)
}

fn inside_g1(isa: Isa, bases: &dyn Bases<G1Affine>, seed: [u8; 32]) -> Result<bool, KernelError> {
    match isa.implementation() {
        Implementation::Portable => all_inside(Serial::<G1Affine, Portable>::new(), bases, seed),
        Implementation::Scalar => all_inside(Serial::<G1Affine, Blst>::new(), bases, seed),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(token) => all_inside(avx2::G1::new(token), bases, seed),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => all_inside(ifma::G1::new(token), bases, seed),
    }
}

/// Returns true if all points are in G2; otherwise as [`all_in_g1`].
///
/// # Errors
/// As [`all_in_g1`].
pub fn all_in_g2<B>(isa: Isa, bases: &B, seed: [u8; 32]) -> Result<bool, KernelError>
where
    B: Bases<G2Affine> + ?Sized,
{
    inside_g2(isa, &bases, seed)
}

fn inside_g2(isa: Isa, bases: &dyn Bases<G2Affine>, seed: [u8; 32]) -> Result<bool, KernelError> {
    match isa.implementation() {
        Implementation::Portable => all_inside(Serial::<G2Affine, Portable>::new(), bases, seed),
        Implementation::Scalar => all_inside(Serial::<G2Affine, Blst>::new(), bases, seed),
        #[cfg(target_arch = "x86_64")]
        Implementation::Avx2(token) => all_inside(avx2::G2::new(token), bases, seed),
        #[cfg(target_arch = "x86_64")]
        Implementation::Ifma(token) => all_inside(ifma::G2::new(token), bases, seed),
    }
}

fn all_inside<K: Kernel<Affine: Coordinates>>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    seed: [u8; 32],
) -> Result<bool, KernelError> {
    check_terms(bases.len(), bases.len())?;
    let mut memory = Lent::take(&Mapped, ROUNDS * BUCKETS)?;
    let mut rounds: Vec<_> = memory
        .chunks_mut(BUCKETS)
        .map(|points| Buckets::new(kernel, points))
        .collect();
    let mut area = Area::take(&Mapped, ROUNDS.min(rayon::current_num_threads()))?;
    let workspaces = area.workspaces();
    let mut points = vec![kernel.infinity(); bases.len().min(CHUNK)];
    for start in (0..bases.len()).step_by(CHUNK) {
        let points = &mut points[..(bases.len() - start).min(CHUNK)];
        read_all(kernel, bases, start, points)?;
        rounds
            .par_iter_mut()
            .with_max_len(1)
            .enumerate()
            .try_for_each(|(round, buckets)| {
                workspaces.with(|workspace| {
                    let mut filling = buckets.filling(workspace, points);
                    let mut random = random_buckets(seed, round, start);
                    for source in 0..points.len() {
                        filling.add(Addition::new(random(), source, false));
                    }
                    filling.finish();
                    Ok(())
                })
            })?;
    }
    let inside = |point: &K::Affine| bool::from(point.is_identity()) || point.is_in_subgroup();
    Ok(rounds
        .into_par_iter()
        .flat_map(|mut buckets| buckets.sums())
        .all(|sum| inside(&sum)))
}

/// Reads consecutive bases, in parallel.
#[expect(clippy::cast_possible_truncation, reason = "at most 2^31 bases")]
fn read_all<K: Kernel>(
    kernel: K,
    bases: &dyn Bases<K::Affine>,
    start: usize,
    points: &mut [K::Point],
) -> Result<(), BasesError> {
    points
        .par_chunks_mut(TASK)
        .enumerate()
        .try_for_each(|(task, points)| {
            let first = (start + task * TASK) as u32;
            let indices: Vec<u32> = (first..).take(points.len()).collect();
            import_selected(kernel, bases, &indices, points)
        })
}

/// Draws the buckets of a round, from that of the point with index `start`. A round has a
/// stream, and a point a word of it.
fn random_buckets(seed: [u8; 32], round: usize, start: usize) -> impl FnMut() -> usize {
    let mut rng = ChaCha8Rng::from_seed(seed);
    rng.set_stream(round as u64);
    rng.set_word_pos(start as u128);
    move || rng.next_u32() as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::{Fp, Fp2, Scalar};
    use ff::Field;
    use group::UncompressedEncoding;

    /// A point of the curve outside of the subgroup.
    fn outside<A: Coordinates + UncompressedEncoding>(square_root: fn(A::Base) -> Option<A>) -> A {
        let candidates = (1..).map(|x| (0..x).fold(A::Base::ZERO, |sum, _| sum + A::Base::ONE));
        let mut points = candidates.filter_map(square_root);
        points.find(|point| !point.is_in_subgroup()).unwrap()
    }

    fn g1_with_x(x: Fp) -> Option<G1Affine> {
        let b = (0..4).fold(Fp::ZERO, |sum, _| sum + Fp::ONE);
        let y: Option<Fp> = (x.square() * x + b).sqrt().into();
        Some(G1Affine::from_xy(x, y?))
    }

    fn g2_with_x(x: Fp2) -> Option<G2Affine> {
        let four = (0..4).fold(Fp::ZERO, |sum, _| sum + Fp::ONE);
        let y: Option<Fp2> = (x.square() * x + Fp2::new(four, four)).sqrt().into();
        Some(G2Affine::from_xy(x, y?))
    }

    /// All inside is accepted; one outside is noticed wherever it is, and so
    /// are two that cancel.
    fn check<A>(outside: A, all_inside: impl Fn(&[A], [u8; 32]) -> bool)
    where
        A: Coordinates + From<A::Curve>,
    {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let inside: Vec<A> = (0..300)
            .map(|_| (A::generator() * Scalar::random(&mut rng)).into())
            .collect();
        for seed in (0..3).map(|seed| [seed; 32]) {
            assert!(all_inside(&inside, seed));
            for at in [0, 77, 299] {
                let mut bad = inside.clone();
                bad[at] = outside;
                assert!(!all_inside(&bad, seed));
                bad[(at + 5) % 300] = -outside;
                assert!(!all_inside(&bad, seed));
            }
        }
        assert!(all_inside(&[], [0; 32]));
    }

    #[test]
    fn points_outside_of_g1_are_noticed() {
        for isa in Isa::all() {
            check(outside(g1_with_x), |points, seed| {
                all_in_g1(isa, points, seed).unwrap()
            });
        }
    }

    #[test]
    fn points_outside_of_g2_are_noticed() {
        for isa in Isa::all() {
            check(outside(g2_with_x), |points, seed| {
                all_in_g2(isa, points, seed).unwrap()
            });
        }
    }
}
