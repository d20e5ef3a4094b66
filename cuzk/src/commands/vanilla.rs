//! `cuzk vanilla --kind KIND --sector-size SIZE --out FILE`

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use cuzk_filecoin::{ProofKind, vanilla};
use serde::Serialize;

use super::Context;
use crate::circuit_args::CircuitArgs;
use crate::failure::Failure;
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
    let sparse = id.sector_size > vanilla::LARGEST_SEALED || args.sectors.is_some();
    let (sector, what) = if sparse {
        ("sparse", "writing down a sparse sector")
    } else {
        ("sealed", "sealing a sector")
    };
    let pool = context.config.synthesis.pool()?;
    let doing = Doing::begin(what);
    let started = Instant::now();
    let request = pool.install(|| match args.sectors {
        None if args.non_interactive => vanilla::make_non_interactive(id.sector_size, args.seed),
        Some(sectors) => vanilla::make_window_post(id.sector_size, sectors, args.seed),
        None => vanilla::make(id.kind, id.sector_size, args.seed),
    })?;
    let make_s = started.elapsed().as_secs_f64();
    doing.now("writing the request");
    let json = request.to_json();
    out.write(&json)?;
    drop(doing);
    let report = VanillaReport {
        circuit: id.to_string(),
        request: args.out.display().to_string(),
        request_bytes: json.len(),
        sector,
        make_s,
        peak_rss_bytes: peak_rss_bytes(),
    };
    output::print_beside(out.is_stdout(), context.json, &report, |report| {
        format!(
            "{}: {} request over a {} sector, {} bytes, made in {:.1} s",
            report.request, report.circuit, report.sector, report.request_bytes, report.make_s
        )
    })
}
