//! The results of `cuzk plan`, as text for people.

use std::fmt::Write;

use cuzk_plan::capacity::{Capacity, Utilisation};
use cuzk_plan::report::{LoadReport, Report};
use cuzk_plan::seed::Point;

/// Returns the points as a table.
pub(super) fn seed_text(points: &[Point]) -> String {
    let mut text = String::from("point                published     model  difference");
    for point in points {
        let mark = match point.calibrated_on {
            true => "  calibrated on",
            false => "",
        };
        line(
            &mut text,
            format_args!(
                "{:20} {:7.1} s {:7.2} s {:>11}{mark}",
                point.point,
                point.published_s,
                point.model_s,
                percent(point.difference)
            ),
        );
    }
    text
}

/// Returns the answers of a plan.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!(
        "{}\ncosts of the instructions: {}\n\none machine, full, as it is configured:",
        report.machine,
        report.isa.name()
    );
    for capacity in &report.capacity {
        line(&mut text, format_args!("  {}", capacity_text(capacity)));
    }
    for problem in &report.impossible {
        line(&mut text, format_args!("  cannot do {problem}"));
    }
    if let Some(load) = &report.load {
        load_text(&mut text, load);
    }
    advice_text(&mut text, report);
    if !report.assumed.is_empty() {
        line(&mut text, format_args!("\nassumed, not measured:"));
        for key in &report.assumed {
            line(&mut text, format_args!("  {key}"));
        }
    }
    text
}

fn capacity_text(capacity: &Capacity) -> String {
    format!(
        "{:12} {:9.1} proofs a day, {:8.2} s a proof, {:8.2} s alone",
        capacity.kind.name(),
        capacity.proofs_per_day,
        capacity.s_per_proof,
        capacity.alone_s
    )
}

fn load_text(text: &mut String, load: &LoadReport) {
    line(
        text,
        format_args!(
            "\n{}: {} machines, {} days, seed {}",
            load.name, load.machines, load.days, load.seed
        ),
    );
    for kind in &load.kinds {
        line(
            text,
            format_args!(
                "  {:12} {:9.1} proofs a day; latency {:.1} s (50 %), {:.1} s (95 %), {:.1} s \
                 (99 %), {:.1} s at most; {} of {} later than {} s",
                kind.kind.name(),
                kind.proofs_per_day,
                kind.p50_s,
                kind.p95_s,
                kind.p99_s,
                kind.max_s,
                kind.late,
                kind.proofs,
                kind.deadline_s
            ),
        );
    }
    line(
        text,
        format_args!("  {}", utilisation_text(&load.utilisation)),
    );
    line(
        text,
        format_args!("  memory charged: {:.1} GiB at most", load.peak_gib),
    );
}

fn utilisation_text(used: &Utilisation) -> String {
    format!(
        "busy: cores {:.0} %, memory bandwidth {:.0} %, synthesis workers {:.0} %, devices \
         {:.0} %, their locks {:.0} %; workers waited for memory {:.0} % of the time",
        100.0 * used.cores,
        100.0 * used.memory_bandwidth,
        100.0 * used.synthesis_workers,
        100.0 * used.devices,
        100.0 * used.device_locks,
        100.0 * used.waits_for_memory
    )
}

fn advice_text(text: &mut String, report: &Report) {
    let (Some(kind), Some(engine)) = (report.recommended_for, report.recommended) else {
        return;
    };
    line(text, format_args!("\nrecommended for {kind}:"));
    line(
        text,
        format_args!(
            "  [synthesis] partition_workers = {}",
            engine.partition_workers
        ),
    );
    line(
        text,
        format_args!(
            "  [gpus] gpu_workers_per_device = {}",
            engine.workers_per_device
        ),
    );
    line(
        text,
        format_args!("  [gpus] gpu_threads = {}", engine.gpu_threads),
    );
    if let Some(capacity) = &report.recommended_capacity {
        line(text, format_args!("  {}", capacity_text(capacity)));
        line(
            text,
            format_args!("  {}", utilisation_text(&capacity.utilisation)),
        );
    }
    if let Some(bound) = report.bound_by {
        line(text, format_args!("\nbound by: {bound}"));
    }
    for more in &report.more {
        line(
            text,
            format_args!(
                "  {:28} {:10.1} proofs a day ({})",
                more.of,
                more.proofs_per_day,
                percent(more.gain)
            ),
        );
    }
}

/// Returns a difference in percent, with its sign. One that rounds to zero has none.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:+.1} %", 100.0 * share);
    match text.get(1..) {
        Some(zero @ "0.0 %") => zero.to_owned(),
        _ => text,
    }
}

/// Adds a line. Writing into a String does not fail.
pub(super) fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = write!(text, "\n{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_rounds_to_zero_has_no_sign() {
        for (share, text) in [
            (0.0, "0.0 %"),
            (-0.0, "0.0 %"),
            (0.0004, "0.0 %"),
            (-0.0004, "0.0 %"),
            (0.0006, "+0.1 %"),
            (-0.0006, "-0.1 %"),
            (0.1, "+10.0 %"),
            (-0.1, "-10.0 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }
}
