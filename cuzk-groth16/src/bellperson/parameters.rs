//! Parameters under bellperson's names.
//!
//! They are mapped or in memory, in the form of the file. The invariant: the compiled circuit
//! that parameters have is one that a verified proof was made of, or that they were generated
//! from.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bellperson::groth16::{PreparedVerifyingKey, VerifyingKey, prepare_verifying_key};
use bellperson::{Circuit as Instance, SynthesisError};
use cuzk_kernels::Isa;
use ff::Field;
use group::{Curve, Group};
use rand::RngCore;

use super::error::{named, of_reading};
use super::pairing::{Bls12381, named_key};
use crate::params::{MappedParams, ToxicWaste, check_points};
use crate::prover::{Prover, compile, setup};

/// The parameters of one circuit.
#[derive(Clone)]
pub struct Parameters<E: Bls12381> {
    /// The verifying key.
    pub vk: VerifyingKey<E>,
    inner: Arc<Inner>,
}

struct Inner {
    params: Arc<MappedParams>,
    /// Of the circuit, once that is known.
    prover: OnceLock<Prover>,
}

impl<E: Bls12381> fmt::Debug for Parameters<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Parameters");
        debug.field("params", &self.inner.params);
        debug.finish_non_exhaustive()
    }
}

impl<E: Bls12381> PartialEq for Parameters<E> {
    fn eq(&self, other: &Self) -> bool {
        self.inner.params.bytes() == other.inner.params.bytes()
    }
}

impl<E: Bls12381> Parameters<E> {
    fn new(params: Arc<MappedParams>, prover: OnceLock<Prover>) -> Self {
        Self {
            vk: named_key(params.vk()),
            inner: Arc::new(Inner { params, prover }),
        }
    }

    /// Reads parameters, and no byte after them. They stay in memory. `checked` asks for a
    /// check of every point, which takes longer than a proof.
    ///
    /// # Errors
    /// Too few bytes, or bytes that are no parameters.
    pub fn read<R: Read>(mut reader: R, checked: bool) -> io::Result<Self> {
        let params = MappedParams::read(&mut reader).map_err(of_reading)?;
        Self::checked_if(checked, params)
    }

    /// Maps the parameters of a file, which must not be changed or shortened while they are in
    /// use. `checked` asks for a check of every point.
    ///
    /// # Errors
    /// A file that cannot be read, or is not one of parameters.
    pub fn build_mapped_parameters(
        param_file_path: PathBuf,
        checked: bool,
    ) -> io::Result<MappedParameters<E>> {
        let params = MappedParams::open(&param_file_path).map_err(of_reading)?;
        let parameters = Self::checked_if(checked, params)?;
        Ok(MappedParameters {
            param_file_path,
            vk: parameters.vk.clone(),
            pvk: prepare_verifying_key(&parameters.vk),
            checked,
            parameters,
        })
    }

    fn checked_if(checked: bool, params: MappedParams) -> io::Result<Self> {
        if checked {
            check_points(&params, Isa::best(), |_| ()).map_err(of_reading)?;
        }
        Ok(Self::new(Arc::new(params), OnceLock::new()))
    }

    /// Writes the parameters.
    ///
    /// # Errors
    /// The writer's.
    pub fn write<W: Write>(&self, mut writer: W) -> io::Result<()> {
        writer.write_all(self.inner.params.bytes())
    }

    /// The parameters, for the provers of this crate.
    #[must_use]
    pub fn mapped(&self) -> &Arc<MappedParams> {
        &self.inner.params
    }

    /// Returns the prover of the circuit, if that is known.
    pub(super) fn prover(&self) -> Option<&Prover> {
        self.inner.prover.get()
    }

    /// Keeps the prover of a circuit for further proofs, if there is none.
    pub(super) fn keep(&self, prover: Prover) {
        drop(self.inner.prover.set(prover));
    }
}

/// Parameters that are mapped from a file.
pub struct MappedParameters<E: Bls12381> {
    /// The file.
    pub param_file_path: PathBuf,
    /// The verifying key.
    pub vk: VerifyingKey<E>,
    /// The verifying key, ready to verify with.
    pub pvk: PreparedVerifyingKey<E>,
    /// True if every point was checked.
    pub checked: bool,
    parameters: Parameters<E>,
}

impl<E: Bls12381> fmt::Debug for MappedParameters<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parameters.fmt(f)
    }
}

/// Something that has [`Parameters`].
pub trait ParameterSource<E: Bls12381>: Send + Sync {
    /// Returns the parameters.
    fn parameters(&self) -> &Parameters<E>;
}

impl<E: Bls12381> ParameterSource<E> for &Parameters<E> {
    fn parameters(&self) -> &Parameters<E> {
        self
    }
}

impl<E: Bls12381> ParameterSource<E> for &MappedParameters<E> {
    fn parameters(&self) -> &Parameters<E> {
        &self.parameters
    }
}

/// Makes parameters of a circuit with random toxic waste. Anyone who knows the output of
/// `rng` can prove anything.
///
/// # Errors
/// As [`generate_parameters`].
pub fn generate_random_parameters<E, C, R>(
    circuit: C,
    rng: &mut R,
) -> Result<Parameters<E>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr>,
    R: RngCore,
{
    // The order is bellperson's.
    let g1 = E::G1::random(&mut *rng);
    let g2 = E::G2::random(&mut *rng);
    let mut scalar = || E::Fr::random(&mut *rng);
    let [alpha, beta, gamma, delta, tau] = [(); 5].map(|()| scalar());
    generate_parameters::<E, C>(circuit, g1, g2, alpha, beta, gamma, delta, tau)
}

/// Makes parameters of a circuit with this toxic waste.
///
/// # Errors
/// [`SynthesisError::UnconstrainedVariable`], [`SynthesisError::UnexpectedIdentity`] for waste
/// that is degenerate, and the circuit's.
#[expect(clippy::too_many_arguments, reason = "the signature is bellperson's")]
pub fn generate_parameters<E, C>(
    circuit: C,
    g1: E::G1,
    g2: E::G2,
    alpha: E::Fr,
    beta: E::Fr,
    gamma: E::Fr,
    delta: E::Fr,
    tau: E::Fr,
) -> Result<Parameters<E>, SynthesisError>
where
    E: Bls12381,
    C: Instance<E::Fr>,
{
    let waste = ToxicWaste {
        g1: g1.to_affine(),
        g2: g2.to_affine(),
        alpha,
        beta,
        gamma,
        delta,
        tau,
    };
    let circuit = compile(std::any::type_name::<C>(), circuit).map_err(named)?;
    let params = Arc::new(setup(&circuit, &waste).map_err(named)?);
    let prover = Prover::new(Arc::new(circuit), Arc::clone(&params)).map_err(named)?;
    Ok(Parameters::new(params, prover.into()))
}
