//! `cuzk submit --request FILE --out PROOF`: a daemon proves, and the command waits.
//!
//! The invariant: a call that is repeated sends the same request, so that the daemon attaches
//! it to the job that it has.

use std::convert::Infallible;
use std::path::PathBuf;
use std::slice;
use std::time::{Duration, Instant};

use clap::Args;
use cuzk_core::Priority;
use cuzk_server::client::{Client, Patience, check_size, read_request};
use cuzk_server::wire::v1::await_proof_response::Status;
use cuzk_server::wire::v1::{self, AwaitProofResponse, SubmitProofRequest};
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::time::sleep;

use super::client::{Daemon, wait};
use super::daemon_report::DaemonReport;
use super::{Context, REQUEST_MAX_BYTES, job_end, read};
use crate::failure::Failure;
use crate::output;
use crate::output_path::OutputPath;
use crate::progress;

/// The time between two looks at the progress, and between calls that a daemon lets go of
/// although their job runs.
const LOOK: Duration = Duration::from_secs(1);

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
    OutputPath::check_no_request(out.iter(), slice::from_ref(&args.request))?;
    let request = request(args)?;
    let mut patience = Patience::new(Duration::from_secs(args.retry_s));
    let Some(out) = out else {
        return enqueue(context, args, request, patience);
    };
    let left = "the job goes on unless it is a WinningPoSt; give the command again for its proof";
    let spinner = progress::spinner("waiting for the proof");
    let end = wait(left, async {
        let client = args.daemon.connect_again(&mut patience).await?;
        tokio::select! {
            end = prove(&client, &request, patience) => end,
            never = show_progress(&client, &request.request_id, &spinner) => match never {},
        }
    });
    spinner.finish_and_clear();
    job_end::finish(context.json, Some(&args.request), &out, &end?)
}

fn request(args: &Submit) -> Result<SubmitProofRequest, Failure> {
    let bytes = read(&args.request, REQUEST_MAX_BYTES)?;
    let of_file = |failure: Failure| failure.of(args.request.display());
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

fn enqueue(
    context: &Context,
    args: &Submit,
    request: SubmitProofRequest,
    mut patience: Patience,
) -> Result<(), Failure> {
    let left = "the daemon may have the job; give the command again";
    let reply = wait(left, async {
        let client = args.daemon.connect_again(&mut patience).await?;
        loop {
            let began = Instant::now();
            match client.submit(request.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(error) => sleep(patience.pause(began, error)?).await,
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
    mut patience: Patience,
) -> Result<AwaitProofResponse, Failure> {
    loop {
        let began = Instant::now();
        match client.prove(request.clone()).await {
            Ok(end) if end.status() == Status::Timeout => sleep(LOOK).await,
            Ok(end) => return Ok(end),
            Err(error) => sleep(patience.pause(began, error)?).await,
        }
    }
}

/// Shows the progress of the request's job, if the daemon says it and someone sees it.
async fn show_progress(client: &Client, id: &str, spinner: &ProgressBar) -> Infallible {
    while !spinner.is_hidden() {
        sleep(LOOK).await;
        let Ok(json) = client.report().await else {
            continue;
        };
        let report = DaemonReport::parse(&json);
        let ours = |job: &&super::daemon_report::Job| job.job_id.starts_with(id);
        if let Some(job) = report
            .iter()
            .flat_map(|report| &report.pipelines)
            .find(ours)
        {
            let (done, all) = (job.partitions_done, job.total_partitions);
            spinner.set_message(format!("proving: {done} of {all} partitions done"));
        }
    }
    std::future::pending().await
}
