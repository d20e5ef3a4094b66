//! From a request to aggregate to a verified aggregate.
//!
//! Not a job of the engine: an aggregate takes a second, holds little memory and runs on the
//! caller's pool. The invariants:
//!
//! * An aggregate is verified before it is returned.
//! * A proof that does not verify is named.
//! * For sectors of networks the SRS has the networks' digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bellperson::groth16::{PreparedVerifyingKey, Proof, verify_proof, verify_proofs_batch};
use blstrs::{Bls12, Scalar};
use cuzk_fetch::{Digests, file_digest};
use cuzk_filecoin::{AggregateRequest, SRS_JSON, srs_file_name};
use cuzk_groth16::aggregate::{
    AggregateError, AggregateVersion, AggregationKey, Claim, SrsError, VerifiedAggregate,
    aggregate, open_srs, verify,
};
use cuzk_groth16::params::ParamCache;
use cuzk_kernels::KernelError;
use rand::rngs::OsRng;

use crate::circuits::parameter_files;
use crate::config::Config;
use crate::{Error, Result};

/// The keys of the inner-product SRS in the parameter cache, each read when it is first
/// needed.
#[derive(Debug)]
pub struct AggregationKeys {
    path: PathBuf,
    /// True if the digest of the file is compared.
    check_digest: bool,
    /// By number of proofs, apart for proofs of networks.
    keys: Mutex<BTreeMap<(usize, bool), Arc<AggregationKey>>>,
}

impl AggregationKeys {
    /// Names the file. Nothing is read.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            path: srs_path(&config.srs.param_cache),
            check_digest: config.srs.check_digests,
            keys: Mutex::default(),
        }
    }

    /// Returns the key for a number of proofs. If the proofs are `of_networks`, the file must
    /// have the digest of the networks' list.
    fn key(&self, proofs: usize, of_networks: bool) -> Result<Arc<AggregationKey>> {
        // A panic in between leaves a map.
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(&(proofs, of_networks)) {
            return Ok(Arc::clone(key));
        }
        if of_networks && self.check_digest {
            check_digest(&self.path)?;
        }
        let srs = open_srs(&self.path, proofs).map_err(Error::Srs)?;
        let key = Arc::new(AggregationKey::new(&srs, proofs).map_err(of_aggregation)?);
        keys.insert((proofs, of_networks), Arc::clone(&key));
        Ok(key)
    }
}

/// The file of the inner-product SRS in a parameter cache.
#[must_use]
pub fn srs_path(param_cache: &Path) -> PathBuf {
    param_cache.join(srs_file_name())
}

/// Compares the SRS with the digest of the networks' list.
fn check_digest(path: &Path) -> Result<()> {
    let failed = |source| {
        Error::Srs(SrsError::Io {
            path: path.to_owned(),
            source,
        })
    };
    let digests = Digests::parse(SRS_JSON).map_err(|problem| Error::Aggregate { problem })?;
    let listed = digests.get(&srs_file_name()).map(|listed| listed.digest);
    let digest = file_digest(path, |_| true).map_err(failed)?;
    match listed {
        Some(listed) if listed == digest => Ok(()),
        _ => Err(Error::Srs(SrsError::Digest {
            path: path.to_owned(),
        })),
    }
}

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
    let circuit = request.circuit()?;
    let verifying_key =
        ParamCache::new(&config.srs.param_cache).verifying_key(&parameter_files(circuit)?)?;
    let key = keys.key(request.padded_len(), circuit.sector_size.is_for_networks())?;
    let (mut proofs, mut inputs) = (request.proofs()?, request.public_inputs()?);
    check_proofs(request, &verifying_key, &proofs, &inputs)?;
    repeat_last(&mut proofs, request.padded_len());
    repeat_last(&mut inputs, request.padded_len());

    let (version, included) = (version(request), request.included());
    let isa = config.cpu.isa;
    let made = aggregate(isa, &key, version, &included, &proofs).map_err(of_aggregation)?;
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
