//! From a request to aggregate to a verified aggregate.
//!
//! Not a job of the engine: an aggregate takes a second and runs on the caller's pool. An
//! engine charges its memory. The invariants:
//!
//! * An aggregate is verified before it is returned.
//! * A proof that does not verify is named.
//! * For sectors of networks the SRS has the networks' digest.

mod keys;

use bellperson::groth16::{PreparedVerifyingKey, Proof, verify_proof, verify_proofs_batch};
use blstrs::{Bls12, Scalar};
use cuzk_filecoin::request::PorepC2;
use cuzk_filecoin::verify::{Rejection, Verdict};
use cuzk_filecoin::{AggregateRequest, Statement};
use cuzk_groth16::aggregate::{
    AggregateError, AggregateVersion, Claim, aggregate, verify, verify_bytes, work_bytes,
};
use cuzk_groth16::params::ParamCache;
use cuzk_kernels::{Context, KernelError};
use cuzk_memory::{Checkpoint, NEVER_STOP};
use rand::rngs::OsRng;

pub use self::keys::{AggregationKeys, srs_path};
use crate::circuits::parameter_files;
use crate::config::Config;
use crate::{Error, Result};
pub use cuzk_groth16::aggregate::VerifiedAggregate;
pub use cuzk_memory::Cancellation;

/// Aggregates the proofs of a request on the current pool.
///
/// # Errors
/// [`Error::Filecoin`] for a request with a proof that does not verify; [`Error::Params`]
/// without a verifying key; [`Error::Srs`] without an SRS.
pub fn aggregate_request(
    config: &Config,
    keys: &AggregationKeys,
    request: &AggregateRequest,
) -> Result<VerifiedAggregate> {
    aggregate_request_while(config, keys, request, &NEVER_STOP)
}

/// Aggregates as [`aggregate_request`]. Kernels ask `checkpoint` on every thread.
///
/// # Errors
/// As [`aggregate_request`]; [`Error::Stopped`].
pub fn aggregate_request_while(
    config: &Config,
    keys: &AggregationKeys,
    request: &AggregateRequest,
    checkpoint: &Checkpoint<'_>,
) -> Result<VerifiedAggregate> {
    let context = Context {
        checkpoint,
        ..config.cpu.isa.into()
    };
    aggregate_within(context, config, keys, request)
}

/// Returns the most bytes that the aggregation of a request has at once, without the keys.
///
/// # Errors
/// [`Error::Filecoin`] for a sector without public inputs.
pub fn memory_bytes(config: &Config, request: &AggregateRequest) -> Result<u64> {
    let (proofs, inputs) = (request.padded_len(), request.inputs_of_a_proof()?);
    let threads = config.synthesis.threads;
    Ok(work_bytes(config.cpu.isa, proofs, inputs, threads))
}

/// Aggregates as [`aggregate_request`], under a checkpoint.
pub(crate) fn aggregate_within(
    context: Context<'_>,
    config: &Config,
    keys: &AggregationKeys,
    request: &AggregateRequest,
) -> Result<VerifiedAggregate> {
    let circuit = request.circuit()?;
    let verifying_key =
        ParamCache::new(&config.srs.param_cache).verifying_key(&parameter_files(circuit)?)?;
    let key = keys.key(request.padded_len(), circuit.sector_size.is_for_networks())?;
    let (mut proofs, mut inputs) = (request.proofs()?, request.public_inputs()?);
    check_proofs(request, &verifying_key, &proofs, &inputs)?;
    repeat_last(&mut proofs, request.padded_len());
    repeat_last(&mut inputs, request.padded_len());

    let (version, included) = (version(request), request.included());
    let made = aggregate(context, &key, version, &included, &proofs).map_err(of_aggregation)?;
    let claim = Claim {
        verifying_key: &verifying_key,
        version,
        included: &included,
        inputs: &inputs,
    };
    verify(&key, claim, &made).map_err(|rejected| Error::Aggregate {
        problem: rejected.problem,
    })
}

/// Verifies the bytes of the aggregate that the chain takes for a non-interactive PoRep.
/// `statement` is the decoded request.
///
/// # Errors
/// [`Error::Filecoin`] for a statement without public inputs; [`Error::Params`] without a
/// verifying key; [`Error::Srs`] without an SRS.
pub fn verify_non_interactive(
    config: &Config,
    keys: &AggregationKeys,
    request: &PorepC2,
    statement: &dyn Statement,
    aggregate: &[u8],
) -> Result<Verdict> {
    let (circuit, partitions) = (statement.circuit(), statement.partitions());
    let verifying_key =
        ParamCache::new(&config.srs.param_cache).verifying_key(&parameter_files(circuit)?)?;
    let inputs = (0..partitions).map(|partition| statement.public_inputs(partition));
    let mut inputs = inputs.collect::<std::result::Result<Vec<_>, _>>()?;
    let padded_len = partitions.max(2).next_power_of_two();
    repeat_last(&mut inputs, padded_len);
    let key = keys.key(padded_len, circuit.sector_size.is_for_networks())?;
    let claim = Claim {
        verifying_key: &verifying_key,
        version: AggregateVersion::V2,
        included: &request.included()?,
        inputs: &inputs,
    };
    Ok(match verify_bytes(&key, claim, aggregate.to_vec()) {
        Ok(_) => Verdict::Valid,
        Err(rejected) => Verdict::Invalid(Rejection::Aggregate {
            partitions,
            problem: rejected.problem,
        }),
    })
}

fn version(request: &AggregateRequest) -> AggregateVersion {
    match request.is_second_version() {
        true => AggregateVersion::V2,
        false => AggregateVersion::V1,
    }
}

/// Repeats the last element, as the chain's verifier does with public inputs.
fn repeat_last<T: Clone>(values: &mut Vec<T>, len: usize) {
    if let Some(last) = values.last().cloned() {
        values.resize(len, last);
    }
}

/// Verifies the proofs all at once. If they do not hold, the first wrong one is looked for.
fn check_proofs(
    request: &AggregateRequest,
    key: &PreparedVerifyingKey<Bls12>,
    proofs: &[Proof<Bls12>],
    inputs: &[Vec<Scalar>],
) -> Result<()> {
    let borrowed: Vec<&Proof<Bls12>> = proofs.iter().collect();
    if verify_proofs_batch(key, &mut OsRng, &borrowed, inputs).unwrap_or(false) {
        return Ok(());
    }
    let mut pairs = proofs.iter().zip(inputs);
    let wrong =
        pairs.position(|(proof, inputs)| !verify_proof(key, proof, inputs).unwrap_or(false));
    let wrong = wrong.unwrap_or(0);
    let partitions = request.partitions().max(1);
    let problem = format!(
        "partition {}: the proof does not verify",
        wrong % partitions
    );
    Err(request.bad_proof(wrong / partitions, problem).into())
}

fn of_aggregation(error: AggregateError) -> Error {
    match error {
        AggregateError::Kernel(KernelError::Stopped) => Error::Stopped,
        error => Error::Aggregate {
            problem: error.to_string(),
        },
    }
}
