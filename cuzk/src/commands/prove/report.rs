//! The report that `cuzk prove` prints of a proof.

use cuzk_core::timeline::{DeviceUse, Names, Span, Timeline, device_use};
use serde::Serialize;

use super::batch::Proved;
use super::order::Order;
use crate::failure::Failure;
use crate::memory::peak_rss_bytes;
use crate::output::{self, shown};
use crate::output_path::OutputPath;

/// The result of proving a request.
#[derive(Debug, Serialize)]
struct ProveReport {
    /// The request's file, if it came from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<String>,
    /// The file of the proof, if it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    out: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    kind: String,
    sector_size: String,
    partitions: usize,
    proof_bytes: usize,
    verified: bool,
    prove_s: f64,
    peak_rss_bytes: Option<u64>,
    timeline: Vec<Span>,
    /// The use of each device over all proofs of this command.
    devices: Vec<DeviceUse>,
}

/// The source and the destination of reports.
pub(super) struct Reports<'a> {
    timeline: &'a Timeline,
    devices: Vec<DeviceUse>,
    /// True if a proof goes to standard output.
    is_stdout: bool,
    /// True if the text has a line for each stage.
    verbose: bool,
}

impl<'a> Reports<'a> {
    /// `spans` are those of `timeline`. With `verbose` the text has a line for each stage.
    pub(super) fn new(
        timeline: &'a Timeline,
        spans: &[Span],
        orders: &[Order],
        verbose: bool,
    ) -> Self {
        let is_stdout = |order: &Order| order.out.as_ref().is_some_and(OutputPath::is_stdout);
        Self {
            timeline,
            devices: device_use(spans),
            is_stdout: orders.iter().any(is_stdout),
            verbose,
        }
    }

    pub(super) fn print(&self, json: bool, proved: &Proved<'_>) -> Result<(), Failure> {
        let report = ProveReport::new(proved, self.timeline, &self.devices);
        output::print_beside(self.is_stdout, json, &report, |report| {
            let names = self.timeline.names();
            let stages = self.verbose.then(|| stages(report, &names));
            let lines = stages.unwrap_or_default().into_iter().chain([line(report)]);
            lines.collect::<Vec<_>>().join("\n")
        })
    }
}

impl ProveReport {
    fn new(proved: &Proved<'_>, timeline: &Timeline, devices: &[DeviceUse]) -> Self {
        let circuit = proved.job.circuit();
        let order = proved.order;
        Self {
            request: order.path.as_deref().map(shown),
            out: order.out.as_ref().map(OutputPath::path).map(shown),
            id: order.options.id.clone(),
            kind: circuit.kind.to_string(),
            sector_size: circuit.sector_size.to_string(),
            partitions: proved.proof.partitions(),
            proof_bytes: proved.proof.as_bytes().len(),
            verified: true,
            prove_s: proved.prove_s,
            peak_rss_bytes: peak_rss_bytes(),
            timeline: timeline.of_job(proved.job.number()),
            devices: devices.to_vec(),
        }
    }
}

/// Returns the table of stages, and the use of the devices.
fn stages(report: &ProveReport, names: &Names) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<15} {:>9} {:>10} {:>10}  {}",
        "stage", "partition", "start s", "length s", "thread"
    )];
    lines.extend(report.timeline.iter().map(|span| {
        format!(
            "{:<15} {:>9} {:>10.3} {:>10.3}  {}",
            span.stage,
            span.partition
                .map_or_else(|| "-".to_owned(), |partition| partition.to_string()),
            span.start.as_secs_f64(),
            span.length().as_secs_f64(),
            span.lane,
        )
    }));
    let of_device = |used: &DeviceUse| used.describe(&names.device(used.device));
    lines.extend(report.devices.iter().map(of_device));
    lines
}

/// Returns the line of the result.
fn line(report: &ProveReport) -> String {
    let of = (report.request.as_deref()).map_or_else(String::new, |request| format!("{request}: "));
    let out = match report.out.as_deref() {
        None => String::new(),
        Some("-") => ", on standard output".to_owned(),
        Some(out) => format!(", in {out}"),
    };
    let peak = report.peak_rss_bytes;
    format!(
        "{of}{} {}: a proof of {} bytes{out}, {} partition(s), verified, in {:.1} s{}",
        report.kind,
        report.sector_size,
        report.proof_bytes,
        report.partitions,
        report.prove_s,
        peak.map_or_else(String::new, |bytes| format!(
            ", peak memory {} MiB",
            bytes >> 20
        )),
    )
}
