//! Proofs of any circuit: a `bellpepper_core::Circuit` in, a verified proof out.
//!
//! | module | content |
//! |---|---|
//! | `error` | the reasons why there is no proof |
//! | `device` | the backend, threads and memory of a process |
//! | `instance` | a circuit with values: its witness, and the check of its rows |
//! | `batch` | several proofs of one circuit |
//! | `functions` | compilation, parameters for tests, and proofs without a [`Prover`] |
//!
//! A circuit is [compiled](compile) once, and can be kept in a file. A [`Prover`] has the
//! compiled circuit and its parameters. Each [proof](Prover::prove) synthesises an instance,
//! which packs its values and compares its rows with the compiled ones.
//!
//! Not an engine: there are no queues, priorities or budgets. The invariants:
//!
//! * A proof that was not verified has another type than one that was.
//! * An instance whose rows differ from the compiled ones is refused with the row, unless
//!   the caller asked for [`RowCheck::Counts`].

mod batch;
mod device;
mod error;
mod functions;
mod instance;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bellperson::Circuit as Instance;
use bellperson::groth16::{PreparedVerifyingKey, Proof, prepare_verifying_key};
use blstrs::{Bls12, Scalar};
use cuzk_memory::Checkpoint;
use cuzk_pce::PackedWitness;
use cuzk_timeline::{Stage, Trace};

use crate::apart;
use crate::backend::{BitSums, Evaluation, Randomness, Synthesized};
use crate::circuit::Circuit;
use crate::params::MappedParams;
use crate::verify::{VerifiedProof, verify};

pub use device::ProvingDevice;
pub use error::ProveError;
pub use functions::{compile, prove, prove_batch, setup};
pub use instance::RowCheck;

pub(crate) use functions::compile_and_prove;

/// Proves instances of one compiled circuit. Threads may share it. They may belong to a pool of
/// rayon: each has one proof at a time. Threads of the device's own pool get no proof:
/// [`ProveError::OwnThread`].
pub struct Prover {
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    key: PreparedVerifyingKey<Bls12>,
    device: Arc<ProvingDevice>,
    row_check: RowCheck,
}

impl fmt::Debug for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover")
            .field("circuit", &self.circuit.name())
            .field("params", &self.params)
            .field("device", &self.device)
            .field("row_check", &self.row_check)
            .finish_non_exhaustive()
    }
}

impl Drop for Prover {
    /// A device keeps nothing for a circuit that has no prover.
    fn drop(&mut self) {
        self.device.backend().evict(&self.circuit);
    }
}

impl Prover {
    /// Takes a compiled circuit and its parameters, and proves on the
    /// [shared](ProvingDevice::shared) device.
    ///
    /// # Errors
    /// Parameters of another circuit, as far as their lengths tell, and a device that cannot
    /// be opened.
    pub fn new(circuit: Arc<Circuit>, params: Arc<MappedParams>) -> Result<Self, ProveError> {
        Self::on(circuit, params, ProvingDevice::shared()?)
    }

    /// As [`Self::new`], on a device of the caller's choice.
    ///
    /// # Errors
    /// Parameters of another circuit, as far as their lengths tell.
    pub fn on(
        circuit: Arc<Circuit>,
        params: Arc<MappedParams>,
        device: Arc<ProvingDevice>,
    ) -> Result<Self, ProveError> {
        params.check_circuit(&circuit.query_lengths())?;
        let key = apart::install(device.pool(), || prepare_verifying_key(params.vk()))?;
        Ok(Self {
            circuit,
            params,
            key,
            device,
            row_check: RowCheck::default(),
        })
    }

    /// Maps the circuit `name` and its parameters from files, and proves on the
    /// [shared](ProvingDevice::shared) device.
    ///
    /// # Errors
    /// As [`Circuit::open`], [`MappedParams::open`] and [`Self::new`].
    pub fn open(name: &str, circuit: &Path, params: &Path) -> Result<Self, ProveError> {
        let circuit = Circuit::open(name, circuit)?;
        let params = MappedParams::open(params)?;
        Self::new(Arc::new(circuit), Arc::new(params))
    }

    /// Returns the prover with another comparison of instances with the compiled circuit.
    #[must_use]
    pub fn with_row_check(mut self, row_check: RowCheck) -> Self {
        self.row_check = row_check;
        self
    }

    /// Returns the compiled circuit.
    #[must_use]
    pub fn circuit(&self) -> &Arc<Circuit> {
        &self.circuit
    }

    /// Returns the parameters.
    #[must_use]
    pub fn params(&self) -> &Arc<MappedParams> {
        &self.params
    }

    /// Returns the key that proofs are verified with.
    #[must_use]
    pub fn key(&self) -> &PreparedVerifyingKey<Bls12> {
        &self.key
    }

    /// Proves an instance, and verifies the proof. The instance is synthesised once, on the
    /// caller's thread.
    ///
    /// # Errors
    /// * [`ProveError::Shape`] if it is not the compiled circuit.
    /// * [`ProveError::Unsatisfied`] if its witness does not satisfy a row.
    /// * [`ProveError::Synthesis`], [`ProveError::Backend`], [`ProveError::Rejected`].
    /// * [`ProveError::OwnThread`].
    pub fn prove<C: Instance<Scalar>>(&self, instance: C) -> Result<VerifiedProof, ProveError> {
        self.prove_with(instance, Randomness::from_os())
    }

