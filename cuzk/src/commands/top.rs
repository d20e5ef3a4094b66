//! `cuzk top`: the state of a daemon, again every second, until Ctrl-C.
//!
//! The invariant: the terminal is left as it was, however the command ends. A daemon that
//! goes away is shown as away, and is asked again.

use std::io::{self, IsTerminal};
use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use cuzk_server::client::Client;
use tokio::time::sleep;

use super::Context;
use super::client::{Daemon, wait};
use super::daemon_report::{DaemonReport, Job, Worker, document, json};
use super::fleet;
use super::status;
use super::table::{table, time};
use crate::failure::Failure;
use crate::output;
use crate::signal::Signal;

const REFRESH: Duration = Duration::from_secs(1);

/// Opens the terminal's other screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Goes to the first cell and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The states of a partition in their order, with their letters.
const STATES: [(&str, char); 6] = [
    ("pending", '.'),
    ("synthesizing", 's'),
    ("synth_done", 'r'),
    ("gpu", 'd'),
    ("done", '#'),
    ("failed", '!'),
];

const LEGEND: &str = ". waits  s synthesis  r ready  d device  # done  ! failed";

#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    daemon: Daemon,
    /// Show the workers of the daemon's cluster instead of its devices and jobs.
    #[arg(long)]
    fleet: bool,
    /// End after this many looks.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

pub(crate) fn run(context: &Context, args: &Top) -> Result<(), Failure> {
    let screen = Screen::enter(context.json);
    let watched = wait("nothing was changed", watch(context, args, &screen));
    drop(screen);
    match watched {
        // It is the way to end the command.
        Err(failure) if failure.exit_number() == Signal::Interrupt.exit_code() => Ok(()),
        watched => watched,
    }
}

async fn watch(context: &Context, args: &Top, screen: &Screen) -> Result<(), Failure> {
    let client = args.daemon.connect().await?;
    let mut looks = 0;
    loop {
        if context.json {
            let report = json(&client).await?;
            output::print(true, &report, |_| String::new())?;
        } else {
            screen.show(&frame(&client, args.fleet).await)?;
        }
        looks += 1;
        if args.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        sleep(REFRESH).await;
    }
}

/// The terminal's other screen, or plain lines if the output is no terminal.
struct Screen {
    is_terminal: bool,
}

impl Screen {
    fn enter(json: bool) -> Self {
        let is_terminal = !json && io::stdout().is_terminal();
        if is_terminal {
            print!("{ENTER}");
        }
        Self { is_terminal }
    }

    fn show(&self, frame: &str) -> Result<(), Failure> {
        match self.is_terminal {
            true => output::print_lines(&format!("{CLEAR}{frame}")),
            false => output::print_lines(&format!("{frame}\n")),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_terminal {
            output::print_lines(LEAVE).ok();
        }
    }
}

/// Returns what is shown now.
async fn frame(client: &Client, is_fleet: bool) -> String {
    let address = client.address().to_string();
    let shown = async {
        if let Some(document) = document(client).await? {
            let report = DaemonReport::parse(&document).unwrap_or_default();
            return Ok(text(&address, &report, is_fleet));
        }
        Ok(status::text(&address, &client.status().await?))
    };
    let shown: Result<_, cuzk_server::client::ClientError> = shown.await;
    shown.unwrap_or_else(|error| format!("{error}\n\nasked again every second"))
}

fn text(address: &str, report: &DaemonReport, is_fleet: bool) -> String {
    let (memory, counters) = (&report.memory, &report.counters);
    let mut sections = vec![format!(
        "{address}, up {}\nproved {}, failed {}, {} waiting\nmemory {} of {}",
        time(report.uptime_secs),
        counters.total_completed,
        counters.total_failed,
        counters.queue_depth,
        ByteSize(memory.used_bytes),
        ByteSize(memory.total_bytes)
    )];
    match &report.cluster {
        Some(cluster) if is_fleet => {
            sections.push(fleet::text(cluster));
            return sections.join("\n\n");
        }
        Some(cluster) => sections.push(fleet::line(cluster)),
        None if is_fleet => {
            sections.push("the daemon is in no cluster".to_owned());
            return sections.join("\n\n");
        }
        None => {}
    }
    let devices = report.gpu_workers.iter().map(device_row);
    sections.extend(table(&["DEVICE", "STATE", "JOB", "FOR"], devices));
    let jobs = report.pipelines.iter().map(job_row);
    match table(&["JOB", "KIND", "AGE", "DONE", "PARTITIONS"], jobs) {
        Some(jobs) => sections.extend([jobs, LEGEND.to_owned()]),
        None => sections.push("no jobs".to_owned()),
    }
    sections.join("\n\n")
}

fn device_row(worker: &Worker) -> Vec<String> {
    let job = match (&worker.current_job, worker.current_partition) {
        (Some(job), Some(partition)) => format!("{job}, partition {partition}"),
        (Some(job), None) => job.clone(),
        (None, _) => String::new(),
    };
    let busy = match worker.busy_secs {
        0 => String::new(),
        seconds => time(seconds),
    };
    vec![
        worker.gpu_ordinal.to_string(),
        worker.state.clone(),
        job,
        busy,
    ]
}

fn job_row(job: &Job) -> Vec<String> {
    let letter = |state: &str| {
        let known = STATES.iter().find(|(name, _)| *name == state);
        known.map_or('?', |(_, letter)| *letter)
    };
    vec![
        job.job_id.clone(),
        job.proof_kind.clone(),
        time(job.started_secs_ago),
        format!("{} of {}", job.partitions_done, job.total_partitions),
        job.partitions
            .iter()
            .map(|partition| letter(&partition.state))
            .collect(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_shown_with_its_partitions() {
        let report = DaemonReport::parse(
            r#"{"uptime_secs": 61, "memory": {"total_bytes": 2048, "used_bytes": 1024},
                "pipelines": [{"job_id": "porep-1-2", "proof_kind": "porep-c2",
                    "total_partitions": 4, "partitions_done": 1, "partitions": [
                    {"state": "done"}, {"state": "gpu"}, {"state": "new"}, {"state": "pending"}]}],
                "gpu_workers": [{"state": "proving", "current_job": "porep-1-2",
                    "current_partition": 1, "busy_secs": 3}],
                "counters": {"total_completed": 7, "queue_depth": 2}, "engine": {"a": 1}}"#,
        );
        let report = report.unwrap();
        let shown = text("unix:///s", &report, false);
        for part in [
            "unix:///s, up 1 min 1 s",
            "proved 7, failed 0, 2 waiting",
            "memory 1.0 KiB of 2.0 KiB",
            "porep-1-2, partition 1",
            "1 of 4",
            "#d?.",
        ] {
            assert!(shown.contains(part), "{part:?} is not in\n{shown}");
        }
        let nothing = DaemonReport::default();
        assert!(text("", &nothing, false).ends_with("no jobs"));
        assert!(text("", &nothing, true).ends_with("in no cluster"));
        let cluster = r#"{"cluster": {"problem": "gone"}, "pipelines": [{"job_id": "a"}]}"#;
        let report = DaemonReport::parse(cluster).unwrap();
        assert!(text("", &report, false).contains("cluster: gone"));
        let fleet = text("", &report, true);
        assert!(
            fleet.contains("cluster: gone") && !fleet.contains("JOB"),
            "{fleet}"
        );
    }
}
