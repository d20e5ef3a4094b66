//! Every point of a parameter file, and what can be said of them together.
//!
//! Mapping a file checks its lengths and its verifying key; proving checks that
//! the points it reads are on the curve. This is the rest, for whoever fetched
//! parameters and wants to know before a proof is due. Not a proof that the
//! parameters are this circuit's: that takes the toxic waste.
//!
//! The invariant: points that pass are in the right groups, and both queries over B are of
//! the same scalars. A point outside of its group is overlooked with a chance of 2^-66, and
//! other scalars with one of 2^-127.

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G1Projective, G2Projective, Scalar};
use cuzk_kernels::msm::{self, Bases, BasesError, subgroup};
use cuzk_kernels::{Isa, KernelError};
use group::{Curve, Group};
use pairing::Engine as _;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::error::ParamsError;
use super::file::ParamsFile;
use super::query::QueryName;

/// Terms of a random combination in memory at a time.
const CHUNK: usize = 1 << 18;

/// Checks every point of `params`, on rayon's current pool. `progress` is told
/// the name of each query before it is read.
///
/// # Errors
/// [`ParamsError::OutsideSubgroup`], [`ParamsError::Inconsistent`], and
/// [`ParamsError::Points`] for what is not on the curve or at infinity.
pub fn check_points(
    params: &ParamsFile,
    isa: Isa,
    mut progress: impl FnMut(QueryName),
) -> Result<(), ParamsError> {
    let mut rng = ChaCha8Rng::from_rng(rand::rngs::OsRng).map_err(|error| ParamsError::Io {
        path: params.path().to_owned(),
        source: error.into(),
    })?;
    check_key(params)?;
    for (name, query) in [
        (QueryName::H, params.h()),
        (QueryName::L, params.l()),
        (QueryName::A, params.a()),
        (QueryName::BG1, params.b_g1()),
    ] {
        progress(name);
        let all_in = subgroup::all_in_g1(isa, &Part::all(&query), rng.r#gen());
        in_subgroup(params, name, all_in)?;
    }
    progress(QueryName::BG2);
    let all_in = subgroup::all_in_g2(isa, &Part::all(&params.b_g2()), rng.r#gen());
    in_subgroup(params, QueryName::BG2, all_in)?;
    check_b(params, isa, rng)
}

fn in_subgroup(
    params: &ParamsFile,
    query: QueryName,
    all_in: Result<bool, KernelError>,
) -> Result<(), ParamsError> {
    match all_in.map_err(|source| unreadable(params, source))? {
        true => Ok(()),
        false => Err(ParamsError::OutsideSubgroup {
            path: params.path().to_owned(),
            query,
        }),
    }
}

fn unreadable(params: &ParamsFile, source: KernelError) -> ParamsError {
    ParamsError::Points {
        path: params.path().to_owned(),
        source,
    }
}

/// β and δ are the same in both groups, whatever the generators are:
/// e(β₁, δ₂) = e(δ₁, β₂).
fn check_key(params: &ParamsFile) -> Result<(), ParamsError> {
    let VerifyingKey {
        beta_g1,
        beta_g2,
        delta_g1,
        delta_g2,
        ..
    } = params.vk();
    if Bls12::pairing(beta_g1, delta_g2) == Bls12::pairing(delta_g1, beta_g2) {
        return Ok(());
    }
    Err(ParamsError::Inconsistent {
        path: params.path().to_owned(),
        problem: "beta and delta are not the same in both groups",
    })
}

/// A random combination of B in G1 and the same in G2 have the same logarithm:
/// e(Σ ρᵢ·B₁ᵢ, δ₂) = e(δ₁, Σ ρᵢ·B₂ᵢ).
fn check_b(params: &ParamsFile, isa: Isa, mut rng: ChaCha8Rng) -> Result<(), ParamsError> {
    let (b_g1, b_g2) = (params.b_g1(), params.b_g2());
    let (mut sum_g1, mut sum_g2) = (G1Projective::identity(), G2Projective::identity());
    for start in (0..Bases::<G1Affine>::len(&b_g1)).step_by(CHUNK) {
        let len = (b_g1.len() - start).min(CHUNK);
        let scalars: Vec<Scalar> = (0..len).map(|_| random_half(&mut rng)).collect();
        let (part_g1, part_g2) = (Part::new(&b_g1, start, len), Part::new(&b_g2, start, len));
        let failed = |source| unreadable(params, source);
        sum_g1 += msm::g1_with(isa, &part_g1, &scalars).map_err(failed)?;
        sum_g2 += msm::g2_with(isa, &part_g2, &scalars).map_err(failed)?;
    }
    let key = params.vk();
    let left = Bls12::pairing(&sum_g1.to_affine(), &key.delta_g2);
    let right = Bls12::pairing(&key.delta_g1, &sum_g2.to_affine());
    if left == right {
        return Ok(());
    }
    Err(ParamsError::Inconsistent {
        path: params.path().to_owned(),
        problem: "the queries over B in G1 and in G2 are of different scalars",
    })
}

/// A number of 128 bits.
fn random_half(rng: &mut ChaCha8Rng) -> Scalar {
    let words = [rng.next_u64(), rng.next_u64(), 0, 0];
    // 128 bits are below the modulus.
    Option::from(Scalar::from_u64s_le(&words)).unwrap_or_default()
}

/// Consecutive bases of others. Their encodings are not shown. A kernel that reads
/// encodings is content with a weak test of the curve's equation, which a forger could
/// pass. A proof from a wrong point does not verify, but nothing is verified after this
/// check.
struct Part<'a, B: ?Sized> {
    all: &'a B,
    start: usize,
    len: usize,
}

impl<'a, B: ?Sized> Part<'a, B> {
    fn new(all: &'a B, start: usize, len: usize) -> Self {
        Self { all, start, len }
    }

    fn all<P>(all: &'a B) -> Self
    where
        B: Bases<P>,
    {
        Self::new(all, 0, all.len())
    }
}

impl<P, B: Bases<P> + ?Sized> Bases<P> for Part<'_, B> {
    fn len(&self) -> usize {
        self.len
    }

    fn read(&self, start: usize, out: &mut [P]) -> Result<(), BasesError> {
        self.all.read(self.start + start, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_reads_its_own_bases() {
        let points = [1, 2, 3, 4, 5];
        let part = Part::new(&points[..], 2, 2);
        let mut out = [0; 2];
        assert_eq!(Bases::<i32>::len(&part), 2);
        part.read(0, &mut out).unwrap();
        assert_eq!(out, [3, 4]);
    }
}
