//! `cuzk verify --request FILE --proof PROOF`

use std::path::PathBuf;

use clap::Args;
use cuzk_core::aggregate::{AggregationKeys, verify_non_interactive};
use cuzk_core::circuits;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::verify::{PARTITION_PROOF_BYTES, Verdict, verify};
use cuzk_filecoin::{ProofRequest, Statement, decode, reference};
use cuzk_groth16::params::ParamCache;
use rayon::ThreadPool;
use serde::Serialize;

use super::{Context, PROOF_MAX_BYTES, read, read_request};
use crate::failure::Failure;
use crate::output::{self, shown};

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The request that was proved.
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The proof, as raw bytes. For a non-interactive PoRep, that of its partitions, or their
    /// aggregate.
    #[arg(long, value_name = "PROOF")]
    pub(crate) proof: PathBuf,
    /// Ask filecoin-proofs-api's own verifier too. It finds the verifying key
    /// only through FIL_PROOFS_PARAMETER_CACHE.
    #[arg(long)]
    pub(crate) reference: bool,
}

#[derive(Debug, Serialize)]
struct VerifyReport {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Verify) -> Result<(), Failure> {
    let request = read_request(&args.request)?;
    let proof = read(&args.proof, PROOF_MAX_BYTES)?;
    let of_file = |error: cuzk_filecoin::Error| Failure::from(error).of(shown(&args.request));
    // Outside of a pool, rayon starts one of its own, and panics where there is no thread for it.
    let pool = context.config.synthesis.pool()?;
    let job = pool.install(|| decode(&request)).map_err(of_file)?;
    let proofs_bytes = job.partitions() * PARTITION_PROOF_BYTES;
    let mut verdict = verdict_on((context, &pool), &request, &*job, &proof)?;
    if args.reference && verdict.is_valid() {
        verdict = pool.install(|| reference::verify(&request, &proof))?;
    }
    let problem = match verdict {
        Verdict::Valid => None,
        Verdict::Invalid(rejection) => Some(rejection.to_string()),
    };
    let report = VerifyReport {
        valid: problem.is_none(),
        problem,
    };
    output::print(context.json, &report, |report| match &report.problem {
        None => "valid".to_owned(),
        Some(problem) => format!("not valid: {problem}"),
    })?;
    match report.problem {
        None => Ok(()),
        Some(problem) => {
            let advice = match request {
                // It is longer than the proofs, and its statement has other sectors, too.
                ProofRequest::PorepC2(_) if proof.len() > proofs_bytes => {
                    "name the proof of this request alone; an aggregate is verified when \
                     `cuzk aggregate` makes it"
                }
                _ => "make it again, or name the request that it is of",
            };
            let message = format!(
                "{}: the proof is not valid: {problem}; {advice}",
                shown(&args.proof)
            );
            Err(Failure::new(ErrorCode::NotValid, message).reported())
        }
    }
}

/// Verifies the proofs of a request's partitions, or the aggregate of a non-interactive PoRep.
fn verdict_on(
    (context, pool): (&Context, &ThreadPool),
    request: &ProofRequest,
    job: &dyn Statement,
    proof: &[u8],
) -> Result<Verdict, Failure> {
    let config = &context.config;
    if let ProofRequest::PorepC2(porep) = request
        && porep.is_non_interactive()
        && proof.len() != job.partitions() * PARTITION_PROOF_BYTES
    {
        let keys = AggregationKeys::new(config);
        let verify = || verify_non_interactive(config, &keys, porep, job, proof);
        return Ok(pool.install(verify)?);
    }
    let key = ParamCache::new(&config.srs.param_cache)
        .verifying_key(&circuits::parameter_files(job.circuit())?)
        .map_err(cuzk_core::Error::from)?;
    Ok(pool.install(|| verify(job, proof, &key))?)
}
