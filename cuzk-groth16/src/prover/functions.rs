//! Compilation, parameters for tests, and proofs of those who keep no prover.
//!
//! Each is a line or two over a [`Circuit`] or a [`Prover`].

use std::sync::Arc;

use bellperson::Circuit as Instance;
use bellperson::groth16::Proof;
use blstrs::{Bls12, Scalar};
use cuzk_kernels::Isa;
use cuzk_pce::compile_with_witness;

use super::{ProveError, Prover};
use crate::backend::Randomness;
use crate::circuit::Circuit;
use crate::params::{MappedParams, ToxicWaste, generate};
use crate::verify::VerifiedProof;

/// Compiles `circuit`, which need not have a witness, under a name of the caller's choice.
/// [`Circuit::write`] keeps it in a file, and [`Circuit::open`] maps it from there.
///
/// # Errors
/// [`ProveError::Synthesis`], and [`ProveError::Compile`] for a circuit that is too large or
/// names a variable that it has not allocated.
///
/// # Example
///
/// ```
/// # use bellperson::{ConstraintSystem, SynthesisError};
/// # use blstrs::Scalar;
/// # use cuzk_groth16::params::ToxicWaste;
/// # struct Square(Option<u64>);
/// # impl bellperson::Circuit<Scalar> for Square {
/// #     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
/// #         let value = || self.0.map(Scalar::from).ok_or(SynthesisError::AssignmentMissing);
/// #         let root = cs.alloc(|| "root", value)?;
/// #         let square = cs.alloc_input(|| "square", || Ok(value()? * value()?))?;
/// #         cs.enforce(|| "root²", |lc| lc + root, |lc| lc + root, |lc| lc + square);
/// #         Ok(())
/// #     }
/// # }
/// use std::sync::Arc;
/// use cuzk_groth16::{Prover, compile, setup};
///
/// let circuit = Arc::new(compile("square", Square(None))?);
/// // For tests: who knows the seed can prove anything.
/// let params = Arc::new(setup(&circuit, &ToxicWaste::from_seed(0))?);
/// let prover = Prover::new(circuit, params)?;
/// let proof = prover.prove(Square(Some(3)))?;
/// assert_eq!(proof.as_bytes().len(), 192);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile<C: Instance<Scalar>>(
    name: impl Into<String>,
    circuit: C,
) -> Result<Circuit, ProveError> {
    let name = name.into();
    match cuzk_pce::compile(circuit) {
        Ok(program) => Ok(Circuit::new(name, program)),
        Err(error) => Err(ProveError::of_compiling(name, error)),
    }
}

/// Makes insecure parameters of `circuit`, in memory and for tests: who knows the waste can
/// prove anything. They are those of bellperson's `generate_parameters`.
///
/// # Errors
/// [`ProveError::Setup`], for example for a variable in no constraint.
pub fn setup(circuit: &Circuit, waste: &ToxicWaste) -> Result<MappedParams, ProveError> {
    let mut bytes = Vec::new();
    let made = generate(circuit.program(), waste, Isa::best(), &mut bytes, |_, _| ());
    made.map_err(|source| ProveError::Setup {
        circuit: circuit.name().to_owned(),
        source,
    })?;
    Ok(MappedParams::of_bytes(bytes)?)
}

/// Proves one instance on the [shared](crate::ProvingDevice::shared) device. Keep a [`Prover`] for
/// more than one, because it prepares the verifying key.
///
/// # Errors
/// As [`Prover::new`] and [`Prover::prove`].
pub fn prove<C: Instance<Scalar>>(
    circuit: &Arc<Circuit>,
    params: &Arc<MappedParams>,
    instance: C,
) -> Result<VerifiedProof, ProveError> {
    Prover::new(Arc::clone(circuit), Arc::clone(params))?.prove(instance)
}

/// Proves several instances on the [shared](crate::ProvingDevice::shared) device.
///
/// # Errors
/// As [`Prover::new`] and [`Prover::prove_batch`].
pub fn prove_batch<C: Instance<Scalar> + Send>(
    circuit: &Arc<Circuit>,
    params: &Arc<MappedParams>,
    instances: Vec<C>,
) -> Result<Vec<VerifiedProof>, ProveError> {
    Prover::new(Arc::clone(circuit), Arc::clone(params))?.prove_batch(instances)
}

/// Compiles an instance and proves it, in one synthesis. Returns the prover of further
/// instances, and the proof. The circuit gets the name of its type.
///
/// # Errors
/// As [`compile`], [`Prover::new`] and [`Prover::prove`].
pub(crate) fn compile_and_prove<C: Instance<Scalar>>(
    params: &Arc<MappedParams>,
    instance: C,
    randomness: Randomness,
) -> Result<(Prover, Proof<Bls12>), ProveError> {
    let name = std::any::type_name::<C>();
    let compiled = compile_with_witness(instance);
    let (program, witness) = compiled.map_err(|error| ProveError::of_instance(name, error))?;
    let circuit = Arc::new(Circuit::new(name, program));
    let prover = Prover::new(circuit, Arc::clone(params))?;
    let trace = prover.begin()?;
    let proved = prover.prove_witness(witness, randomness, None, trace)?;
    Ok((prover, proved.proof))
}
