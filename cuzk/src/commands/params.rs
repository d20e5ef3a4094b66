//! `cuzk params`

mod fetch;
mod list;

use std::time::Instant;

use bytesize::ByteSize;
use clap::{Args, Subcommand};
use cuzk_core::circuits;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::params::{
    GenerateOptions, LIMIT_BYTES, MappedParams, Outcome, ParamCache, WrittenMultiples, check_points,
};
use indicatif::ProgressBar;
use serde::Serialize;

use super::Context;
use crate::circuit_args::CircuitArgs;
use crate::failure::Failure;
use crate::memory::peak_rss_bytes;
use crate::{output, progress};

#[derive(Debug, Subcommand)]
pub(crate) enum Params {
    /// Fetch the parameters of kinds of proof, and check their digests.
    Fetch(fetch::ParamsFetch),
    /// List the parameters in the cache: for which circuit, and if they were verified.
    List(list::ParamsList),
    /// Make insecure test parameters, under the names the proofs libraries use.
    Generate(ParamsGenerate),
    /// Check every point of the parameters in the cache, the key and both queries of B
    /// against each other, and the lengths against the circuit.
    Verify(ParamsVerify),
    /// Compute multiples of the parameters' points and keep them beside the
    /// parameters, so that proofs on the CPU take less time. Worth it for PoSts.
    Prepare(ParamsPrepare),
}

#[derive(Debug, Args)]
pub(crate) struct ParamsGenerate {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The seed from which the toxic waste is drawn; the same seed gives the
    /// same parameters.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Needed for 512MiB and larger, because real parameters have the same name.
    #[arg(long)]
    pub(crate) i_know_these_are_insecure: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ParamsVerify {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
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

#[derive(Debug, Serialize)]
struct GenerateReport {
    circuit: String,
    params: String,
    vk: String,
    params_bytes: u64,
    /// True if this command made them.
    made: bool,
    /// The seed that they were made from; unknown if they existed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    generate_s: f64,
    peak_rss_bytes: Option<u64>,
}

pub(crate) fn run(context: &Context, command: &Params) -> Result<(), Failure> {
    match command {
        Params::Fetch(args) => fetch::run(context, args),
        Params::List(args) => list::run(context, args),
        Params::Generate(args) => generate(context, args),
        Params::Verify(args) => verify(context, args),
        Params::Prepare(args) => prepare(context, args),
    }
}

#[derive(Debug, Serialize)]
struct VerifyReport {
    circuit: String,
    params: String,
    valid: bool,
    points: usize,
    verify_s: f64,
}

fn verify(context: &Context, args: &ParamsVerify) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    let param_cache = &context.config.srs.param_cache;
    check_there(context, id)?;
    let spinner = progress::spinner("getting the compiled circuit");
    let lengths = circuits::cached(id, param_cache)?.query_lengths();
    let loaded = ParamCache::new(param_cache)
        .load(&circuits::parameter_files(id)?, &lengths)
        .map_err(cuzk_core::Error::from)?;
    let pool = context.config.synthesis.pool()?;
    let checked = pool.install(|| {
        check_points(loaded.mapped(), context.config.cpu.isa, |query| {
            spinner.set_message(format!("checking {query}"));
        })
    });
    spinner.finish_and_clear();
    checked.map_err(cuzk_core::Error::from)?;
    let report = VerifyReport {
        circuit: id.to_string(),
        params: loaded.mapped().path().display().to_string(),
        valid: true,
        points: lengths.ic + lengths.h + lengths.l + lengths.a + 2 * lengths.b,
        verify_s: started.elapsed().as_secs_f64(),
    };
    output::print(context.json, &report, |report| {
        format!(
            "{}\nvalid: {} points in {:.1} s",
            report.params, report.points, report.verify_s
        )
    })
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
    let spinner = progress::spinner("getting the compiled circuit");
    let written = write_multiples(context, id, args.limit.as_u64(), &spinner);
    spinner.finish_and_clear();
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
        format!(
            "{}\n{} bytes in {:.1} s",
            report.multiples, report.file_bytes, report.prepare_s
        )
    })
}

