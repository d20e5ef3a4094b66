//! Two sides of a stage, measured in turns, and their line.

use std::time::Instant;

use serde::Serialize;

use crate::failure::Failure;
use cuzk_tune::machine::Host;

/// The line of one stage: our time, and that of a peer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Comparison {
    pub(super) stage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    /// The circuit's sector size, or the length of the vectors.
    pub(super) size: String,
    pub(super) threads: usize,
    pub(super) ours_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<f64>,
    /// Our speed by that with the first number of threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scaling: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ours_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peer_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) machine: Option<Host>,
}

impl Comparison {
    /// Returns the line of a stage that no peer has.
    pub(super) fn alone(stage: &'static str, size: String, seconds: Vec<f64>) -> Self {
        Self {
            stage,
            size,
            threads: rayon::current_num_threads(),
            ours_s: median(seconds),
            ..Self::default()
        }
    }
}

/// The medians of alternating runs, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medians {
    pub(crate) ours_s: f64,
    pub(crate) peer_s: f64,
}

impl Medians {
    /// Returns the line of a stage that `peer` has, too.
    pub(super) fn into_comparison(
        self,
        stage: &'static str,
        size: String,
        peer: &'static str,
    ) -> Comparison {
        Comparison {
            stage,
            size,
            threads: rayon::current_num_threads(),
            ours_s: self.ours_s,
            peer: Some(peer),
            peer_s: Some(self.peer_s),
            ratio: Some(self.peer_s / self.ours_s),
            ..Comparison::default()
        }
    }
}

/// Runs both sides `runs` times, alternating, and returns the medians.
pub(crate) fn alternate<A, B>(
    runs: u32,
    mut ours: impl FnMut() -> Result<A, Failure>,
    mut peer: impl FnMut() -> Result<B, Failure>,
) -> Result<Medians, Failure> {
    let (mut ours_s, mut peer_s) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        ours_s.push(seconds(&mut ours)?);
        peer_s.push(seconds(&mut peer)?);
    }
    Ok(Medians {
        ours_s: median(ours_s),
        peer_s: median(peer_s),
    })
}

/// Runs a stage once, and then `runs` times. Returns the line of the times after the first.
pub(super) fn without_peer<T>(
    stage: &'static str,
    size: String,
    runs: u32,
    mut ours: impl FnMut() -> Result<T, Failure>,
) -> Result<Vec<Comparison>, Failure> {
    drop(ours()?);
    let times: Result<Vec<f64>, Failure> = (0..runs).map(|_| seconds(&mut ours)).collect();
    Ok(vec![Comparison::alone(stage, size, times?)])
}

/// Returns the duration of `work`. Its result is dropped after the clock has stopped.
pub(crate) fn seconds<T>(work: &mut impl FnMut() -> Result<T, Failure>) -> Result<f64, Failure> {
    let started = Instant::now();
    let result = work()?;
    let seconds = started.elapsed().as_secs_f64();
    drop(result);
    Ok(seconds)
}

/// Returns the median; of an even number of values the mean of the middle two.
pub(super) fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    let (low, high) = (seconds[(seconds.len() - 1) / 2], seconds[seconds.len() / 2]);
    f64::midpoint(low, high)
}

fn bytes_text(comparison: &Comparison) -> Option<String> {
    let (ours_bytes, peer_bytes) = (comparison.ours_bytes?, comparison.peer_bytes?);
    Some(format!(", {ours_bytes} bytes to {peer_bytes}"))
}

/// Returns the failure of a stage whose two sides disagree. Nothing is measured then.
pub(crate) fn differs(stage: &str) -> Failure {
    Failure::failed(format!(
        "{stage}: the peer's result differs from ours; please report it"
    ))
}

/// Returns the line for people.
pub(super) fn text(comparison: &Comparison) -> String {
    let what = match &comparison.kind {
        Some(kind) => format!("{} {kind} {}", comparison.stage, comparison.size),
        None => format!("{} {}", comparison.stage, comparison.size),
    };
    let ours = format!(
        "{what}, {} thread(s): {:.3} s",
        comparison.threads, comparison.ours_s
    );
    let ours = match comparison.scaling {
        Some(scaling) => format!("{ours} (scaling {scaling:.2})"),
        None => ours,
    };
    match (comparison.peer, comparison.peer_s, comparison.ratio) {
        (Some(peer), Some(peer_s), Some(ratio)) => {
            let bytes = bytes_text(comparison).unwrap_or_default();
            format!("{ours}, {peer} {peer_s:.3} s, ratio {ratio:.2}{bytes}")
        }
        // A part and its whole have no ratio that says more than the share does.
        (Some(peer), Some(peer_s), None) => format!("{ours}, {peer} {peer_s:.3} s"),
        _ => match (
            comparison.peer,
            comparison.ours_bytes,
            comparison.peer_bytes,
        ) {
            (Some(peer), Some(ours_bytes), Some(peer_bytes)) => {
                format!("{ours}, {ours_bytes} bytes, {peer} {peer_bytes} bytes")
            }
            _ => ours,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_whole_has_no_ratio() {
        let line = Comparison {
            stage: "overhead",
            size: "0.20 % of the proof".to_owned(),
            threads: 2,
            ours_s: 0.001,
            peer: Some("the whole proof"),
            peer_s: Some(0.5),
            ..Comparison::default()
        };
        let expected =
            "overhead 0.20 % of the proof, 2 thread(s): 0.001 s, the whole proof 0.500 s";
        assert_eq!(text(&line), expected);
        assert_eq!(serde_json::to_value(&line).unwrap().get("ratio"), None);
    }

    #[test]
    fn the_median_of_even_and_odd_counts() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
