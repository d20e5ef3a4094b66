//! `cuzk params`

mod fetch;
mod generate;
mod generate_srs;
mod list;
mod verify;

use std::time::Instant;

use bytesize::ByteSize;
use clap::{Args, Subcommand};
use cuzk_core::circuits;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::params::{LIMIT_BYTES, MappedParams, ParamCache, WrittenMultiples};
use indicatif::HumanBytes;
use serde::Serialize;

pub(crate) use self::generate::{Wanted, ensure_parameters, ensure_wanted};
pub(crate) use self::list::{State, state};

use super::Context;
use crate::circuit_args::CircuitArgs;
use crate::failure::Failure;
use crate::memory::peak_rss_bytes;
use crate::output;
use crate::progress::Doing;

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
    Prepare(ParamsPrepare),
}

#[derive(Debug, Args)]
pub(crate) struct ParamsPrepare {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The largest size of the file, on the disk and in memory. A smaller size keeps
    /// fewer multiples.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(LIMIT_BYTES), value_parser = size)]
    pub(crate) limit: ByteSize,
}

/// Parses a size: a number of bytes, or a number with a unit.
fn size(text: &str) -> Result<ByteSize, String> {
    let size = text
        .parse()
        .ok()
        .filter(|size: &ByteSize| size.as_u64() > 0);
    // The parser's own error speaks of its internals.
    size.ok_or_else(|| "expected a size such as 2GiB, or a number of bytes".to_owned())
}

pub(crate) fn run(context: &Context, command: &Params) -> Result<(), Failure> {
    match command {
        Params::Fetch(args) => fetch::run(context, args),
        Params::List(args) => list::run(context, args),
        Params::Generate(args) => generate::run(context, args),
        Params::GenerateSrs(args) => generate_srs::run(context, args),
        Params::Verify(args) => verify::run(context, args),
        Params::Prepare(args) => prepare(context, args),
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

#[derive(Debug, Serialize)]
struct PrepareReport {
    circuit: String,
    multiples: String,
    file_bytes: u64,
    /// Multiples of each point of H, L, A and B in G2.
    rows: [usize; 4],
    prepare_s: f64,
    peak_rss_bytes: Option<u64>,
}

fn prepare(context: &Context, args: &ParamsPrepare) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    check_there(context, id)?;
    let doing = Doing::begin("getting the compiled circuit");
    let written = write_multiples(context, id, args.limit.as_u64(), &doing);
    drop(doing);
    let written = written?;
    let report = PrepareReport {
        circuit: id.to_string(),
        multiples: written.path.display().to_string(),
        file_bytes: written.file_bytes,
        rows: written.rows,
        prepare_s: started.elapsed().as_secs_f64(),
        peak_rss_bytes: peak_rss_bytes(),
    };
    output::print(context.json, &report, |report| {
        let of_what = match report.rows {
            [0, ..] => " of the points of L, A and B; those of H do not fit",
            _ => "",
        };
        format!(
            "{}\n{}{of_what}, in {:.1} s",
            report.multiples,
            HumanBytes(report.file_bytes),
            report.prepare_s
        )
    })
}

fn write_multiples(
    context: &Context,
    id: CircuitId,
    limit_bytes: u64,
    doing: &Doing,
) -> Result<WrittenMultiples, Failure> {
    let param_cache = &context.config.srs.param_cache;
    let circuit = circuits::cached(id, param_cache)?;
    let loaded = ParamCache::new(param_cache)
        .load(&circuits::parameter_files(id)?, &circuit.query_lengths())
        .map_err(cuzk_core::Error::from)?;
    let (pool, isa) = (context.config.synthesis.pool()?, context.config.cpu.isa);
    doing.now("computing multiples of the points");
    let written = pool.install(|| {
        cuzk_groth16::params::write_multiples(
            loaded.mapped(),
            circuit.program(),
            circuit.densities(),
            isa.into(),
            (pool.current_num_threads(), limit_bytes),
            |done| doing.now(&format!("multiples of {done} of 4 queries are computed")),
        )
    });
    Ok(written.map_err(cuzk_core::Error::from)?)
}
