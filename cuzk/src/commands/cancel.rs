//! `cuzk cancel JOB…`: ends jobs of a daemon.
//!
//! The invariant: each job has its own end. A job that the daemon does not know is a failure, and
//! the others are cancelled all the same.

use std::time::Duration;

use clap::Args;
use cuzk_server::client::Client;
use cuzk_server::wire::v1::await_proof_response::Status;
use serde::Serialize;

use super::Context;
use super::client::{Daemon, wait};
use crate::failure::Failure;
use crate::failure_report::{Failures, Name};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    daemon: Daemon,
    /// The names of the jobs, as `cuzk submit --no-wait` and `cuzk status` print them.
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Cancelled<'a> {
    job_id: &'a str,
    /// False if the job had ended.
    was_running: bool,
}

pub(crate) fn run(context: &Context, args: &Cancel) -> Result<(), Failure> {
    wait("some jobs may be cancelled", async {
        let client = args.daemon.connect().await?;
        let mut failures = Failures::new(context.json);
        for job_id in &args.jobs {
            let cancelled = cancel(&client, job_id).await;
            let printed = cancelled.and_then(|cancelled| print(context.json, &cancelled));
            if let Err(failure) = printed {
                failures.add_request(Name::new(None, Some(job_id)), &failure);
            }
        }
        failures.end()
    })
}

/// Ends a job.
///
/// # Errors
/// The daemon does not know the job, or refuses the call.
async fn cancel<'a>(client: &Client, job_id: &'a str) -> Result<Cancelled<'a>, Failure> {
    let was_running = client.cancel(job_id).await?;
    if !was_running && is_unknown(client, job_id).await? {
        return Err(Failure::input(format!(
            "the daemon knows no job {job_id:?}; `cuzk top` shows those that it has"
        )));
    }
    Ok(Cancelled {
        job_id,
        was_running,
    })
}

/// Returns true if the daemon does not know the job. The reply to a cancellation does not tell such
/// a job from one that had ended.
async fn is_unknown(client: &Client, job_id: &str) -> Result<bool, Failure> {
    let end = client.await_proof(job_id, Some(Duration::ZERO)).await?;
    Ok(end.status() == Status::Unknown)
}

fn print(json: bool, cancelled: &Cancelled<'_>) -> Result<(), Failure> {
    output::print(json, cancelled, |cancelled| {
        let end = match cancelled.was_running {
            true => "cancelled",
            false => "not cancelled, because it had ended",
        };
        format!("{}: {end}", cancelled.job_id)
    })
}
