//! `cuzk await JOB --out PROOF`: waits for a job that a daemon has.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use cuzk_server::client::Client;
use cuzk_server::wire::v1::AwaitProofResponse;
use cuzk_server::wire::v1::await_proof_response::Status;
use tokio::time::sleep;

use super::client::{Daemon, wait};
use super::waiting::{Again, LOOK, show_progress};
use super::{Context, job_end};
use crate::failure::Failure;
use crate::output_path::OutputPath;
use crate::progress;

#[derive(Debug, Args)]
pub(crate) struct Await {
    #[command(flatten)]
    daemon: Daemon,
    /// The name of the job, as `cuzk submit --no-wait` prints it.
    #[arg(value_name = "JOB")]
    job: String,
    /// The file for the proof, as the raw bytes that the chain expects.
    #[arg(long, value_name = "PROOF")]
    out: PathBuf,
    /// Seconds after which the command ends although the job goes on. By default it waits
    /// for as long as the job takes.
    #[arg(long, value_name = "SECONDS")]
    timeout_s: Option<u64>,
    /// Seconds for which a daemon that restarts is called again.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    retry_s: u64,
}

pub(crate) fn run(context: &Context, args: &Await) -> Result<(), Failure> {
    let out = OutputPath::new(&args.out)?;
    OutputPath::check_no_input([&out], [])?;
    let spinner = progress::spinner("waiting for the proof");
    let mut again = Again::new(args.retry_s, &spinner);
    let end = wait("the job goes on; await it again", async {
        let client = args.daemon.connect_again(&mut again).await?;
        tokio::select! {
            end = await_proof(&client, args, again) => end,
            never = show_progress(&client, &args.job, &spinner) => match never {},
        }
    });
    spinner.finish_and_clear();
    job_end::finish(context.json, None, &out, &end?)
}

async fn await_proof(
    client: &Client,
    args: &Await,
    mut again: Again,
) -> Result<AwaitProofResponse, Failure> {
    let limit = args.timeout_s.map(Duration::from_secs);
    let start = Instant::now();
    loop {
        let began = Instant::now();
        let left = limit.map(|limit| limit.saturating_sub(start.elapsed()));
        match client.await_proof(&args.job, left).await {
            // Without a limit the wait was the daemon's to end.
            Ok(end) if end.status() == Status::Timeout && limit.is_none() => {
                sleep(LOOK).await;
            }
            Ok(end) => return Ok(end),
            Err(error) => again.pause(began, error).await?,
        }
    }
}
