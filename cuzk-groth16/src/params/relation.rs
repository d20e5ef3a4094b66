//! The points of a parameter file against the circuit, by a random assignment.
//!
//! The points of a proof are combinations of the queries, and the pairing equation of
//! Groth16 relates them. For a proof, the multipliers are a witness that satisfies the
//! circuit, most of whose values are 0. Here they are random ([`Assignment`]), so every
//! point has a multiplier. With the names of [`ParamsFile`], and g₂ for the generator of G2:
//!
//! ```text
//! e(Σ wⱼ·Aⱼ, Σ wⱼ·Bⱼ) = e(Σ qᵢ·Hᵢ + Σ zⱼ·Lⱼ, δ₂) · e(Σ zⱼ·ICⱼ, γ₂)
//!                       · e(Σ xⱼ·Aⱼ + Σ yⱼ·Bⱼ, g₂) · e(Σ zⱼ·Aⱼ, β₂)⁻¹ · e(α₁, Σ zⱼ·Bⱼ)⁻¹
//! ```
//!
//! The promise: take a file whose points are in their groups. If there is one satisfying
//! witness whose proof would not verify, then the equation does not hold, but with a chance
//! of 2^-253. The difference of both sides is a polynomial of degree two in the values that
//! were drawn. The proof of that witness is one of the cases that can be drawn, so the
//! polynomial is not zero (Schwartz and Zippel).
//!
//! Not checked here: that a point is in its group, which is [`check`](super::check)'s; and
//! who knows the toxic waste, which no check can tell. The generators must be the standard
//! ones, as those of the network's parameters are.

use std::iter;

use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_kernels::msm::{self, Bases};
use cuzk_kernels::{Isa, KernelError};
use cuzk_pce::{Densities, Program};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use pairing::Engine as _;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::assignment::{Assignment, NoAssignment, domain_len};
use super::error::ParamsError;
use super::file::ParamsFile;
use super::part::{CHUNK, Part};
use super::query::QueryName;
use crate::query_lengths::QueryLengths;

/// The result of [`check_relation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The points are those of the circuit.
    Holds,
    /// Nothing: so many rows of the circuit have no unknown of their own, and no assignment
    /// was found.
    Unsolved {
        /// Rows of that kind.
        rows: usize,
    },
}

/// Returns the memory, bytes, that [`check_relation`] has for values of a circuit. Not counted:
/// the circuit itself, the mapped parameters, and what an MSM over 2^18 points works in.
#[must_use]
pub fn relation_bytes(program: &Program<Scalar>) -> u64 {
    Assignment::bytes(program.num_variables(), domain_len(program))
}

/// Checks the points of `params` against the circuit `program`, on rayon's current pool.
/// [`check_points`](super::check_points) comes before it. It takes about as long as three
/// proofs, and the memory that [`relation_bytes`] says. `progress` is told what begins.
///
/// # Errors
/// * [`ParamsError::Inconsistent`] for points that are not the circuit's
/// * [`ParamsError::OtherCircuit`] for queries of other lengths
/// * [`ParamsError::Points`] for points that are not on the curve or at infinity
pub fn check_relation(
    params: &ParamsFile,
    circuit: (&Program<Scalar>, &Densities),
    isa: Isa,
    mut progress: impl FnMut(&str),
) -> Result<Relation, ParamsError> {
    // So the work is compiled here, and not for each closure in the caller's crate.
    check_telling(params, circuit, isa, &mut progress)
}

fn check_telling(
    params: &ParamsFile,
    (program, densities): (&Program<Scalar>, &Densities),
    isa: Isa,
    progress: &mut dyn FnMut(&str),
) -> Result<Relation, ParamsError> {
    params.check_circuit(&QueryLengths::of(program, densities))?;
    check_generators(params)?;
    let mut rng = ChaCha8Rng::from_rng(rand::rngs::OsRng).map_err(|error| ParamsError::Io {
        path: params.path().to_owned(),
        source: error.into(),
    })?;
    let drawn = Assignment::draw(program, isa, &mut rng, |pass| {
        progress(&format!("a random assignment, pass {}", pass + 1));
    });
    let assignment = match drawn {
        Ok(assignment) => assignment,
        Err(NoAssignment::Unsolved { rows }) => return Ok(Relation::Unsolved { rows }),
        Err(NoAssignment::Kernel(source)) => {
            return Err(ParamsError::points(params.path(), source));
        }
    };
    let sums = Sums::of(params, (program, densities), &assignment, isa, progress)
        .map_err(|source| ParamsError::points(params.path(), source))?;
    if sums.equation_holds(params) {
        return Ok(Relation::Holds);
    }
    Err(ParamsError::Inconsistent {
        path: params.path().to_owned(),
        problem: "the points of its queries are not those of the circuit: the pairing equation \
                  of a random assignment does not hold",
    })
}

/// δ is the same in both groups, for the standard generators.
fn check_generators(params: &ParamsFile) -> Result<(), ParamsError> {
    let key = params.vk();
    let left = Bls12::pairing(&key.delta_g1, &G2Affine::generator());
    if left == Bls12::pairing(&G1Affine::generator(), &key.delta_g2) {
        return Ok(());
    }
    Err(ParamsError::Inconsistent {
        path: params.path().to_owned(),
        problem: "its key is not of the standard generators, or delta is not the same in both \
                  groups",
    })
}

