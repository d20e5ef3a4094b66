//! Busy time and idle gaps of a device.
//!
//! A device is busy while at least one [`Stage::Device`] or [`Stage::Columns`] lasts on it;
//! several can be recorded at the same time. The time examined runs from the first start to the last
//! end. So neither the synthesis of the first partition nor the finish of the last one
//! counts as idleness of the device. The invariant: busy time and gaps together are the
//! whole time.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::Span;
use crate::span::as_micros;

/// A time in which a device had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Its start, since the timeline's epoch.
    #[serde(rename = "start_us", serialize_with = "as_micros")]
    pub start: Duration,
    /// Its length; never zero.
    #[serde(rename = "length_us", serialize_with = "as_micros")]
    pub length: Duration,
}

/// The use of a device from its first start to its last end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceUse {
    /// The device's index.
    pub device: usize,
    /// The first start, since the timeline's epoch.
    #[serde(rename = "start_us", serialize_with = "as_micros")]
    pub start: Duration,
    /// The last end, since the timeline's epoch.
    #[serde(rename = "end_us", serialize_with = "as_micros")]
    pub end: Duration,
    /// The time in which it was busy.
    #[serde(rename = "busy_us", serialize_with = "as_micros")]
    pub busy: Duration,
    /// The times in which it was idle, in order.
    pub gaps: Vec<Gap>,
}

impl DeviceUse {
    /// Returns the time from the first start to the last end.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }

    /// Returns the time in which the device was idle.
    #[must_use]
    pub fn idle(&self) -> Duration {
        self.total().saturating_sub(self.busy)
    }

    /// Returns the share of the time in which the device was busy, 0 to 1. Returns 1 if
    /// that time is zero.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        if self.total().is_zero() {
            return 1.0;
        }
        self.busy.div_duration_f64(self.total())
    }

    /// Returns the `most` longest gaps, longest first.
    #[must_use]
    pub fn longest_gaps(&self, most: usize) -> Vec<Gap> {
        let mut gaps = self.gaps.clone();
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.length));
        gaps.truncate(most);
        gaps
    }
}

impl DeviceUse {
    /// Returns the use in words, with the device's name in front.
    #[must_use]
    pub fn describe(&self, name: &str) -> String {
        format!(
            "{name}: {:.1} % busy of {:.3} s; idle {:.3} s in {} gap(s)",
            self.utilisation() * 100.0,
            self.total().as_secs_f64(),
            self.idle().as_secs_f64(),
            self.gaps.len(),
        )
    }
}

impl fmt::Display for DeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&format!("device {}", self.device)))
    }
}

/// Returns the use of each device, in the order of their indices. Leaves out spans
/// without a device, and devices that were never busy.
#[must_use]
pub fn device_use(spans: &[Span]) -> Vec<DeviceUse> {
    let mut regions: BTreeMap<usize, Vec<(Duration, Duration)>> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.stage.is_busy()) {
        if let Some(device) = span.device {
            let regions = regions.entry(device).or_default();
            regions.push((span.start, span.end.max(span.start)));
        }
    }
    regions
        .into_iter()
        .filter_map(|(device, regions)| one_device(device, regions))
        .collect()
}

