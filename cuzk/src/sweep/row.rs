//! The result of a setting: medians over its rounds.

use std::collections::{BTreeMap, BTreeSet};

use cuzk_tune::sweep::{is_better, median};
use serde::Serialize;

use super::arm::{Arm, Setting};
use super::sample::Sample;
use super::state::State;

/// A stage of a partition.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StageRow {
    /// Seconds of one partition.
    pub(super) s: f64,
    /// Those by the seconds of the same arm with one proof in flight, if that was measured.
    pub(super) inflation: Option<f64>,
}

/// A row of the result. Figures without another name are medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) setting: Setting,
    pub(super) rounds: usize,
    pub(super) s_per_proof: f64,
    /// The distance of the slowest round from the fastest, by the median; `None` of one
    /// round.
    pub(super) noise: Option<f64>,
    /// Throughput by that of arm `none` in the same rounds.
    pub(super) ratio: Option<f64>,
    /// The rounds in which this arm was faster than arm `none`.
    pub(super) better_rounds: Option<usize>,
    /// True if enough rounds tell that it is faster, false if slower, `None` if neither.
    pub(super) faster: Option<bool>,
    /// Throughput by that of the same arm with one proof in flight.
    pub(super) of_isolation: Option<f64>,
    pub(super) mean_prove_s: f64,
    pub(super) p95_prove_s: f64,
    pub(super) device_s_per_partition: f64,
    pub(super) utilisation: f64,
    pub(super) idle_s: f64,
    pub(super) idle_gaps: f64,
    pub(super) longest_gap_s: f64,
    pub(super) idle_causes: BTreeMap<String, f64>,
    pub(super) stages: BTreeMap<String, StageRow>,
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    /// The most of all rounds.
    pub(super) peak_rss_bytes: Option<u64>,
    pub(super) page_faults: f64,
    pub(super) tlb_shootdowns: Option<f64>,
    pub(super) dtlb_misses: Option<f64>,
    pub(super) bytes_per_s: Option<f64>,
    pub(super) huge_page_share: Option<f64>,
}

impl Row {
    /// Returns the row of a setting, or `None` if it was not measured. `isolated` is the
    /// same arm with one proof in flight.
    pub(super) fn new(state: &State, setting: Setting, isolated: Setting) -> Option<Self> {
        let rounds = state.of(setting);
        let samples: Vec<&Sample> = rounds.iter().map(|(_, sample)| *sample).collect();
        let alone: Vec<&Sample> = state
            .of(isolated)
            .iter()
            .map(|(_, sample)| *sample)
            .collect();
        let off = Setting {
            arm: Arm::NONE,
            ..setting
        };
        let ratios = ratios(&rounds, &state.of(off));
        let middle = |of: &dyn Fn(&Sample) -> f64| middle(&samples, of);
        let counted = |of: &dyn Fn(&Sample) -> Option<f64>| {
            let counts: Option<Vec<f64>> = samples.iter().map(|sample| of(sample)).collect();
            median(&counts?)
        };
        let s_per_proof = middle(&|s| s.s_per_proof)?;
        let isolated_s = self::middle(&alone, &|s| s.s_per_proof);
        let has_ratios = !ratios.is_empty();
        Some(Self {
            setting,
            rounds: samples.len(),
            s_per_proof,
            noise: noise(&samples, s_per_proof),
            ratio: median(&ratios),
            better_rounds: has_ratios.then(|| ratios.iter().filter(|ratio| **ratio > 1.0).count()),
            faster: told(&ratios),
            of_isolation: isolated_s.map(|isolated_s| isolated_s / s_per_proof),
            mean_prove_s: middle(&Sample::mean_prove_s)?,
            p95_prove_s: middle(&Sample::p95_prove_s)?,
            device_s_per_partition: middle(&|s| s.device_s)?,
            utilisation: middle(&|s| s.utilisation)?,
            idle_s: middle(&|s| s.idle_s)?,
            idle_gaps: middle(&|s| s.gaps)?,
            longest_gap_s: middle(&|s| s.longest_gap_s)?,
            idle_causes: by_name(&samples, |s| &s.idle_causes),
            stages: stages(&samples, &alone),
            user_s: middle(&|s| s.user_s)?,
            system_s: middle(&|s| s.system_s)?,
            peak_rss_bytes: samples.iter().filter_map(|s| s.peak_rss_bytes).max(),
            page_faults: middle(&|s| s.page_faults)?,
            tlb_shootdowns: counted(&|s| s.tlb_shootdowns),
            dtlb_misses: counted(&|s| s.dtlb_misses),
            bytes_per_s: counted(&|s| s.bytes_per_s),
            huge_page_share: counted(&|s| s.huge_page_share),
        })
    }
}

