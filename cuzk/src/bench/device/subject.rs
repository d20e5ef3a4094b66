//! The subject of a proof: a circuit with its parameters and a witness.

use std::path::Path;
use std::sync::Arc;

use bellperson::groth16::{PreparedVerifyingKey, Proof, prepare_verifying_key};
use blstrs::{Bls12, Scalar};
use cuzk_core::circuits;
use cuzk_groth16::Circuit;
use cuzk_groth16::backend::{Evaluation, Randomness, Synthesized};
use cuzk_groth16::memory::buffer_pool;
use cuzk_groth16::params::{MappedParams, ParamCache};
use cuzk_groth16::verify::verify;
use cuzk_memory::{BufferPool, Checkpoint, Dealloc};
use cuzk_pce::{Columns, PackedWitness};

use super::made_up::MadeUp;
use crate::bench::args::Bench;
use crate::bench::circuit::bundled_job;
use crate::commands::Context;
use crate::commands::params::ensure_parameters;
use crate::failure::{Failure, failed};

/// The inputs of a prover, and the key that verifies its proofs.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) circuit: Arc<Circuit>,
    pub(super) params: Arc<MappedParams>,
    pub(super) witness: PackedWitness<Scalar>,
    inputs: Vec<Scalar>,
    key: PreparedVerifyingKey<Bls12>,
    buffers: Arc<BufferPool>,
}

impl Subject {
    /// Returns the first partition of the bundled request of a kind.
    pub(super) fn of_kind(context: &Context, args: &Bench) -> Result<Self, Failure> {
        let job = bundled_job(args)?;
        let id = job.circuit();
        ensure_parameters(context, id)?;
        let cache = &context.config.srs.param_cache;
        let circuit = circuits::cached(id, cache)?;
        let path = ParamCache::new(cache).params_path(&circuits::parameter_files(id)?);
        let inputs = job.public_inputs(0)?;
        Self::new(id.to_string(), circuit, &path, job.witness(0)?, inputs)
    }

    /// Returns a made-up circuit that fills the domain.
    pub(super) fn of_size(context: &Context, log_domain: u32) -> Result<Self, Failure> {
        let made_up = MadeUp::new(&context.config.srs.param_cache, log_domain)?;
        let name = format!("2^{log_domain}");
        let (circuit, params) = (made_up.circuit, made_up.params_path);
        Self::new(name, circuit, &params, made_up.witness, Vec::new())
    }

    fn new(
        name: String,
        circuit: Circuit,
        params: &Path,
        witness: PackedWitness<Scalar>,
        inputs: Vec<Scalar>,
    ) -> Result<Self, Failure> {
        let params = MappedParams::open(params).map_err(failed)?;
        params
            .check_circuit(&circuit.query_lengths())
            .map_err(failed)?;
        Ok(Self {
            name,
            circuit: Arc::new(circuit),
            key: prepare_verifying_key(params.vk()),
            params: Arc::new(params),
            witness,
            inputs,
            buffers: buffer_pool(Dealloc::Recycle, 0),
        })
    }

    /// Returns a partition for the device, with its witness copied.
    pub(super) fn synthesized(&self, randomness: Randomness) -> Synthesized {
        Synthesized {
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(&self.params),
            witness: self.witness.clone(),
            evaluation: Evaluation::Left(Arc::clone(&self.buffers)),
            bit_sums: None,
            randomness,
            checkpoint: Checkpoint::never(),
        }
    }

    /// Returns the proof's bytes, if it verifies.
    pub(super) fn verify(&self, proof: &Proof<Bls12>) -> Result<[u8; 192], Failure> {
        let verified = verify(&self.key, proof, &self.inputs).map_err(failed)?;
        Ok(*verified.as_bytes())
    }

    /// Returns the upload of a prover that takes a, b, c and the aux values in full.
    pub(super) fn peer_bytes(&self) -> u64 {
        let rows = self.circuit.program().rows() + self.witness.num_inputs();
        (size_of::<Scalar>() * (3 * rows + self.witness.num_aux())) as u64
    }
}
