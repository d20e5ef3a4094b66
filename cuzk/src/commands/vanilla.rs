//! `cuzk vanilla --kind KIND --sector-size SIZE --out FILE`

use std::time::Instant;

use serde::Serialize;

use super::{Context, write};
use crate::args::Vanilla;
use crate::failure::Failure;
use crate::memory::peak_rss_bytes;
use crate::{output, progress};

#[derive(Debug, Serialize)]
struct VanillaReport {
    circuit: String,
    request: String,
    request_bytes: usize,
    seal_s: f64,
    peak_rss_bytes: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &Vanilla) -> Result<(), Failure> {
    let id = args.circuit.id();
    let spinner = progress::spinner("sealing a sector");
    let started = Instant::now();
    let request = cuzk_core::vanilla::make(id.kind, id.sector_size, args.seed)?;
    let seal_s = started.elapsed().as_secs_f64();
    spinner.finish_and_clear();
    let json = request.to_json();
    write(&args.out, &json)?;
    let report = VanillaReport {
        circuit: id.to_string(),
        request: args.out.display().to_string(),
        request_bytes: json.len(),
        seal_s,
        peak_rss_bytes: peak_rss_bytes(),
    };
    output::print(context.json, &report, |report| {
        format!(
            "{}: {} request, sealed in {:.1} s",
            report.request, report.circuit, report.seal_s
        )
    })
}
