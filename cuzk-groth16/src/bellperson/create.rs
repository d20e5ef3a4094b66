//! Proofs under bellperson's names.
//!
//! The invariant: a circuit is kept with its parameters once a proof of it was verified.

use bellperson::groth16::Proof;
use bellperson::{Circuit as Instance, SynthesisError};
use blstrs::Bls12;
use ff::Field;
use rand::RngCore;

use super::error::named;
use super::pairing::{Bls12381, named_proof};
use super::parameters::{ParameterSource, Parameters};
use crate::ProveError;
use crate::backend::Randomness;
use crate::prover::compile_and_prove;

/// Proves a circuit with these random scalars, and verifies the proof.
///
/// # Errors
/// The circuit's. [`SynthesisError::IoError`] with a [`ProveError`], for example for a witness
/// that does not satisfy the circuit, or for an instance of another shape.
pub fn create_proof<E, C, P>(
    circuit: C,
    params: P,
    r: E::Fr,
    s: E::Fr,
) -> Result<Proof<E>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    P: ParameterSource<E>,
{
    let proofs = create_proof_batch::<E, C, P>(vec![circuit], params, vec![r], vec![s])?;
    let mut proofs = proofs.into_iter();
    // One circuit has one proof.
    proofs.next().ok_or(SynthesisError::AssignmentMissing)
}

/// Proves a circuit, and verifies the proof.
///
/// # Errors
/// As [`create_proof`].
pub fn create_random_proof<E, C, R, P>(
    circuit: C,
    params: P,
    rng: &mut R,
) -> Result<Proof<E>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    R: RngCore,
    P: ParameterSource<E>,
{
    let r = E::Fr::random(&mut *rng);
    let s = E::Fr::random(&mut *rng);
    create_proof::<E, C, P>(circuit, params, r, s)
}

/// Proves instances of one circuit with these random scalars, and verifies the proofs.
///
/// # Errors
/// As [`create_proof`], and [`SynthesisError::IncompatibleLengthVector`].
pub fn create_proof_batch<E, C, P>(
    circuits: Vec<C>,
    params: P,
    r: Vec<E::Fr>,
    s: Vec<E::Fr>,
) -> Result<Vec<Proof<E>>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    P: ParameterSource<E>,
{
    if r.len() != s.len() {
        let problem = format!("{} scalars r and {} scalars s", r.len(), s.len());
        return Err(SynthesisError::IncompatibleLengthVector(problem));
    }
    let pairs = r.into_iter().zip(s);
    let randomness: Vec<_> = pairs.map(|(r, s)| Randomness::Added { r, s }).collect();
    let proofs = prove_all(circuits, params.parameters(), &randomness).map_err(named)?;
    Ok(proofs.into_iter().map(named_proof).collect())
}

/// Proves instances of one circuit, and verifies the proofs.
///
/// # Errors
/// As [`create_proof`].
pub fn create_random_proof_batch<E, C, R, P>(
    circuits: Vec<C>,
    params: P,
    rng: &mut R,
) -> Result<Vec<Proof<E>>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    R: RngCore,
    P: ParameterSource<E>,
{
    // All of r, then all of s.
    let mut scalars = || circuits.iter().map(|_| E::Fr::random(&mut *rng)).collect();
    let [r, s] = [(); 2].map(|()| scalars());
    create_proof_batch::<E, C, P>(circuits, params, r, s)
}

/// Proves instances with the circuit that the parameters have. Parameters without one get that
/// of the first instance.
fn prove_all<E: Bls12381, C: Instance<E::Fr> + Send>(
    mut circuits: Vec<C>,
    params: &Parameters<E>,
    randomness: &[Randomness],
) -> Result<Vec<Proof<Bls12>>, ProveError> {
    if let Some(prover) = params.prover() {
        return prover.verified_proofs(circuits, randomness);
    }
    let Some((first_randomness, rest)) = randomness.split_first() else {
        return Ok(Vec::new());
    };
    if circuits.len() != randomness.len() {
        return Err(ProveError::Lengths {
            circuits: circuits.len(),
            randomness: randomness.len(),
        });
    }
    let first = circuits.remove(0);
    let (prover, proof) = compile_and_prove(params.mapped(), first, *first_randomness)?;
    let rest = prover.verified_proofs(circuits, rest);
    params.keep(prover);
    let mut proofs = vec![proof];
    proofs.extend(rest.map_err(|error| error.after(1))?);
    Ok(proofs)
}

/// As [`create_proof`]: there is no queue here in which a proof could have priority.
///
/// # Errors
/// As [`create_proof`].
pub fn create_proof_in_priority<E, C, P>(
    circuit: C,
    params: P,
    r: E::Fr,
    s: E::Fr,
) -> Result<Proof<E>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    P: ParameterSource<E>,
{
    create_proof::<E, C, P>(circuit, params, r, s)
}

/// As [`create_random_proof`]: there is no queue here in which a proof could have priority.
///
/// # Errors
/// As [`create_proof`].
pub fn create_random_proof_in_priority<E, C, R, P>(
    circuit: C,
    params: P,
    rng: &mut R,
) -> Result<Proof<E>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    R: RngCore,
    P: ParameterSource<E>,
{
    create_random_proof::<E, C, R, P>(circuit, params, rng)
}

/// As [`create_proof_batch`]: there is no queue here in which proofs could have priority.
///
/// # Errors
/// As [`create_proof_batch`].
pub fn create_proof_batch_in_priority<E, C, P>(
    circuits: Vec<C>,
    params: P,
    r: Vec<E::Fr>,
    s: Vec<E::Fr>,
) -> Result<Vec<Proof<E>>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    P: ParameterSource<E>,
{
    create_proof_batch::<E, C, P>(circuits, params, r, s)
}

/// As [`create_random_proof_batch`]: there is no queue here in which proofs could have
/// priority.
///
/// # Errors
/// As [`create_proof`].
pub fn create_random_proof_batch_in_priority<E, C, R, P>(
    circuits: Vec<C>,
    params: P,
    rng: &mut R,
) -> Result<Vec<Proof<E>>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr> + Send,
    R: RngCore,
    P: ParameterSource<E>,
{
    create_random_proof_batch::<E, C, R, P>(circuits, params, rng)
}
