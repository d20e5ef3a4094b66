//! `cuzk submit --request FILE --out PROOF`: a daemon proves, and the command waits.
//!
//! The invariant: a call that is repeated sends the same request, so that the daemon attaches
//! it to the job that it has.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use cuzk_core::Priority;
use cuzk_server::client::{Client, check_size, read_request};
use cuzk_server::wire::v1::await_proof_response::Status;
use cuzk_server::wire::v1::{self, AwaitProofResponse, SubmitProofRequest};
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::time::sleep;

use super::client::{Daemon, wait};
use super::waiting::{Again, LOOK, show_progress};
use super::{Context, REQUEST_MAX_BYTES, job_end, read};
use crate::failure::Failure;
use crate::output;
use crate::output_path::OutputPath;
use crate::progress;

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    daemon: Daemon,
    /// A request, a bare C1 output or a C1 wrapper, as JSON.
    #[arg(long, value_name = "FILE")]
    request: PathBuf,
    /// The file for the proof, as the raw bytes that the chain expects.
    #[arg(
        long,
        value_name = "PROOF",
        required_unless_present = "no_wait",
        conflicts_with = "no_wait"
    )]
    out: Option<PathBuf>,
    /// Print the name of the job and do not wait for the proof.
    #[arg(long)]
    no_wait: bool,
    /// The name of the request, for people and logs. By default it is that in the file, or
    /// made from the sector or the content of the file.
    #[arg(long)]
    id: Option<String>,
    /// The priority: critical, high, normal or low. By default each kind has its own.
    #[arg(long)]
    priority: Option<Priority>,
    /// Seconds for which a daemon that restarts, or has no room, is called again.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    retry_s: u64,
}

/// A job that was accepted.
#[derive(Debug, Serialize)]
struct Accepted {
    job_id: String,
    queue_position: u32,
}

pub(crate) fn run(context: &Context, args: &Submit) -> Result<(), Failure> {
    let out = args.out.as_deref().map(OutputPath::new).transpose()?;
    OutputPath::check_no_input(&out, [&args.request])?;
    let request = request(args)?;
    let Some(out) = out else {
        return enqueue(context, args, request);
    };
    let left = "the job goes on unless it is a WinningPoSt; give the command again for its proof";
    let spinner = progress::spinner("waiting for the proof");
    let mut again = Again::new(args.retry_s, &spinner);
    let end = wait(left, async {
        let client = args.daemon.connect_again(&mut again).await?;
        tokio::select! {
            end = prove(&client, &request, again) => end,
            never = show_progress(&client, &request.request_id, &spinner) => match never {},
        }
    });
    spinner.finish_and_clear();
    job_end::finish(context.json, Some(&args.request), &out, &end?)
}

fn request(args: &Submit) -> Result<SubmitProofRequest, Failure> {
    let bytes = read(&args.request, REQUEST_MAX_BYTES)?;
    let of_file = |failure: Failure| failure.of(output::shown(&args.request));
    let mut request = read_request(bytes).map_err(|error| of_file(error.into()))?;
    // Before a daemon is waited for.
    check_size(&request).map_err(|error| of_file(error.into()))?;
    if let Some(id) = &args.id {
        request.request_id.clone_from(id);
    }
    if let Some(priority) = args.priority {
        request.set_priority(match priority {
            Priority::Low => v1::Priority::Low,
            Priority::Normal => v1::Priority::Normal,
            Priority::High => v1::Priority::High,
            Priority::Critical => v1::Priority::Critical,
        });
    }
    Ok(request)
}

fn enqueue(context: &Context, args: &Submit, request: SubmitProofRequest) -> Result<(), Failure> {
    let left = "the daemon may have the job; give the command again";
    let mut again = Again::new(args.retry_s, &ProgressBar::hidden());
    let reply = wait(left, async {
        let client = args.daemon.connect_again(&mut again).await?;
        loop {
            let began = Instant::now();
            match client.submit(request.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(error) => again.pause(began, error).await?,
            }
        }
    })?;
    let accepted = Accepted {
        job_id: reply.job_id,
        queue_position: reply.queue_position,
    };
    output::print(context.json, &accepted, |accepted| accepted.job_id.clone())
}

/// Calls until the job has ended. A clone of the request shares its bytes.
async fn prove(
    client: &Client,
    request: &SubmitProofRequest,
    mut again: Again,
) -> Result<AwaitProofResponse, Failure> {
    loop {
        let began = Instant::now();
        match client.prove(request.clone()).await {
            Ok(end) if end.status() == Status::Timeout => sleep(LOOK).await,
            Ok(end) => return Ok(end),
            Err(error) => again.pause(began, error).await?,
        }
    }
}
