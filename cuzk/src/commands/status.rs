//! `cuzk status`: the state of a daemon at this moment.

use bytesize::ByteSize;
use clap::Args;
use cuzk_server::wire::v1::GetStatusResponse;

use super::Context;
use super::client::{Daemon, wait};
use super::daemon_report::{DaemonReport, document, json, tier_name};
use super::fleet;
use super::table::{table, time};
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
