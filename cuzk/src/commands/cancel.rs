//! `cuzk cancel JOB…`: ends jobs of a daemon.

use clap::Args;
use serde::Serialize;

use super::Context;
use super::client::{Daemon, wait};
use crate::failure::Failure;
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
    /// False if the job had ended, or the daemon does not know it.
    was_running: bool,
}

pub(crate) fn run(context: &Context, args: &Cancel) -> Result<(), Failure> {
    wait("some jobs may be cancelled", async {
        let client = args.daemon.connect().await?;
        for job_id in &args.jobs {
            let was_running = client.cancel(job_id).await?;
            let cancelled = Cancelled {
                job_id,
                was_running,
            };
            output::print(context.json, &cancelled, |cancelled| {
                let end = match cancelled.was_running {
                    true => "cancelled",
                    false => "not cancelled: it had ended, or the daemon does not know it",
                };
                format!("{}: {end}", cancelled.job_id)
            })?;
        }
        Ok(())
    })
}
