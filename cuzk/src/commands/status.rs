//! `cuzk status`: the state of a daemon at this moment.

use bytesize::ByteSize;
use clap::Args;
use comfy_table::{Table, presets};
use cuzk_server::wire::v1::GetStatusResponse;

use super::Context;
use super::client::{Daemon, wait};
use super::daemon_report::{DaemonReport, document, json, tier_name};
use super::fleet;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    daemon: Daemon,
}

pub(crate) fn run(context: &Context, args: &Status) -> Result<(), Failure> {
    wait("nothing was changed", async {
        let client = args.daemon.connect().await?;
        if context.json {
            let report = json(&client).await?;
            return output::print(true, &report, |_| String::new());
        }
        let status = client.status().await?;
        let mut shown = text(&client.address().to_string(), &status);
        let document = document(&client).await?;
        let report = document.and_then(|document| DaemonReport::parse(&document));
        if let Some(cluster) = report.and_then(|report| report.cluster) {
            shown = format!("{shown}\n\n{}", fleet::text(&cluster));
        }
        output::print_lines(&shown)
    })
}

/// Returns the state as lines and tables.
pub(super) fn text(address: &str, status: &GetStatusResponse) -> String {
    let mut sections = vec![format!(
        "{address}, up {}\nproved {}, failed {}\nmemory {} of {}",
        time(status.uptime_seconds),
        status.total_proofs_completed,
        status.total_proofs_failed,
        ByteSize(status.pinned_memory_bytes),
        ByteSize(status.pinned_memory_limit_bytes)
    )];
    let queues = status.queues.iter().map(|queue| {
        let counts = [queue.pending, queue.in_progress].map(|count| count.to_string());
        [vec![queue.proof_kind.clone()], counts.to_vec()].concat()
    });
    sections.extend(table(&["KIND", "WAITING", "RUNNING"], queues));
    let devices = status.gpus.iter().map(|gpu| {
        let memory = match gpu.vram_total_bytes {
            0 => String::new(),
            total => format!(
                "{} of {} free",
                ByteSize(gpu.vram_free_bytes),
                ByteSize(total)
            ),
        };
        let ordinal = gpu.ordinal.to_string();
        let job = [&gpu.current_job_id, &gpu.current_proof_kind].map(String::clone);
        [vec![ordinal, gpu.name.clone(), memory], job.to_vec()].concat()
    });
    sections.extend(table(&["DEVICE", "NAME", "MEMORY", "JOB", "KIND"], devices));
    let circuits = status.loaded_srs.iter().map(|srs| {
        let size = ByteSize(srs.size_bytes).to_string();
        let tier = tier_name(srs.tier()).to_owned();
        vec![
            srs.circuit_id.clone(),
            tier,
            size,
            srs.ref_count.to_string(),
        ]
    });
    sections.extend(table(&["CIRCUIT", "TIER", "SIZE", "IN USE"], circuits));
    sections.join("\n\n")
}

/// Returns a table, unless it has no rows.
pub(super) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Option<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    // The first column begins where the lines around the table begin.
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    table.add_rows(rows);
    (table.row_count() > 0).then(|| table.trim_fmt())
}

/// Returns a time in its two largest units.
pub(super) fn time(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3_599, "59 min 59 s"),
            (7_260, "2 h 1 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
