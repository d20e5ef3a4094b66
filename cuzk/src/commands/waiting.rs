//! The wait of a command for a job of a daemon: its progress, and calls that are made again.
//!
//! Not the calls. The invariant: a call that is made again says why, once for each reason.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use cuzk_core::error::ErrorCode;
use cuzk_server::client::{Client, ClientError, Patience};
use indicatif::ProgressBar;
use tokio::time::sleep;

use super::daemon_report::{DaemonReport, Job};
use crate::failure::Failure;
use crate::output;

/// The time between two looks at the progress, and between calls that a daemon lets go of
/// although their job runs.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// Calls that are made again, for a time.
#[derive(Debug)]
pub(super) struct Again {
    patience: Patience,
    limit_s: u64,
    /// The reason that was said last.
    said: String,
    spinner: ProgressBar,
}

impl Again {
    /// Calls are made again for so many seconds. Reasons are said above the spinner.
    pub(super) fn new(limit_s: u64, spinner: &ProgressBar) -> Self {
        Self {
            patience: Patience::new(Duration::from_secs(limit_s)),
            limit_s,
            said: String::new(),
            spinner: spinner.clone(),
        }
    }

    /// Waits before the next call, after a call that began at `began` and failed with `error`.
    ///
    /// # Errors
    /// The same error if another call would not help, or the time is over.
    pub(super) async fn pause(
        &mut self,
        began: Instant,
        error: ClientError,
    ) -> Result<(), Failure> {
        let message = error.to_string();
        let reason = ErrorCode::split(&message).0.to_owned();
        let pause = self.patience.pause(began, error)?;
        if self.said != reason {
            let limit_s = self.limit_s;
            self.spinner.suspend(|| {
                output::say(format_args!(
                    "calling again, for {limit_s} s at most: {reason}"
                ));
            });
            self.said = reason;
        }
        sleep(pause).await;
        Ok(())
    }
}

/// Shows the progress of a job on the spinner, if the daemon says it. Without a terminal the log has
/// a line whenever partitions are done. The name of the job begins with `id`.
pub(super) async fn show_progress(client: &Client, id: &str, spinner: &ProgressBar) -> Infallible {
    let mut told = 0;
    loop {
        sleep(LOOK).await;
        let Ok(json) = client.report().await else {
            continue;
        };
        let report = DaemonReport::parse(&json);
        let mut jobs = report.iter().flat_map(|report| &report.pipelines);
        let Some(job) = jobs.find(|job| job.job_id.starts_with(id)) else {
            continue;
        };
        let Job {
            job_id,
            partitions_done: done,
            total_partitions: all,
            ..
        } = job;
        if !spinner.is_hidden() {
            spinner.set_message(format!("proving: {done} of {all} partitions done"));
        } else if *done > told {
            told = *done;
            tracing::info!("{job_id}: {done} of {all} partitions done");
        }
    }
}
