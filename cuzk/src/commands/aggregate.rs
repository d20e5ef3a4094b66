//! `cuzk aggregate`: proofs of replication, united in one.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use cuzk_core::Config;
use cuzk_core::aggregate::{AggregationKeys, VerifiedAggregate, aggregate_request};
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::verify::Verdict;
use cuzk_filecoin::{AggregateRequest, ProofRequest, reference};
use indicatif::HumanBytes;
use serde::Serialize;

use super::{Context, PROOF_MAX_BYTES, REQUEST_MAX_BYTES, read, read_request};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, shown};
use crate::output_path::OutputPath;
use crate::progress::Doing;

#[derive(Clone, Debug, Args)]
pub(crate) struct Aggregate {
    /// A file that lists the sectors with their proofs (see docs/aggregation.md).
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "porep",
        conflicts_with = "porep"
    )]
    pub(crate) request: Option<PathBuf>,
    /// The request of a PoRep that was proved. One for each sector, in the order of the
    /// aggregate, each with its --proof.
    #[arg(long, value_name = "FILE")]
    pub(crate) porep: Vec<PathBuf>,
    /// The proof of a PoRep, as raw bytes.
    #[arg(long, value_name = "PROOF", requires = "porep")]
    pub(crate) proof: Vec<PathBuf>,
    /// Aggregate with SnarkPack v1 in place of v2.
    #[arg(long, requires = "porep")]
    pub(crate) first_version: bool,
    /// The aggregate, as raw bytes; - for standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Ask filecoin-proofs-api's own verifier too. It finds the verifying key and the SRS
    /// only through FIL_PROOFS_PARAMETER_CACHE.
    #[arg(long)]
    pub(crate) reference: bool,
}

#[derive(Debug, Serialize)]
struct AggregateReport {
    out: String,
    sectors: usize,
    proofs: usize,
    /// The proofs with those that fill up to a power of two.
    padded_proofs: usize,
    aggregate_bytes: usize,
    verified: bool,
    /// Reading the keys, and verifying proofs and aggregate, included.
    aggregate_s: f64,
}

pub(crate) fn run(context: &Context, args: &Aggregate) -> Result<(), Failure> {
    let out = OutputPath::new(&args.out)?;
    let inputs = args.request.iter().chain(&args.porep).chain(&args.proof);
    OutputPath::check_no_input([&out], inputs)?;
    let interrupt = Interrupt::watch()?;
    let before = out.present();
    let left = || out.left("aggregate", before);
    let (path, config, args) = (out.clone(), context.config.clone(), args.clone());
    let work = move || make(&config, &args, &path);
    let doing = Doing::begin("aggregating proofs");
    // Nothing is written before the end, so the work is left as it is.
    let (report, made) = interrupt.unless_it_comes("aggregating", left, work)??;
    out.write_unless_stopped("aggregate", made.as_bytes().to_vec(), &interrupt)?;
    drop(doing);
    output::print_beside(out.is_stdout(), context.json, &report, |report| {
        format!(
            "{}\n{} proofs of {} sectors in {}, verified, in {:.2} s",
            report.out,
            report.proofs,
            report.sectors,
            HumanBytes(report.aggregate_bytes as u64),
            report.aggregate_s
        )
    })
}

/// Makes the aggregate, and the report about it once it is at `out`.
fn make(
    config: &Config,
    args: &Aggregate,
    out: &OutputPath,
) -> Result<(AggregateReport, VerifiedAggregate), Failure> {
    let request = request(args)?;
    let started = Instant::now();
    let made = config.synthesis.pool()?.install(|| {
        let keys = AggregationKeys::new(config);
        aggregate_request(config, &keys, &request)
    })?;
    let aggregate_s = started.elapsed().as_secs_f64();
    if args.reference {
        check_with_reference(&request, made.as_bytes())?;
    }
    let report = AggregateReport {
        out: shown(out.path()),
        sectors: request.sectors(),
        proofs: request.sectors() * request.partitions(),
        padded_proofs: request.padded_len(),
        aggregate_bytes: made.as_bytes().len(),
        verified: true,
        aggregate_s,
    };
    Ok((report, made))
}

/// Reads the request, or makes it of requests and proofs.
fn request(args: &Aggregate) -> Result<AggregateRequest, Failure> {
    if let Some(path) = &args.request {
        let bytes = read(path, REQUEST_MAX_BYTES)?;
        let request = AggregateRequest::from_json(&bytes);
        return request.map_err(|error| match ProofRequest::from_json(&bytes) {
            Ok(_) => Failure::input(format!(
                "{}: a request of one sector; give it as --porep, with its --proof",
                shown(path)
            )),
            Err(_) => Failure::from(error).of(shown(path)),
        });
    }
    if args.porep.len() != args.proof.len() {
        return Err(Failure::input(format!(
            "{} requests and {} proofs; give each --porep its --proof, in the same order",
            args.porep.len(),
            args.proof.len()
        )));
    }
    let mut aggregate: Option<AggregateRequest> = None;
    for (path, proof) in args.porep.iter().zip(&args.proof) {
        // Requests are large, so one is read at a time.
        let (request, proof) = (read_request(path)?, read(proof, PROOF_MAX_BYTES)?);
        let added = match &mut aggregate {
            Some(aggregate) => aggregate.push(&request, proof),
            None => AggregateRequest::of(&request, proof).map(|made| aggregate = Some(made)),
        };
        added.map_err(|error| Failure::from(error).of(shown(path)))?;
    }
    let aggregate = aggregate.ok_or_else(|| Failure::input("no --porep was given"))?;
    match args.first_version {
        true => Ok(aggregate.with_first_version()?),
        false => Ok(aggregate),
    }
}

fn check_with_reference(request: &AggregateRequest, aggregate: &[u8]) -> Result<(), Failure> {
    match reference::verify_aggregate(request, aggregate)? {
        Verdict::Valid => Ok(()),
        Verdict::Invalid(rejection) => Err(Failure::new(
            ErrorCode::NotValid,
            format!(
                "the aggregate is not valid: {rejection}; FIL_PROOFS_PARAMETER_CACHE must name \
                 the folder that cuzk uses"
            ),
        )),
    }
}
