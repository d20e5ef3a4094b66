//! One measurement of a setting.

use std::collections::BTreeMap;

use cuzk_core::timeline::{Span, Stage};
use cuzk_tune::counters::Usage;
use serde::{Deserialize, Serialize};

use super::gaps::DeviceTime;
use crate::memory::{huge_page_share, peak_rss_bytes};

/// The bytes that a miss of the last cache moves.
const LINE_BYTES: f64 = 64.0;

/// One measurement. A count that the machine does not offer is `None`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// The time of all proofs together, by their number.
    pub(super) s_per_proof: f64,
    /// The time of each proof, from its submission to its end, in order of size.
    pub(super) prove_s: Vec<f64>,
    /// Device time of a partition.
    pub(super) device_s: f64,
    pub(super) utilisation: f64,
    pub(super) idle_s: f64,
    pub(super) gaps: f64,
    pub(super) longest_gap_s: f64,
    pub(super) idle_causes: BTreeMap<String, f64>,
    /// Seconds of each stage, of one partition.
    pub(super) stages: BTreeMap<String, f64>,
    /// Processor time of a proof.
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    /// Counts of a proof.
    pub(super) page_faults: f64,
    pub(super) tlb_shootdowns: Option<f64>,
    pub(super) dtlb_misses: Option<f64>,
    /// Bytes a second that misses of the last cache moved.
    pub(super) bytes_per_s: Option<f64>,
    pub(super) peak_rss_bytes: Option<u64>,
    /// The share of this process's own memory that is on huge pages.
    pub(super) huge_page_share: Option<f64>,
}

impl Sample {
    /// Returns the sample of proofs that took `whole_s` seconds together.
    pub(super) fn new(whole_s: f64, mut prove_s: Vec<f64>, spans: &[Span], usage: &Usage) -> Self {
        let proofs = prove_s.len().max(1) as f64;
        prove_s.sort_by(f64::total_cmp);
        let time = DeviceTime::of(spans);
        let regions = spans.iter().filter(|span| span.stage == Stage::Device);
        let partitions = regions.count().max(1) as f64;
        let mut stages = BTreeMap::new();
        for span in spans {
            let seconds: &mut f64 = stages.entry(span.stage.name().to_owned()).or_default();
            *seconds += span.length().as_secs_f64() / partitions;
        }
        let of_proof = |count: u64| count as f64 / proofs;
        Self {
            s_per_proof: whole_s / proofs,
            prove_s,
            device_s: stages
                .get(Stage::Device.name())
                .copied()
                .unwrap_or_default(),
            utilisation: time.utilisation,
            idle_s: time.idle_s,
            gaps: time.gaps as f64,
            longest_gap_s: time.longest_gap_s,
            idle_causes: time.causes,
            stages,
            user_s: usage.user.as_secs_f64() / proofs,
            system_s: usage.system.as_secs_f64() / proofs,
            page_faults: of_proof(usage.page_faults),
            tlb_shootdowns: usage.tlb_shootdowns.map(of_proof),
            dtlb_misses: usage.dtlb_misses.map(of_proof),
            bytes_per_s: usage
                .cache_misses
                .map(|misses| misses as f64 * LINE_BYTES / whole_s),
            peak_rss_bytes: peak_rss_bytes(),
            huge_page_share: huge_page_share(),
        }
    }

    /// Returns the mean time of a proof from its submission.
    pub(super) fn mean_prove_s(&self) -> f64 {
        self.prove_s.iter().sum::<f64>() / self.prove_s.len().max(1) as f64
    }

    /// Returns the time that 95 % of the proofs did not exceed.
    pub(super) fn p95_prove_s(&self) -> f64 {
        let rank = (self.prove_s.len() * 95).div_ceil(100).max(1);
        self.prove_s.get(rank - 1).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_measured_value() {
        let of = |proofs: usize| Sample {
            prove_s: (1..=proofs).map(|second| second as f64).collect(),
            ..Sample::default()
        };
        assert_eq!(of(20).p95_prove_s(), 19.0);
        assert_eq!(of(10).p95_prove_s(), 10.0);
        assert_eq!(of(1).p95_prove_s(), 1.0);
        assert_eq!(of(0).p95_prove_s(), 0.0);
        assert_eq!(of(3).mean_prove_s(), 2.0);
    }
}
