//! A number of threads, chosen by what was measured.
//!
//! What counts is the combined throughput: the rate of each side beside the
//! other by its rate alone on all threads, added up (the weighted speedup of
//! Snavely and Tullsen, "Symbiotic jobscheduling", ASPLOS 2000). Two sides that
//! do not disturb each other have 2, two that take turns have 1. Figures are
//! compared within a round, in which all numbers of threads have their turn, so
//! that a slow minute of the machine is slow for all of them.

/// What was measured with one number of threads, an entry a round, in seconds
/// a piece of work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// The side whose threads are counted, alone.
    pub alone_s: Vec<f64>,
    /// The same beside the other side.
    pub beside_s: Vec<f64>,
    /// The other side beside it.
    pub other_beside_s: Vec<f64>,
}

/// All numbers of threads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sweep {
    /// The other side alone, an entry a round, in seconds a piece of work.
    pub other_alone_s: Vec<f64>,
    /// Numbers of threads with what was measured, the fewest first; the last is
    /// all threads.
    pub points: Vec<(usize, Point)>,
}

/// The number of threads to use, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Which entry of [`Sweep::points`] to use.
    pub at: usize,
    /// Which has the best median; another one than `at` if the two cannot be
    /// told apart.
    pub best: usize,
    /// How far rounds are from the best one's median: less is noise.
    pub noise: f64,
}

impl Sweep {
    /// The combined throughput of an entry, round by round.
    pub fn combined(&self, at: usize) -> Vec<f64> {
        let (Some((_, point)), Some((_, all))) = (self.points.get(at), self.points.last()) else {
            return Vec::new();
        };
        let own = all.alone_s.iter().zip(&point.beside_s);
        let other = self.other_alone_s.iter().zip(&point.other_beside_s);
        own.zip(other)
            .map(|((alone, beside), (other_alone, other_beside))| {
                alone / beside + other_alone / other_beside
            })
            .collect()
    }

    /// The most threads among those whose combined throughput cannot be told
    /// from the best one's: with nothing to choose between two numbers, the
    /// larger one is done sooner where no other work is there. `None` if
    /// nothing was measured.
    pub fn choose(&self) -> Option<Choice> {
        let medians: Vec<f64> = (0..self.points.len())
            .map(|at| median(&self.combined(at)))
            .collect::<Option<_>>()?;
        let (best, &most) = (medians.iter().enumerate()).max_by(|a, b| a.1.total_cmp(b.1))?;
        let deviations = self.combined(best);
        let deviations: Vec<f64> = deviations
            .iter()
            .map(|value| (value - most).abs())
            .collect();
        let noise = median(&deviations)?;
        let at = medians.iter().rposition(|&value| value >= most - noise)?;
        Some(Choice { at, best, noise })
    }
}

/// The median; of an even number of values the mean of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// Numbers of threads to try, up to `most`: 1, 2, 3, 4, 6, 8, 12 and so on, and
/// `most` itself.
pub fn thread_counts(most: usize) -> Vec<usize> {
    let doubling = std::iter::successors(Some(1usize), |threads| threads.checked_mul(2));
    let doubling = doubling.flat_map(|threads| [threads, threads.saturating_add(threads / 2)]);
    let mut counts: Vec<usize> = doubling.take_while(|&threads| threads < most).collect();
    counts.dedup();
    counts.push(most.max(1));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alone on all threads both sides take a second, and a round is off by as
    /// much as `noise` says.
    fn sweep(beside: &[(usize, f64, f64)], noise: &[f64]) -> Sweep {
        let rounds = |value: f64| noise.iter().map(|noise| value * noise).collect();
        let point = |&(threads, own, other): &(usize, f64, f64)| {
            let point = Point {
                alone_s: vec![1.0; noise.len()],
                beside_s: rounds(own),
                other_beside_s: rounds(other),
            };
            (threads, point)
        };
        Sweep {
            other_alone_s: vec![1.0; noise.len()],
            points: beside.iter().map(point).collect(),
        }
    }

    #[test]
    fn rates_add_up() {
        let sweep = sweep(&[(1, 4.0, 1.25), (2, 2.0, 2.0)], &[1.0]);
        assert_eq!(sweep.combined(0), [1.05]);
        assert_eq!(sweep.combined(1), [1.0]);
        assert!(sweep.combined(2).is_empty());
    }

    #[test]
    fn the_best_is_chosen() {
        let exact = [1.0; 3];
        let beside = [(1, 4.0, 1.25), (2, 2.0, 1.3), (4, 2.0, 2.0)];
        let choice = sweep(&beside, &exact).choose().unwrap();
        assert_eq!((choice.at, choice.best, choice.noise), (1, 1, 0.0));
    }

    #[test]
    fn what_cannot_be_told_apart_leaves_more_threads() {
        let beside = [(1, 2.0, 1.9), (2, 2.0, 2.0)];
        assert_eq!(sweep(&beside, &[1.0; 5]).choose().unwrap().at, 0);
        let noisy = sweep(&beside, &[0.8, 0.9, 1.0, 1.1, 1.2]).choose().unwrap();
        assert_eq!((noisy.at, noisy.best), (1, 0));
        assert!(noisy.noise > 0.05);
    }

    #[test]
    fn nothing_measured_chooses_nothing() {
        assert_eq!(Sweep::default().choose(), None);
        assert_eq!(sweep(&[(1, 1.0, 1.0)], &[]).choose(), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn thread_counts_end_with_all() {
        assert_eq!(thread_counts(0), [1]);
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(10), [1, 2, 3, 4, 6, 8, 10]);
        assert_eq!(thread_counts(16), [1, 2, 3, 4, 6, 8, 12, 16]);
    }
}