fn write_multiples(
    context: &Context,
    id: CircuitId,
    limit_bytes: u64,
    spinner: &ProgressBar,
) -> Result<WrittenMultiples, Failure> {
    let param_cache = &context.config.srs.param_cache;
    let circuit = circuits::cached(id, param_cache)?;
    let loaded = ParamCache::new(param_cache)
        .load(&circuits::parameter_files(id)?, &circuit.query_lengths())
        .map_err(cuzk_core::Error::from)?;
    let (pool, isa) = (context.config.synthesis.pool()?, context.config.cpu.isa);
    spinner.set_message("computing multiples of the points");
    let written = pool.install(|| {
        cuzk_groth16::params::write_multiples(
            loaded.mapped(),
            circuit.program(),
            circuit.densities(),
            isa.into(),
            (pool.current_num_threads(), limit_bytes),
            |done| spinner.set_message(format!("multiples of {done} of 4 queries")),
        )
    });
    Ok(written.map_err(cuzk_core::Error::from)?)
}

fn generate(context: &Context, args: &ParamsGenerate) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    let outcome = ensure_parameters(context, id, args.seed, args.i_know_these_are_insecure)?;
    let made = outcome == Outcome::Made;
    let generate_s = started.elapsed().as_secs_f64();
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let files = circuits::parameter_files(id)?;
    let params = cache.params_path(&files);
    let metadata = std::fs::metadata(&params).map_err(|error| Failure::file(&params, &error))?;
    let report = GenerateReport {
        circuit: id.to_string(),
        params: params.display().to_string(),
        vk: cache.vk_path(&files).display().to_string(),
        params_bytes: metadata.len(),
        made,
        seed: made.then_some(args.seed),
        generate_s,
        peak_rss_bytes: peak_rss_bytes(),
    };
    output::print(context.json, &report, |report| {
        let how = match outcome {
            Outcome::Made => format!("in {:.1} s", report.generate_s),
            Outcome::AlreadyThere => "already there".to_owned(),
            Outcome::KeyRestored => "already there, but for the key".to_owned(),
        };
        format!(
            "{}\n{}\n{} bytes, {how}",
            report.params, report.vk, report.params_bytes
        )
    })
}

/// Makes test parameters for `id` in the parameter cache, unless they are
/// there.
pub(crate) fn ensure_parameters(
    context: &Context,
    id: CircuitId,
    seed: u64,
    acknowledge_insecure: bool,
) -> Result<Outcome, Failure> {
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let files = circuits::parameter_files(id)?;
    if cache.has(&files) {
        // They are not checked against the circuit, which may take long to compile.
        let there = MappedParams::open(&cache.params_path(&files))
            .and_then(|params| params.check_key(&cache.vk_path(&files)));
        there.map_err(cuzk_core::Error::from)?;
        return Ok(Outcome::AlreadyThere);
    }
    // The check comes before the circuit, which takes long to compile.
    if id.sector_size.is_for_networks() && !acknowledge_insecure {
        return Err(Failure::input(format!(
            "test parameters are insecure, and sectors of {} are in use on networks: fetch the \
             network's parameters, or give --i-know-these-are-insecure",
            id.sector_size
        )));
    }
    let options = GenerateOptions {
        seed,
        isa: context.config.cpu.isa,
    };
    output::say(format_args!(
        "warning: making INSECURE test parameters for {id} in {}: anyone who knows the seed can \
         forge proofs",
        context.config.srs.param_cache.display()
    ));
    let spinner = progress::spinner("compiling the circuit");
    let circuit = circuits::cached(id, &context.config.srs.param_cache)?;
    spinner.finish_and_clear();
    let bar = progress::bar("making test parameters");
    let pool = context.config.synthesis.pool()?;
    let result = pool.install(|| {
        let program = circuit.program();
        cache.ensure_generated(&files, program, options, |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })
    });
    bar.finish_and_clear();
    Ok(result.map_err(cuzk_core::Error::from)?)
}
