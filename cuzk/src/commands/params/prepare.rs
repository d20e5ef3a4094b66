//! `cuzk params prepare`: multiples of the parameters' points.
//!
//! The invariant: a signal leaves the multiples whole or not at all, and the command says which.

use std::path::Path;
use std::time::Instant;

use bytesize::ByteSize;
use clap::Args;
use cuzk_core::circuits;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::params::{LIMIT_BYTES, ParamCache, WrittenMultiples};
use cuzk_kernels::Context as KernelContext;
use cuzk_memory::{Cancellation, Checkpoint};
use indicatif::HumanBytes;
use serde::Serialize;

use super::check_there;
use crate::circuit_args::CircuitArgs;
use crate::commands::Context;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::memory::peak_rss_bytes;
use crate::output::{self, shown};
use crate::progress::Doing;

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
struct PrepareReport {
    circuit: String,
    multiples: String,
    file_bytes: u64,
    /// Multiples of each point of H, L, A and B in G2.
    rows: [usize; 4],
    prepare_s: f64,
    peak_rss_bytes: Option<u64>,
}

pub(super) fn run(context: &Context, args: &ParamsPrepare) -> Result<(), Failure> {
    let id = args.circuit.id();
    let started = Instant::now();
    check_there(context, id)?;
    let written = make(context, id, args.limit.as_u64())?;
    let report = PrepareReport {
        circuit: id.to_string(),
        multiples: shown(&written.path),
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

/// Makes the multiples, unless a signal comes.
fn make(context: &Context, id: CircuitId, limit_bytes: u64) -> Result<WrittenMultiples, Failure> {
    let interrupt = Interrupt::watch()?;
    let folder = context.config.srs.param_cache.clone();
    let left = move || left_of(id, &folder);
    let stop = Cancellation::default();
    let (context, stopped) = (context.clone(), stop.clone());
    interrupt.stops("making multiples", left, &stop, move || {
        write_multiples(&context, id, limit_bytes, &stopped)
    })?
}

/// Describes the multiples that are there after a signal.
fn left_of(id: CircuitId, folder: &Path) -> String {
    let files = circuits::parameter_files(id).ok();
    let multiples = files.map(|files| ParamCache::new(folder).multiples_path(&files));
    match multiples.filter(|path| path.exists()) {
        Some(path) => format!("{id}: multiples are in {}", shown(&path)),
        None => format!("{id}: its multiples are not made, and nothing of them is kept"),
    }
}

fn write_multiples(
    context: &Context,
    id: CircuitId,
    limit_bytes: u64,
    stop: &Cancellation,
) -> Result<WrittenMultiples, Failure> {
    let doing = Doing::begin("getting the compiled circuit");
    let checkpoint = Checkpoint::new(stop);
    let param_cache = &context.config.srs.param_cache;
    let circuit = circuits::cached_while(id, param_cache, &checkpoint)?;
    let loaded = ParamCache::new(param_cache)
        .load(&circuits::parameter_files(id)?, &circuit.query_lengths())
        .map_err(cuzk_core::Error::from)?;
    let pool = context.config.synthesis.pool()?;
    let kernel = KernelContext {
        checkpoint: &checkpoint,
        ..KernelContext::from(context.config.cpu.isa)
    };
    doing.now("computing multiples of the points");
    let written = pool.install(|| {
        cuzk_groth16::params::write_multiples(
            loaded.mapped(),
            circuit.program(),
            circuit.densities(),
            kernel,
            (pool.current_num_threads(), limit_bytes),
            |done| doing.now(&format!("multiples of {done} of 4 queries are computed")),
        )
    });
    Ok(written.map_err(cuzk_core::Error::from)?)
}
