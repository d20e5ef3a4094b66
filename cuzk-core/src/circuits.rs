//! The circuits of the four kinds as provers use them: compiled, with their files.
//!
//! Not a circuit ([`Circuit`]), and not its structure ([`blank`]). The invariant:
//! the circuit of an id is compiled from that id's blank circuit, in memory or in the
//! parameter cache.

use std::path::{Path, PathBuf};

use cuzk_filecoin::{CircuitId, blank, variables_apart};
use cuzk_groth16::Circuit;
use cuzk_groth16::once_map::OnceMap;
use cuzk_groth16::params::ParameterFiles;
use cuzk_memory::{Checkpoint, NEVER_STOP};

use crate::Result;

/// The circuits of an engine, each made when it is first asked for.
pub(crate) type Circuits = OnceMap<CircuitId, Circuit>;

/// Compiles the blank circuit of `id`, which takes minutes at 32 GiB.
///
/// # Errors
/// A circuit that does not synthesize, or is too large for the compiled form.
pub fn compile(id: CircuitId) -> Result<Circuit> {
    compile_while(id, &NEVER_STOP)
}

/// Compiles the blank circuit of `id`. It asks `checkpoint` before every few thousand rows.
///
/// # Errors
/// As [`compile`], and [`Error::Stopped`](crate::Error::Stopped).
pub fn compile_while(id: CircuitId, checkpoint: &Checkpoint<'_>) -> Result<Circuit> {
    let program = blank::compile_while(id, checkpoint)?;
    written_in_parts(id, Circuit::new(id.to_string(), program))
}

/// Tells a circuit how its witnesses are written.
fn written_in_parts(id: CircuitId, circuit: Circuit) -> Result<Circuit> {
    Ok(match variables_apart(id)? {
        Some(variables) => circuit.written_in_parts(variables),
        None => circuit,
    })
}

/// The circuit of `id`, mapped from the folder `cache`.
///
/// # Errors
/// A file that is missing or cannot be used, and as [`cache_path`].
pub fn open(id: CircuitId, cache: &Path) -> Result<Circuit> {
    let circuit = Circuit::open(&id.to_string(), &cache_path(id, cache)?)?;
    written_in_parts(id, circuit)
}

/// The circuit of `id`, mapped from the folder `cache` if it is there, else compiled and
/// put there for the next start, as [`Circuit::cached`] says.
///
/// # Errors
/// As [`compile`].
pub fn cached(id: CircuitId, cache: &Path) -> Result<Circuit> {
    cached_while(id, cache, &NEVER_STOP)
}

/// The circuit of `id`, as [`cached`] gives it. Compiling asks `checkpoint` before every
/// few thousand rows.
///
/// # Errors
/// As [`compile`], and [`Error::Stopped`](crate::Error::Stopped): nothing is written then.
pub fn cached_while(id: CircuitId, cache: &Path, checkpoint: &Checkpoint<'_>) -> Result<Circuit> {
    let path = cache_path(id, cache)?;
    let compile = || Ok::<_, crate::Error>(blank::compile_while(id, checkpoint)?);
    written_in_parts(id, Circuit::cached(&id.to_string(), &path, compile)?)
}

/// Where [`cached`] keeps the circuit of `id`: beside its parameters, under their name,
/// which changes whenever the circuit does.
///
/// # Errors
/// [`Error::Filecoin`](crate::Error::Filecoin) when the proofs library cannot name it.
pub fn cache_path(id: CircuitId, cache: &Path) -> Result<PathBuf> {
    Ok(cache.join(id.circuit_file_name()?))
}

/// The files of the parameters of `id`, as the proofs libraries name them.
///
/// # Errors
/// [`Error::Filecoin`](crate::Error::Filecoin) when the proofs library cannot name them.
pub fn parameter_files(id: CircuitId) -> Result<ParameterFiles> {
    Ok(ParameterFiles {
        params: id.params_file_name()?,
        vk: id.vk_file_name()?,
    })
}
