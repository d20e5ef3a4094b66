//! `cuzk vanilla --kind KIND --sector-size SIZE --out FILE`

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use cuzk_filecoin::{ProofKind, ProofRequest, vanilla};
use cuzk_files::Scratch;
use indicatif::HumanBytes;
use serde::Serialize;

use super::Context;
use crate::circuit_args::CircuitArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::memory::peak_rss_bytes;
use crate::output;
use crate::output_path::OutputPath;
use crate::progress::Doing;

#[derive(Debug, Args)]
pub(crate) struct Vanilla {
    #[command(flatten)]
    pub(crate) circuit: CircuitArgs,
    /// The file for the request.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The seed from which the sector's data and randomness are drawn.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Make a WindowPoSt over so many sparse sectors, or as many as a partition has room for.
    /// Without it, large sectors are four.
    #[arg(long, value_name = "N")]
    pub(crate) sectors: Option<usize>,
    /// Make a non-interactive PoRep, of a sector of up to 8MiB.
    #[arg(long, conflicts_with = "sectors")]
    pub(crate) non_interactive: bool,
}

#[derive(Debug, Serialize)]
struct VanillaReport {
    circuit: String,
    request: String,
    request_bytes: usize,
    /// The way in which the sector was made: `sealed` or `sparse`.
    sector: &'static str,
    make_s: f64,
    peak_rss_bytes: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &Vanilla) -> Result<(), Failure> {
    let id = args.circuit.id();
    let out = OutputPath::new(&args.out)?;
    if args.sectors.is_some() && id.kind != ProofKind::WindowPost {
        return Err(Failure::input(
            "--sectors is for a WindowPoSt; leave it out, since other kinds are of one sector",
        ));
    }
    if args.non_interactive && id.kind != ProofKind::Porep {
        return Err(Failure::input(
            "--non-interactive is for a PoRep; leave it out, or give --kind porep",
        ));
    }
    let interrupt = Interrupt::watch()?;
    let is_small = id.sector_size <= vanilla::LARGEST_SEALED;
    let is_sealed = args.non_interactive || (is_small && args.sectors.is_none());
    let what = match is_sealed {
        true => "sealing a sector",
        false => "writing down a sparse sector",
    };
    let doing = Doing::begin(what);
    let started = Instant::now();
    let request = match is_sealed {
        true => seal(context, args, &out, &interrupt)?,
        false => write_down(context, args, &out, &interrupt)?,
    };
    let make_s = started.elapsed().as_secs_f64();
    doing.now("writing the request");
    let json = request.to_json();
    let request_bytes = json.len();
    out.write_unless_stopped("request", json, &interrupt)?;
    drop(doing);
    let report = VanillaReport {
        circuit: id.to_string(),
        request: output::shown(&args.out),
        request_bytes,
        sector: if is_sealed { "sealed" } else { "sparse" },
        make_s,
        peak_rss_bytes: peak_rss_bytes(),
    };
    output::print_beside(out.is_stdout(), context.json, &report, |report| {
        format!(
            "{}: {} request over a {} sector, {}, made in {:.1} s",
            report.request,
            report.circuit,
            report.sector,
            HumanBytes(report.request_bytes as u64),
            report.make_s
        )
    })
}

/// Seals a sector, unless a signal comes. The proofs library cannot be stopped, so the
/// sector's folder is removed while it runs.
fn seal(
    context: &Context,
    args: &Vanilla,
    out: &OutputPath,
    interrupt: &Interrupt,
) -> Result<ProofRequest, Failure> {
    let (id, seed) = (args.circuit.id(), args.seed);
    let pool = context.config.synthesis.pool()?;
    let parent = std::env::temp_dir();
    let folder = Scratch::new().map_err(|error| Failure::file(&parent, &error))?;
    let (path, before) = (folder.path().to_owned(), out.present());
    let is_non_interactive = args.non_interactive;
    let seal = move || {
        pool.install(|| match is_non_interactive {
            true => vanilla::make_non_interactive_in(&path, id.sector_size, seed),
            false => vanilla::make_in(&path, id.kind, id.sector_size, seed),
        })
    };
    let left = || {
        let path = output::shown(folder.path());
        let left = format!("{id}: {}", out.left("request", before));
        match folder.remove() {
            Ok(()) => left,
            Err(error) => format!("{left}; the sector in {path} cannot be removed: {error}"),
        }
    };
    Ok(interrupt.unless_it_comes("sealing", left, seal)??)
}

/// Writes down a sparse sector, of which no file is made, unless a signal comes.
fn write_down(
    context: &Context,
    args: &Vanilla,
    out: &OutputPath,
    interrupt: &Interrupt,
) -> Result<ProofRequest, Failure> {
    let (id, seed, sectors) = (args.circuit.id(), args.seed, args.sectors);
    let pool = context.config.synthesis.pool()?;
    let before = out.present();
    let write = move || {
        pool.install(|| match sectors {
            Some(sectors) => vanilla::make_window_post(id.sector_size, sectors, seed),
            None => vanilla::make_sparse(id.kind, id.sector_size, seed),
        })
    };
    let left = || format!("{id}: {}", out.left("request", before));
    Ok(interrupt.unless_it_comes("writing down", left, write)??)
}
