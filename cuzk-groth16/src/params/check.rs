//! Every point of a parameter file, and what can be said of them together.
//!
//! Mapping a file checks its lengths and its verifying key; proving checks that
//! the points it reads are on the curve. This is the rest that needs no circuit, for
//! operators who fetched parameters and want to know before a proof is due. The check
//! against the circuit is [`relation`](super::relation).
//!
//! The invariant: points that pass are in the right groups, and both queries over B are of
//! the same scalars. A point outside of its group is overlooked with a chance of 2^-66, and
//! other scalars with one of 2^-127.

use bellperson::groth16::VerifyingKey;
use blstrs::{Bls12, G1Affine, G1Projective, G2Projective, Scalar};
use cuzk_kernels::msm::{self, Bases, subgroup};
use cuzk_kernels::{Isa, KernelError};
use group::{Curve, Group};
use pairing::Engine as _;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::error::ParamsError;
use super::file::ParamsFile;
use super::part::{CHUNK, Part};
use super::query::QueryName;

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
    // So the work is compiled here, and not for each closure in the caller's crate.
    check_telling(params, isa, &mut progress)
}

fn check_telling(
    params: &ParamsFile,
    isa: Isa,
    progress: &mut dyn FnMut(QueryName),
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
    match all_in.map_err(|source| ParamsError::points(params.path(), source))? {
        true => Ok(()),
        false => Err(ParamsError::OutsideSubgroup {
            path: params.path().to_owned(),
            query,
        }),
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
        let failed = |source| ParamsError::points(params.path(), source);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use cuzk_testing::circuits::Mimc;

    use super::super::{MappedParams, ToxicWaste, generate};
    use super::*;

    const G1_BYTES: usize = 96;
    const G2_BYTES: usize = 192;

    /// Checks a file of these bytes.
    fn check(bytes: &[u8]) -> Result<(), ParamsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params");
        fs::write(&path, bytes).unwrap();
        check_points(&ParamsFile::open(&path)?, Isa::best(), |_| ())
    }

    /// B has two chunks and a half here. In each of them, two points change places.
    #[test]
    fn each_chunk_of_b_is_compared() {
        let program = cuzk_pce::compile(Mimc::blank(5 * CHUNK / 2)).unwrap();
        let mut bytes = Vec::new();
        let waste = ToxicWaste::from_seed(7);
        generate(&program, &waste, Isa::best(), &mut bytes, |_, _| ()).unwrap();
        check(&bytes).unwrap();

        // B in G2 ends the file. Before it stand its number of points, of 4 bytes, and B in G1.
        let points = MappedParams::of_bytes(bytes.clone()).unwrap().b_g2().len();
        let after_g1 = bytes.len() - points * G2_BYTES - 4;
        assert!(points > 2 * CHUNK, "{points} points");
        for first in (0..points).step_by(CHUNK) {
            let last = points.min(first + CHUNK) - 1;
            let [one, other] = [first, last].map(|index| after_g1 - (points - index) * G1_BYTES);
            let mut damaged = bytes.clone();
            damaged[one..one + G1_BYTES].copy_from_slice(&bytes[other..other + G1_BYTES]);
            damaged[other..other + G1_BYTES].copy_from_slice(&bytes[one..one + G1_BYTES]);
            let error = check(&damaged).unwrap_err();
            assert!(matches!(error, ParamsError::Inconsistent { .. }), "{error}");
        }
    }
}
