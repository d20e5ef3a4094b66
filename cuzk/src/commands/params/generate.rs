//! `cuzk params generate`: insecure test parameters.
//!
//! The invariant: parameters that exist are never replaced. A seed that is asked for is the
//! seed of the parameters afterwards, or the command fails.

use std::path::Path;
use std::time::Instant;

use clap::Args;
use cuzk_core::circuits;
use cuzk_filecoin::CircuitId;
use cuzk_files::check_folder;
use cuzk_groth16::params::{
    GenerateOptions, MappedParams, Outcome, ParamCache, ParameterFiles, ToxicWaste,
};
use cuzk_memory::{Cancellation, Checkpoint};
use indicatif::HumanBytes;
use serde::Serialize;

use super::check_cache;
use super::state::SEED;
use crate::circuit_args::CircuitArgs;
use crate::commands::Context;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::memory::peak_rss_bytes;
use crate::output::{self, shown};
use crate::progress::{Doing, Meter};

#[derive(Debug, Args)]
pub(crate) struct ParamsGenerate {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The seed from which the toxic waste is drawn; the same seed gives the same
    /// parameters. Without it the seed is 0, and existing parameters of any seed are left as
    /// they are. With it, existing parameters of another seed are an error.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Needed for 512MiB and larger, because real parameters have the same name.
    #[arg(long, alias = "i-know-this-is-insecure")]
    pub(crate) i_know_these_are_insecure: bool,
}

/// The parameters that are wanted.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The seed that they must be of; any if there is none.
    pub(crate) seed: Option<u64>,
    /// True if the names of real parameters may stand for insecure ones.
    pub(crate) acknowledge_insecure: bool,
    /// Stops the work.
    pub(crate) stop: Cancellation,
}

#[derive(Debug, Serialize)]
struct GenerateReport {
    circuit: String,
    params: String,
    vk: String,
    params_bytes: u64,
    /// True if this command made them.
    made: bool,
    /// The seed that they were made from; unknown if they existed before and no seed was
    /// asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    generate_s: f64,
    peak_rss_bytes: Option<u64>,
}

pub(super) fn run(context: &Context, args: &ParamsGenerate) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    let wanted = Wanted {
        seed: args.seed,
        acknowledge_insecure: args.i_know_these_are_insecure,
        stop: Cancellation::default(),
    };
    let outcome = make(context, id, wanted, &Interrupt::watch()?)?;
    let made = outcome == Outcome::Made;
    let generate_s = started.elapsed().as_secs_f64();
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let files = circuits::parameter_files(id)?;
    let params = cache.params_path(&files);
    let metadata = std::fs::metadata(&params).map_err(|error| Failure::file(&params, &error))?;
    let report = GenerateReport {
        circuit: id.to_string(),
        params: shown(&params),
        vk: shown(&cache.vk_path(&files)),
        params_bytes: metadata.len(),
        made,
        seed: args.seed.or(made.then_some(SEED)),
        generate_s,
        peak_rss_bytes: peak_rss_bytes(),
    };
    output::print(context.json, &report, |report| {
        let how = match outcome {
            Outcome::Made => format!("in {:.1} s", report.generate_s),
            Outcome::AlreadyThere => "already there".to_owned(),
            Outcome::KeyRestored => "already there, but for the key".to_owned(),
        };
        let bytes = HumanBytes(report.params_bytes);
        format!("{}\n{}\n{bytes}, {how}", report.params, report.vk)
    })
}

/// Makes the parameters unless they are there, or a signal comes.
fn make(
    context: &Context,
    id: CircuitId,
    wanted: Wanted,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    let folder = context.config.srs.param_cache.clone();
    let left = move || left_of(id, &folder);
    let (context, stop) = (context.clone(), wanted.stop.clone());
    interrupt.stops("making parameters", left, &stop, move || {
        ensure_wanted(&context, id, &wanted)
    })?
}

