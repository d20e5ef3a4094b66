//! `cuzk params`

mod fetch;
mod generate;
mod generate_srs;
mod list;
mod prepare;
mod state;
mod verify;

use std::path::Path;

use clap::Subcommand;
use cuzk_core::circuits;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::params::{MappedParams, ParamCache};

pub(crate) use self::generate::{Wanted, ensure_parameters, ensure_wanted, left_of};
pub(crate) use self::state::{Known, State, state};

use super::Context;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Params {
    /// Fetch the parameters of kinds of proof, and check their digests.
    Fetch(fetch::ParamsFetch),
    /// List the parameters in the cache: for which circuit, and if they were verified.
    List(list::ParamsList),
    /// Make insecure test parameters, under the names the proofs libraries use.
    Generate(generate::ParamsGenerate),
    /// Make an insecure inner-product SRS for tests of `cuzk aggregate`.
    GenerateSrs(generate_srs::ParamsGenerateSrs),
    /// Check every point of the parameters in the cache by itself, then all points together
    /// against the circuit.
    Verify(verify::ParamsVerify),
    /// Compute multiples of the parameters' points and keep them beside the
    /// parameters, so that proofs on the CPU take less time. Worth it for PoSts.
    Prepare(prepare::ParamsPrepare),
}

/// Checks that no file is where the folder of the parameters is, or will be.
pub(crate) fn check_cache(folder: &Path) -> Result<(), Failure> {
    let checked = ParamCache::new(folder).check_is_folder();
    Ok(checked.map_err(cuzk_core::Error::from)?)
}

pub(crate) fn run(context: &Context, command: &Params) -> Result<(), Failure> {
    match command {
        Params::Fetch(args) => fetch::run(context, args),
        Params::List(args) => list::run(context, args),
        Params::Generate(args) => generate::run(context, args),
        Params::GenerateSrs(args) => generate_srs::run(context, args),
        Params::Verify(args) => verify::run(context, args),
        Params::Prepare(args) => prepare::run(context, args),
    }
}

/// Checks that the parameters exist. The caller does this before it gets the circuit. A
/// circuit may take a minute to compile, and does not belong into a folder without its
/// parameters.
fn check_there(context: &Context, id: CircuitId) -> Result<(), Failure> {
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let params = MappedParams::open(&cache.params_path(&circuits::parameter_files(id)?));
    params.map_err(cuzk_core::Error::from)?;
    Ok(())
}