/// The combinations of the queries, named by their multipliers.
struct Sums {
    wa: G1Projective,
    xa: G1Projective,
    za: G1Projective,
    yb: G1Projective,
    qh: G1Projective,
    zl: G1Projective,
    zic: G1Projective,
    wb: G2Projective,
    zb: G2Projective,
}

impl Sums {
    fn of(
        params: &ParamsFile,
        (program, densities): (&Program<Scalar>, &Densities),
        assignment: &Assignment,
        isa: Isa,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        let inputs = program.num_inputs();
        let Assignment {
            witness,
            multipliers: [x, y, z],
            quotient,
        } = assignment;
        let in_a = || {
            let aux = densities.a_aux.iter().map(|aux| inputs + aux);
            (0..inputs).chain(aux)
        };
        let in_b = || {
            let aux = densities.b_aux.iter().map(|aux| inputs + aux);
            densities.b_input.iter().chain(aux)
        };
        let mut now = |query: QueryName| progress(&format!("{query} against the circuit"));
        now(QueryName::H);
        let [qh] = combine(isa, &params.h(), 0.., [quotient])?;
        now(QueryName::L);
        let [zl] = combine(isa, &params.l(), inputs.., [z])?;
        now(QueryName::A);
        let [wa, xa, za] = combine(isa, &params.a(), in_a(), [witness, x, z])?;
        now(QueryName::BG1);
        let [yb] = combine(isa, &params.b_g1(), in_b(), [y])?;
        now(QueryName::BG2);
        let [wb, zb] = combine(isa, &params.b_g2(), in_b(), [witness, z])?;
        let [zic] = combine(isa, &params.vk().ic[..], 0.., [z])?;
        Ok(Self {
            wa,
            xa,
            za,
            yb,
            qh,
            zl,
            zic,
            wb,
            zb,
        })
    }

    fn equation_holds(&self, params: &ParamsFile) -> bool {
        let key = params.vk();
        let pairing =
            |left: &G1Projective, right: &G2Affine| Bls12::pairing(&left.to_affine(), right);
        let products = pairing(&self.wa, &self.wb.to_affine());
        let others = pairing(&(self.qh + self.zl), &key.delta_g2)
            + pairing(&self.zic, &key.gamma_g2)
            + pairing(&(self.xa + self.yb), &G2Affine::generator())
            - pairing(&self.za, &key.beta_g2)
            - Bls12::pairing(&key.alpha_g1, &self.zb.to_affine());
        products == others
    }
}

/// A group with an MSM.
trait Summed: Group {
    type Affine;

    fn msm<B>(isa: Isa, bases: &B, scalars: &[Scalar]) -> Result<Self, KernelError>
    where
        B: Bases<Self::Affine> + ?Sized;
}

impl Summed for G1Projective {
    type Affine = G1Affine;

    fn msm<B>(isa: Isa, bases: &B, scalars: &[Scalar]) -> Result<Self, KernelError>
    where
        B: Bases<G1Affine> + ?Sized,
    {
        msm::g1_with(isa, bases, scalars)
    }
}

impl Summed for G2Projective {
    type Affine = G2Affine;

    fn msm<B>(isa: Isa, bases: &B, scalars: &[Scalar]) -> Result<Self, KernelError>
    where
        B: Bases<G2Affine> + ?Sized,
    {
        msm::g2_with(isa, bases, scalars)
    }
}

/// Returns Σ values[variableᵢ]·basesᵢ for each vector of values, chunk by chunk. There are
/// as many variables as bases, or more.
fn combine<P, B, const N: usize>(
    isa: Isa,
    bases: &B,
    variables: impl IntoIterator<Item = usize>,
    values: [&Vec<Scalar>; N],
) -> Result<[P; N], KernelError>
where
    P: Summed,
    B: Bases<P::Affine> + ?Sized,
{
    let mut variables = variables.into_iter();
    let mut sums = [(); N].map(|()| P::identity());
    let mut start = 0;
    while start < bases.len() {
        let len = (bases.len() - start).min(CHUNK);
        let chunk: Vec<usize> = variables.by_ref().take(len).collect();
        for (sum, values) in iter::zip(&mut sums, values) {
            let scalars: Vec<Scalar> = chunk.iter().map(|&variable| values[variable]).collect();
            *sum += P::msm(isa, &Part::new(bases, start, len), &scalars)?;
        }
        start += len;
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[test]
    fn the_memory_is_that_of_the_assignment() {
        let mimc = cuzk_testing::circuits::Mimc::blank(20);
        let program = cuzk_pce::compile(mimc).unwrap();
        // Two rows a round, and those of the two inputs.
        let said = Assignment::bytes(program.num_variables(), 64);
        assert_eq!(relation_bytes(&program), said);
    }

    /// The slow twin: a sum of products, one by one.
    #[test]
    fn a_combination_is_the_sum_of_its_products() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let bases: Vec<G1Affine> = (0..70)
            .map(|_| G1Projective::random(&mut rng).to_affine())
            .collect();
        let values: Vec<Scalar> = (0..150).map(|_| Scalar::random(&mut rng)).collect();
        let variables = || (1..150).step_by(2);
        let expected: G1Projective = iter::zip(&bases, variables())
            .map(|(base, variable)| base * values[variable])
            .sum();
        for isa in Isa::all() {
            let [sum, zero] = combine::<G1Projective, _, 2>(
                isa,
                &bases[..],
                variables(),
                [&values, &vec![Scalar::ZERO; 150]],
            )
            .unwrap();
            assert_eq!(sum, expected, "{isa}");
            assert!(bool::from(zero.is_identity()));
        }
    }
}