/// Describes the files of a circuit that are in the parameter cache after a signal.
pub(crate) fn left_of(id: CircuitId, folder: &Path) -> String {
    let files = circuits::parameter_files(id);
    if files.is_ok_and(|files| ParamCache::new(folder).has(&files)) {
        return format!("{id}: its test parameters are in {}", shown(folder));
    }
    let circuit = circuits::cache_path(id, folder);
    match circuit.ok().filter(|path| path.exists()) {
        Some(path) => format!(
            "{id}: its test parameters are not made; only the compiled circuit is kept, {}",
            shown(&path)
        ),
        None => format!("{id}: its test parameters are not made, and nothing is kept"),
    }
}

/// Makes test parameters for `id` in the parameter cache, unless there are some or a signal comes.
/// For commands that answer no signals by themselves until then.
pub(crate) fn ensure_parameters(context: &Context, id: CircuitId) -> Result<Outcome, Failure> {
    make(
        context,
        id,
        Wanted::default(),
        &Interrupt::watch_for_a_time()?,
    )
}

/// Makes test parameters for `id` in the parameter cache, unless they are there.
pub(crate) fn ensure_wanted(
    context: &Context,
    id: CircuitId,
    wanted: &Wanted,
) -> Result<Outcome, Failure> {
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let files = circuits::parameter_files(id)?;
    if cache.has(&files) {
        check_present(&cache, &files, wanted.seed)?;
        return Ok(Outcome::AlreadyThere);
    }
    // These checks come before the circuit, which takes long to compile.
    let folder = &context.config.srs.param_cache;
    check_cache(folder)?;
    if folder.is_dir() {
        check_folder(folder).map_err(|error| Failure::file(folder, &error))?;
    }
    if id.sector_size.is_for_networks() && !wanted.acknowledge_insecure {
        return Err(Failure::input(format!(
            "test parameters are insecure, and sectors of {} are in use on networks; fetch the \
             network's parameters, or give --i-know-these-are-insecure",
            id.sector_size
        )));
    }
    output::say(format_args!(
        "warning: making INSECURE test parameters for {id} in {}: anyone who knows the seed can \
         forge proofs",
        shown(&context.config.srs.param_cache)
    ));
    let outcome = generate(context, (id, &cache, &files), wanted)?;
    if outcome != Outcome::Made {
        // Another process made them meanwhile, or only the key was lost.
        check_present(&cache, &files, wanted.seed)?;
    }
    Ok(outcome)
}

fn generate(
    context: &Context,
    (id, cache, files): (CircuitId, &ParamCache, &ParameterFiles),
    wanted: &Wanted,
) -> Result<Outcome, Failure> {
    let checkpoint = Checkpoint::new(&wanted.stop);
    let doing = Doing::begin("compiling the circuit");
    let circuit = circuits::cached_while(id, &context.config.srs.param_cache, &checkpoint)?;
    drop(doing);
    let options = GenerateOptions {
        seed: wanted.seed.unwrap_or(SEED),
        isa: context.config.cpu.isa,
    };
    let mut meter = Meter::begin("making test parameters");
    let pool = context.config.synthesis.pool()?;
    let result = pool.install(|| {
        let program = circuit.program();
        cache.ensure_generated_while(files, program, options, &checkpoint, |done, total| {
            meter.set(done, total);
        })
    });
    drop(meter);
    Ok(result.map_err(cuzk_core::Error::from)?)
}

/// Checks that parameters and key belong together, and that they are of the seed that is
/// asked for. They are not checked against the circuit, which may take long to compile.
fn check_present(
    cache: &ParamCache,
    files: &ParameterFiles,
    seed: Option<u64>,
) -> Result<(), Failure> {
    let (params, vk) = (cache.params_path(files), cache.vk_path(files));
    let mapped = MappedParams::open(&params).map_err(cuzk_core::Error::from)?;
    mapped.check_key(&vk).map_err(cuzk_core::Error::from)?;
    let Some(seed) = seed else { return Ok(()) };
    if ToxicWaste::from_seed(seed).is_of(mapped.vk()) {
        return Ok(());
    }
    let (params, vk) = (shown(&params), shown(&vk));
    Err(Failure::input(format!(
        "{params} is there, and not from seed {seed}; leave --seed out to use it as it is, or \
         move it and {vk} away to make parameters from that seed"
    )))
}
