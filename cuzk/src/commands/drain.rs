//! `cuzk drain`: makes a daemon finish what runs, and keep new PoRep and SnapDeals for later.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tokio::time::sleep;

use super::Context;
use super::client::{Daemon, wait};
use crate::failure::Failure;
use crate::output;

/// The time between two questions whether jobs still run.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Drain {
    #[command(flatten)]
    daemon: Daemon,
    /// End a drain: the daemon proves what it kept.
    #[arg(long, conflicts_with = "wait")]
    resume: bool,
    /// Wait until no job runs.
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Serialize)]
struct Drained {
    jobs_running: u32,
    jobs_kept: u32,
}

#[derive(Debug, Serialize)]
struct Resumed {
    was_draining: bool,
}

pub(crate) fn run(context: &Context, args: &Drain) -> Result<(), Failure> {
    wait("the daemon is as it was told last", async {
        let client = args.daemon.connect().await?;
        if args.resume {
            let was_draining = client.resume().await?;
            let resumed = Resumed { was_draining };
            return output::print(context.json, &resumed, |resumed| {
                match resumed.was_draining {
                    true => "the daemon proves again".to_owned(),
                    false => "the daemon was not draining".to_owned(),
                }
            });
        }
        let mut reply = client.drain().await?;
        while args.wait && reply.jobs_running > 0 {
            sleep(LOOK).await;
            reply = client.drain().await?;
        }
        let drained = Drained {
            jobs_running: reply.jobs_running,
            jobs_kept: reply.jobs_kept,
        };
        output::print(context.json, &drained, |drained| {
            let (running, kept) = (drained.jobs_running, drained.jobs_kept);
            format!("the daemon drains; jobs that run on: {running}, jobs that wait: {kept}")
        })
    })
}
