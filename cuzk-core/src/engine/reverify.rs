//! Verification of a proof that was verified once before: by an earlier engine, or
//! with another key.
//!
//! Not the first verification, which is the pipeline's. The invariant: a proof that was
//! read from a file is verified before anyone is given it.

use std::sync::Arc;

use bellperson::groth16::{PreparedVerifyingKey, Proof};
use blstrs::Bls12;
use cuzk_filecoin::{CircuitId, Statement};
use cuzk_groth16::apart;
use cuzk_groth16::params::{LoadedParams, Loading};
use cuzk_groth16::verify::VerifiedProof;
use rayon::ThreadPool;

use super::assets::Assets;
use super::compute::Compute;
use crate::pipeline::verify_partition;
use crate::{Error, Result};

/// The key that a proof was verified with.
#[derive(Clone)]
pub(super) enum ProofKey {
    /// That of parameters that are loaded.
    OfParams(Arc<LoadedParams>),
    /// A key without its parameters.
    Alone(Arc<PreparedVerifyingKey<Bls12>>),
}

impl ProofKey {
    /// Returns the newest key of a circuit. Its parameters need not be loaded.
    ///
    /// # Errors
    /// A verifying key that cannot be read.
    pub(super) fn newest(assets: &Assets, circuit: CircuitId) -> Result<Self> {
        match assets.loaded_params(circuit) {
            Some(params) => Ok(Self::OfParams(params)),
            None => Ok(Self::Alone(assets.verifying_key(circuit)?)),
        }
    }

    pub(super) fn prepared(&self) -> &PreparedVerifyingKey<Bls12> {
        match self {
            Self::OfParams(params) => params.prepared_key(),
            Self::Alone(key) => key,
        }
    }

    pub(super) fn loading(&self) -> Loading {
        match self {
            Self::OfParams(params) => params.loading(),
            Self::Alone(_) => Loading::KEY_ALONE,
        }
    }
}

/// Verifies the bytes of a partition's proof on `pool`.
///
/// # Errors
/// [`Error::Rejected`], and an error of the statement.
pub(super) fn verify_again(
    statement: &dyn Statement,
    partition: usize,
    bytes: &[u8],
    key: &PreparedVerifyingKey<Bls12>,
    pool: &ThreadPool,
) -> Result<VerifiedProof> {
    let rejected = |problem: String| Error::Rejected { partition, problem };
    let proof = Proof::<Bls12>::read(bytes).map_err(|error| rejected(error.to_string()))?;
    let verify = || {
        let inputs = statement.public_inputs(partition)?;
        verify_partition(key, &proof, &inputs, partition)
    };
    // The caller may hold an id.
    apart::install(pool, verify)?
}

/// Verifies the bytes of a partition's proof from the journal, with the circuit's key of
/// today.
///
/// # Errors
/// As [`verify_again`], and a verifying key that cannot be read.
pub(super) fn verify_stored(
    (assets, compute): (&Assets, &Compute),
    statement: &dyn Statement,
    critical: bool,
    partition: usize,
    bytes: &[u8],
) -> Result<VerifiedProof> {
    let key = assets.verifying_key(statement.circuit())?;
    let pool = compute.auxiliary_pool(critical);
    verify_again(statement, partition, bytes, &key, pool)
}
