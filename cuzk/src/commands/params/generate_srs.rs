//! `cuzk params generate-srs`: an insecure inner-product SRS.
//!
//! The invariant: an SRS that exists is never replaced.

use std::time::Instant;

use clap::Args;
use cuzk_core::aggregate::srs_path;
use cuzk_groth16::aggregate::{InnerProductSrs, write_new_srs};
use indicatif::HumanBytes;
use serde::Serialize;

use super::state::SEED;
use crate::commands::Context;
use crate::failure::{Failure, failed};
use crate::output::{self, shown};

#[derive(Debug, Args)]
pub(crate) struct ParamsGenerateSrs {
    /// The most proofs of an aggregate, a power of two. The file has 576 bytes for each.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) proofs: u16,
    /// The seed from which the secrets are drawn; the same seed gives the same SRS.
    #[arg(long, default_value_t = SEED)]
    pub(crate) seed: u64,
    /// Needed, because the networks' SRS has the same name.
    #[arg(long, alias = "i-know-these-are-insecure")]
    pub(crate) i_know_this_is_insecure: bool,
}

#[derive(Debug, Serialize)]
struct SrsReport {
    srs: String,
    file_bytes: u64,
    proofs: u16,
    seed: u64,
    generate_s: f64,
}

pub(super) fn run(context: &Context, args: &ParamsGenerateSrs) -> Result<(), Failure> {
    let path = srs_path(&context.config.srs.param_cache);
    super::check_cache(&context.config.srs.param_cache)?;
    if !args.i_know_this_is_insecure {
        return Err(Failure::input(
            "an SRS made here is insecure, and the networks' SRS has the same name; fetch that \
             with `cuzk params fetch --srs`, or give --i-know-this-is-insecure",
        ));
    }
    if args.proofs < 2 || !args.proofs.is_power_of_two() {
        return Err(Failure::input(format!(
            "--proofs: expected a power of two from 2 on, got {}; take the next one",
            args.proofs
        )));
    }
    if path.exists() {
        return Err(Failure::input(format!(
            "{} is there, and is never replaced; move it away to make another one",
            shown(&path)
        )));
    }
    output::say(format_args!(
        "warning: making an INSECURE inner-product SRS: anyone who knows the seed can forge \
         aggregates"
    ));
    let started = Instant::now();
    let pool = context.config.synthesis.pool()?;
    let srs = pool.install(|| InnerProductSrs::insecure(args.seed, args.proofs.into()));
    let written = write_new_srs(&srs.map_err(failed)?, &path);
    written.map_err(|error| Failure::from(cuzk_core::Error::Srs(error)))?;
    let metadata = std::fs::metadata(&path).map_err(|error| Failure::file(&path, &error))?;
    let report = SrsReport {
        srs: shown(&path),
        file_bytes: metadata.len(),
        proofs: args.proofs,
        seed: args.seed,
        generate_s: started.elapsed().as_secs_f64(),
    };
    output::print(context.json, &report, |report| {
        let bytes = HumanBytes(report.file_bytes);
        format!("{}\n{bytes}, in {:.1} s", report.srs, report.generate_s)
    })
}
