//! The idle times of devices, and what each device waited for.
//!
//! A device waits for the partition that it takes next. The causes of its idle time are
//! the stages of that partition during the gap. Before the partition's first stage there
//! was no partition to prove. The invariant: the causes of a gap together are its length.

use std::collections::BTreeMap;
use std::time::Duration;

use cuzk_core::timeline::{Span, Stage, device_use};

/// The cause of a time in which no partition was on its way to the device.
const NO_PARTITION: &str = "no partition";

/// The use of all devices together.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DeviceTime {
    /// The share of the time in which the devices were busy.
    pub(super) utilisation: f64,
    pub(super) idle_s: f64,
    pub(super) gaps: usize,
    pub(super) longest_gap_s: f64,
    /// Idle seconds by cause.
    pub(super) causes: BTreeMap<String, f64>,
}

impl DeviceTime {
    /// Returns the use of the devices that `spans` name.
    pub(super) fn of(spans: &[Span]) -> Self {
        let uses = device_use(spans);
        let total: Duration = uses.iter().map(|used| used.total()).sum();
        let busy: Duration = uses.iter().map(|used| used.busy).sum();
        let mut time = Self {
            utilisation: 1.0,
            ..Self::default()
        };
        if !total.is_zero() {
            time.utilisation = busy.div_duration_f64(total);
        }
        for used in &uses {
            for gap in &used.gaps {
                let end = gap.start + gap.length;
                time.idle_s += gap.length.as_secs_f64();
                time.gaps += 1;
                time.longest_gap_s = time.longest_gap_s.max(gap.length.as_secs_f64());
                let next = spans.iter().find(|span| {
                    span.stage == Stage::Device
                        && span.device == Some(used.device)
                        && span.start == end
                });
                if let Some(next) = next {
                    add_causes(&mut time.causes, spans, next, (gap.start, end));
                }
            }
        }
        time
    }
}

/// Adds the stages of the partition `next` during a gap.
fn add_causes(
    causes: &mut BTreeMap<String, f64>,
    spans: &[Span],
    next: &Span,
    (start, end): (Duration, Duration),
) {
    let is_of_it = |span: &&Span| {
        span.job == next.job && (span.partition.is_none() || span.partition == next.partition)
    };
    let mut of_it: Vec<_> = spans.iter().filter(is_of_it).collect();
    of_it.sort_by_key(|span| (span.start, span.end));
    // The stages of a partition follow one another. Parts of a stage count as the stage.
    let mut until = start;
    let mut known = Duration::ZERO;
    for span in of_it {
        let from = span.start.max(until);
        let to = span.end.min(end);
        if to > from {
            *causes.entry(span.stage.name().to_owned()).or_default() += (to - from).as_secs_f64();
            known += to - from;
            until = to;
        }
    }
    let unknown = (end - start).saturating_sub(known);
    if !unknown.is_zero() {
        *causes.entry(NO_PARTITION.to_owned()).or_default() += unknown.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use cuzk_core::timeline::Lane;

    use super::*;

    fn span(job: u64, stage: Stage, from_ms: u64, to_ms: u64) -> Span {
        Span {
            job: Some(job),
            partition: Some(0),
            device: (stage == Stage::Device).then_some(0),
            stage,
            served: None,
            stood_aside: None,
            lane: Lane::new("test"),
            start: Duration::from_millis(from_ms),
            end: Duration::from_millis(to_ms),
        }
    }

    #[test]
    fn a_gap_is_what_the_next_partition_did() {
        let spans = [
            span(1, Stage::Device, 0, 100),
            span(2, Stage::Witness, 120, 150),
            span(2, Stage::Evaluate, 150, 190),
            span(3, Stage::Witness, 100, 500),
            span(2, Stage::Device, 200, 300),
        ];
        let time = DeviceTime::of(&spans);
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9);
        near(time.idle_s, 0.1);
        near(time.utilisation, 200.0 / 300.0);
        near(time.causes["witness"], 0.03);
        near(time.causes["evaluate"], 0.04);
        near(time.causes[NO_PARTITION], 0.03);
        near(time.causes.values().sum(), time.idle_s);
        assert_eq!((time.gaps, time.causes.len()), (1, 3));
    }

    #[test]
    fn without_a_device_nothing_is_idle() {
        assert_eq!(DeviceTime::of(&[]).utilisation, 1.0);
    }
}
