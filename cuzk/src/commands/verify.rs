//! `cuzk verify --request FILE --proof PROOF`

use std::path::PathBuf;

use clap::Args;
use cuzk_core::circuits;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::verify::{Verdict, verify};
use cuzk_filecoin::{decode, reference};
use cuzk_groth16::params::ParamCache;
use serde::Serialize;

use super::{Context, PROOF_MAX_BYTES, read, read_request};
use crate::failure::Failure;
use crate::output::{self, shown};

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The request that was proved.
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The proof, as raw bytes.
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
    let job = decode(&request)?;
    let cache = ParamCache::new(&context.config.srs.param_cache);
    let key = cache
        .verifying_key(&circuits::parameter_files(job.circuit())?)
        .map_err(cuzk_core::Error::from)?;
    let mut verdict = verify(&*job, &proof, &key)?;
    if args.reference && verdict.is_valid() {
        verdict = reference::verify(&request, &proof)?;
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
            let message = format!(
                "{}: the proof is not valid: {problem}; make it again, or name the request that \
                 it is of",
                shown(&args.proof)
            );
            Err(Failure::new(ErrorCode::NotValid, message).reported())
        }
    }
}