    /// As [`Self::prove`], with this randomness. [`Randomness::Added`] gives the bytes of
    /// bellperson's `create_proof`. Fixed randomness is for tests: two proofs with the same
    /// tell about their witnesses.
    ///
    /// # Errors
    /// As [`Self::prove`].
    pub fn prove_with<C: Instance<Scalar>>(
        &self,
        instance: C,
        randomness: Randomness,
    ) -> Result<VerifiedProof, ProveError> {
        let trace = self.begin()?;
        let witness = self.witness(instance, trace)?;
        Ok(self
            .prove_witness(witness, randomness, None, trace)?
            .verified)
    }

    /// As [`Self::prove_with`], without verification. So the proof may be wrong: the witness
    /// need not satisfy the circuit.
    ///
    /// # Errors
    /// As [`Self::prove`], but for those of a rejected proof.
    pub fn prove_unverified<C: Instance<Scalar>>(
        &self,
        instance: C,
        randomness: Randomness,
    ) -> Result<Proof<Bls12>, ProveError> {
        let trace = self.begin()?;
        let witness = self.witness(instance, trace)?;
        self.make(witness, randomness, None, trace)
    }

    /// Proves instances, and verifies each proof. A few are synthesised at a time, side by
    /// side. If one has no proof, the call ends with its error.
    ///
    /// # Errors
    /// [`ProveError::InBatch`] with the instance and an error of [`Self::prove`];
    /// [`ProveError::OwnThread`].
    pub fn prove_batch<C: Instance<Scalar> + Send>(
        &self,
        instances: Vec<C>,
    ) -> Result<Vec<VerifiedProof>, ProveError> {
        let randomness = instances.iter().map(|_| Randomness::from_os()).collect();
        self.prove_batch_with(instances, randomness)
    }

    /// As [`Self::prove_batch`], with the randomness of each proof. See [`Self::prove_with`].
    ///
    /// # Errors
    /// As [`Self::prove_batch`], and [`ProveError::Lengths`].
    pub fn prove_batch_with<C: Instance<Scalar> + Send>(
        &self,
        instances: Vec<C>,
        randomness: Vec<Randomness>,
    ) -> Result<Vec<VerifiedProof>, ProveError> {
        let proved = batch::prove_all(self, instances, &randomness)?;
        Ok(proved.into_iter().map(|proved| proved.verified).collect())
    }

    /// Proves instances as [`Self::prove_batch_with`] does, and returns their proofs decoded.
    pub(crate) fn verified_proofs<C: Instance<Scalar> + Send>(
        &self,
        instances: Vec<C>,
        randomness: &[Randomness],
    ) -> Result<Vec<Proof<Bls12>>, ProveError> {
        let proved = batch::prove_all(self, instances, randomness)?;
        Ok(proved.into_iter().map(|proved| proved.proof).collect())
    }

    /// Returns the handle that records the stages of a proof.
    ///
    /// # Errors
    /// [`ProveError::OwnThread`].
    fn begin(&self) -> Result<Trace<'_>, ProveError> {
        self.device.check_caller()?;
        Ok(self.device.next_trace())
    }

    fn witness<C: Instance<Scalar>>(
        &self,
        instance: C,
        trace: Trace<'_>,
    ) -> Result<PackedWitness<Scalar>, ProveError> {
        trace.time(Stage::CircuitWitness, || {
            instance::witness(&self.circuit, instance, self.row_check)
        })
    }

    /// Proves a witness, and verifies the proof.
    fn prove_witness(
        &self,
        witness: PackedWitness<Scalar>,
        randomness: Randomness,
        bit_sums: Option<BitSums>,
        trace: Trace<'_>,
    ) -> Result<Proved, ProveError> {
        // A backend takes the witness, and it is needed again if the proof is wrong.
        let kept = witness.clone();
        let proof = self.make(witness, randomness, bit_sums, trace)?;
        let pool = self.device.pool();
        let inputs = kept.inputs().get(1..).unwrap_or_default();
        let verified = trace.time(Stage::Verify, || {
            apart::install(pool, || verify(&self.key, &proof, inputs))
        });
        match verified? {
            Ok(verified) => Ok(Proved { proof, verified }),
            Err(rejected) => {
                let why = || self.why_rejected(&kept, rejected.into());
                Err(apart::install(pool, why)?)
            }
        }
    }

    /// Returns the reason why the proof of a witness was rejected: a row, if there is one.
    fn why_rejected(&self, witness: &PackedWitness<Scalar>, rejected: ProveError) -> ProveError {
        match self.circuit.first_bad_row(witness) {
            Ok(Some(row)) => ProveError::Unsatisfied {
                circuit: self.circuit.name().to_owned(),
                row,
            },
            Ok(None) => rejected,
            Err(error) => error.into(),
        }
    }

    fn make(
        &self,
        witness: PackedWitness<Scalar>,
        randomness: Randomness,
        bit_sums: Option<BitSums>,
        trace: Trace<'_>,
    ) -> Result<Proof<Bls12>, ProveError> {
        let synthesized = Synthesized {
            circuit: Arc::clone(&self.circuit),
            params: Arc::clone(&self.params),
            witness,
            evaluation: Evaluation::Left(Arc::clone(self.device.buffers())),
            bit_sums,
            randomness,
            checkpoint: Checkpoint::never(),
        };
        Ok(self.device.make(synthesized, trace)?)
    }
}

/// A proof in both forms. Its bytes were verified.
struct Proved {
    proof: Proof<Bls12>,
    verified: VerifiedProof,
}