fn one_device(device: usize, mut regions: Vec<(Duration, Duration)>) -> Option<DeviceUse> {
    regions.sort_unstable();
    let &(start, _) = regions.first()?;
    let mut busy_until = start;
    let mut gaps = Vec::new();
    for (region_start, region_end) in regions {
        if region_start > busy_until {
            gaps.push(Gap {
                start: busy_until,
                length: region_start - busy_until,
            });
        }
        busy_until = busy_until.max(region_end);
    }
    let idle: Duration = gaps.iter().map(|gap| gap.length).sum();
    Some(DeviceUse {
        device,
        start,
        end: busy_until,
        busy: busy_until - start - idle,
        gaps,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Lane, Stage};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn region(device: usize, start_ms: u64, end_ms: u64) -> Span {
        Span {
            job: Some(0),
            partition: Some(0),
            device: Some(device),
            stage: Stage::Device,
            served: None,
            stood_aside: None,
            lane: Lane::new("dev"),
            start: ms(start_ms),
            end: ms(end_ms),
        }
    }

    fn gap(start_ms: u64, length_ms: u64) -> Gap {
        Gap {
            start: ms(start_ms),
            length: ms(length_ms),
        }
    }

    #[test]
    fn no_spans_are_no_device() {
        assert!(device_use(&[]).is_empty());
        let mut elsewhere = region(0, 1, 2);
        elsewhere.device = None;
        let mut other = region(0, 1, 2);
        other.stage = Stage::Msm;
        assert!(device_use(&[elsewhere, other]).is_empty());
    }

    #[test]
    fn one_span_has_no_gap() {
        let used = &device_use(&[region(3, 10, 25)])[0];
        assert_eq!((used.device, used.start, used.end), (3, ms(10), ms(25)));
        assert_eq!((used.busy, used.idle()), (ms(15), Duration::ZERO));
        assert_eq!((used.utilisation(), used.gaps.len()), (1.0, 0));
    }

    #[test]
    fn a_span_of_no_length_was_not_idle() {
        let used = &device_use(&[region(0, 10, 10)])[0];
        assert_eq!((used.total(), used.busy), (Duration::ZERO, Duration::ZERO));
        assert_eq!(used.utilisation(), 1.0);
    }

    #[test]
    fn overlaps_count_once_and_gaps_are_between_unions() {
        let spans = [
            region(0, 100, 120),
            region(0, 40, 70),
            region(0, 50, 60), // inside another
            region(0, 20, 40), // touches the next
            region(0, 10, 25), // overlaps the next
            region(0, 75, 75), // nothing, but it cuts a gap in two
            region(1, 0, 500),
        ];
        let used = device_use(&spans);
        assert_eq!(used.len(), 2);
        assert_eq!((used[0].start, used[0].end), (ms(10), ms(120)));
        assert_eq!((used[0].busy, used[0].idle()), (ms(80), ms(30)));
        assert_eq!(used[0].gaps, [gap(70, 5), gap(75, 25)]);
        assert_eq!(used[0].longest_gaps(1), [gap(75, 25)]);
        assert_eq!(used[0].utilisation(), 80.0 / 110.0);
        assert_eq!(used[1].utilisation(), 1.0);
        assert_eq!(
            used[0].to_string(),
            "device 0: 72.7 % busy of 0.110 s; idle 0.030 s in 2 gap(s)"
        );
    }

    /// Returns the use of device 0, counted millisecond by millisecond.
    fn brute_force(regions: &[(u64, u64)]) -> Option<DeviceUse> {
        let start = regions.iter().map(|region| region.0).min()?;
        let end = regions.iter().map(|region| region.1).max()?;
        let is_busy = |at| (regions.iter()).any(|region| (region.0..region.1).contains(&at));
        // A region of no length still ends a gap.
        let starts = |at| regions.iter().any(|region| region.0 == at);
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        for at in (start..end).filter(|&at| !is_busy(at)) {
            match gaps.last_mut() {
                Some((from, length)) if *from + *length == at && !starts(at) => *length += 1,
                _ => gaps.push((at, 1)),
            }
        }
        Some(DeviceUse {
            device: 0,
            start: ms(start),
            end: ms(end),
            busy: ms((start..end).filter(|&at| is_busy(at)).count() as u64),
            gaps: gaps.iter().map(|&(at, long)| gap(at, long)).collect(),
        })
    }

    proptest! {
        #[test]
        fn equals_counting_milliseconds(
            regions in prop::collection::vec((0u64..60, 0u64..12), 0..14)
        ) {
            let regions: Vec<_> = regions.iter().map(|&(at, long)| (at, at + long)).collect();
            let spans: Vec<_> = regions.iter().map(|&(at, end)| region(0, at, end)).collect();
            let used = device_use(&spans).into_iter().next();
            if let Some(used) = &used {
                let idle: Duration = used.gaps.iter().map(|gap| gap.length).sum();
                prop_assert_eq!(used.busy + idle, used.total());
            }
            prop_assert_eq!(used, brute_force(&regions));
        }
    }
}