fn middle(samples: &[&Sample], of: &dyn Fn(&Sample) -> f64) -> Option<f64> {
    median(&samples.iter().map(|sample| of(sample)).collect::<Vec<_>>())
}

/// Returns the throughput by that of the other arm, for each round that has both.
fn ratios(own: &[(u32, &Sample)], off: &[(u32, &Sample)]) -> Vec<f64> {
    let of_round = |round: u32| off.iter().find(|(other, _)| *other == round);
    let ratio = |(round, own): &(u32, &Sample)| {
        let (_, off) = of_round(*round)?;
        Some(off.s_per_proof / own.s_per_proof)
    };
    own.iter().filter_map(ratio).collect()
}

/// Returns true if the rounds tell that the arm is faster, false if slower.
fn told(ratios: &[f64]) -> Option<bool> {
    let inverses: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
    match (is_better(ratios, 1), is_better(&inverses, 1)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

fn noise(samples: &[&Sample], middle_s: f64) -> Option<f64> {
    let seconds = || samples.iter().map(|sample| sample.s_per_proof);
    let most = seconds().fold(f64::MIN, f64::max);
    let least = seconds().fold(f64::MAX, f64::min);
    (samples.len() > 1).then(|| (most - least) / middle_s)
}

/// Returns the medians of named figures. A figure that a sample lacks is zero there.
fn by_name(
    samples: &[&Sample],
    of: impl Fn(&Sample) -> &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let names: BTreeSet<&String> = samples
        .iter()
        .flat_map(|sample| of(sample).keys())
        .collect();
    let figure = |name: &String| {
        middle(samples, &|sample| {
            of(sample).get(name).copied().unwrap_or_default()
        })
    };
    let figures = names
        .into_iter()
        .filter_map(|name| Some((name.clone(), figure(name)?)));
    figures.collect()
}

fn stages(samples: &[&Sample], alone: &[&Sample]) -> BTreeMap<String, StageRow> {
    let alone = by_name(alone, |sample| &sample.stages);
    let stages = by_name(samples, |sample| &sample.stages).into_iter();
    let row = |(name, s): (String, f64)| {
        let alone_s = alone.get(&name).copied().filter(|alone_s| *alone_s > 0.0);
        let inflation = alone_s.map(|alone_s| s / alone_s);
        (name, StageRow { s, inflation })
    };
    stages.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arm::Pipeline;
    use super::super::state::{Measured, Subject};
    use super::*;

    fn state() -> State {
        let subject = Subject {
            version: String::new(),
            kind: String::new(),
            sector_size: String::new(),
            request: None,
            partitions: None,
            cores: 1,
            gpu_threads: None,
            double: None,
            config: String::new(),
        };
        State::open(None, &subject).unwrap()
    }

    fn setting(arm: &str, j: usize) -> Setting {
        Setting {
            pipeline: Pipeline::Ours,
            arm: arm.parse().unwrap(),
            c: 4,
            j,
        }
    }

    fn add(state: &mut State, setting: Setting, round: u32, s_per_proof: f64) {
        let stages = [("device".to_owned(), s_per_proof)].into();
        let sample = Sample {
            s_per_proof,
            stages,
            ..Sample::default()
        };
        let measured = Measured {
            setting,
            round,
            sample,
        };
        state.add(measured).unwrap();
    }

    #[test]
    fn rounds_are_compared_with_the_same_rounds() {
        let mut state = state();
        for round in 1..=5 {
            let slow = f64::from(round);
            add(&mut state, setting("none", 4), round, 2.0 * slow);
            add(&mut state, setting("1", 4), round, slow);
            add(&mut state, setting("1", 1), round, slow / 2.0);
        }
        let row = Row::new(&state, setting("1", 4), setting("1", 1)).unwrap();
        assert_eq!((row.ratio, row.better_rounds), (Some(2.0), Some(5)));
        assert_eq!(row.faster, Some(true));
        assert_eq!(row.of_isolation, Some(0.5));
        assert_eq!(row.stages["device"].inflation, Some(2.0));
        assert_eq!(row.noise, Some(4.0 / 3.0));
        let off = Row::new(&state, setting("none", 4), setting("none", 1)).unwrap();
        assert_eq!((off.faster, off.of_isolation), (None, None));
        assert!(off.stages["device"].inflation.is_none());
        assert!(Row::new(&state, setting("2", 4), setting("2", 1)).is_none());
    }
}
