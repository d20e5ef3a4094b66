//! A number of threads, chosen by measured times.
//!
//! The criterion is the combined throughput. For each side, its rate beside the other
//! is divided by its rate alone on all threads; the two quotients are added. Source:
//! the weighted speedup of Snavely and Tullsen, "Symbiotic jobscheduling", ASPLOS 2000.
//!
//! Two sides that do not disturb each other have a combined throughput of 2; two that
//! take turns have 1. Figures are compared within a round, in which each number of
//! threads has its turn. So a slow minute of the machine is slow for all of them.

/// The times of one number of threads: one entry for each round, in seconds for a piece
/// of work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// The side whose threads are counted, alone.
    pub alone_s: Vec<f64>,
    /// The side whose threads are counted, beside the other side.
    pub beside_s: Vec<f64>,
    /// The other side, beside it.
    pub other_beside_s: Vec<f64>,
}

/// The times of all numbers of threads.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sweep {
    /// The other side alone: one entry for each round, in seconds for a piece of work.
    pub other_alone_s: Vec<f64>,
    /// Numbers of threads with their times, the fewest threads first. The last is all
    /// threads.
    pub points: Vec<(usize, Point)>,
}

/// The number of threads to use, with the evidence for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The entry of [`Sweep::points`] to use.
    pub at: usize,
    /// The entry with the best median. Differs from `at` if too few rounds show that it
    /// is better than all threads.
    pub best: usize,
    /// The number of rounds in which the best entry was better than all threads.
    pub better_rounds: usize,
}

impl Sweep {
    /// Returns the combined throughput of an entry, round by round.
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

    /// Chooses all threads, unless another number is better in so many rounds that
    /// chance does not explain it. The number of tries is taken into account. Returns
    /// `None` if nothing was measured.
    pub fn choose(&self) -> Option<Choice> {
        let medians: Vec<f64> = (0..self.points.len())
            .map(|at| median(&self.combined(at)))
            .collect::<Option<_>>()?;
        let (best, _) = (medians.iter().enumerate()).max_by(|a, b| a.1.total_cmp(b.1))?;
        let all = medians.len() - 1;
        let pairs = self.combined(best).into_iter().zip(self.combined(all));
        let ratios: Vec<f64> = pairs.map(|(best, all)| best / all).collect();
        Some(Choice {
            at: if is_better(&ratios, all.max(1)) {
                best
            } else {
                all
            },
            best,
            better_rounds: ratios.iter().filter(|&&ratio| ratio > 1.0).count(),
        })
    }
}

/// The accepted chance of calling something better that is not.
const CHANCE_MAX: f64 = 0.05;

/// Returns true if enough of the ratios are above 1 to call the measured arm better,
/// and not lucky. There is one ratio for each round.
///
/// This is a one-sided sign test. The arm is the best of `tried` arms that were
/// compared alike, of which each could have been lucky (Bonferroni).
pub fn is_better(ratios: &[f64], tried: usize) -> bool {
    let better = ratios.iter().filter(|&&ratio| ratio > 1.0).count();
    let told = ratios.iter().filter(|&&ratio| ratio != 1.0).count();
    told > 0 && chance_of_heads(better, told) * tried as f64 <= CHANCE_MAX
}

/// Returns the chance of `heads` heads or more among `coins`.
fn chance_of_heads(heads: usize, coins: usize) -> f64 {
    const UNIT_BITS: usize = 63;
    const UNIT: f64 = (1u64 << UNIT_BITS) as f64;
    // `ways` is the number of the 2^`coins` outcomes with exactly so many heads;
    // `all_ways` those with that many or more. Both are divided by 2^`unit_bits`,
    // because an `f64` cannot hold the largest numbers.
    let (mut ways, mut all_ways) = (1.0, 0.0);
    let mut unit_bits = 0;
    for heads in (heads..=coins).rev() {
        all_ways += ways;
        // There are as many ways to choose the tails.
        let tails = coins - heads;
        ways *= heads as f64 / (tails + 1) as f64;
        if all_ways > UNIT {
            (ways, all_ways) = (ways / UNIT, all_ways / UNIT);
            unit_bits += UNIT_BITS;
        }
    }
    // A chance too small for an `f64` counts as 0.
    let bits = i32::try_from(coins - unit_bits).unwrap_or(i32::MAX);
    all_ways * 0.5f64.powi(bits)
}

/// Returns the median: of an even number of values, the mean of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

/// Returns the numbers of threads to try, up to `most`: 1, 2, 3, 4, 6, 8, 12 and so on,
/// and `most` itself.
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

    /// Returns a sweep in which both sides take a second alone on all threads. `noise`
    /// is the factor by which each round is off.
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
        let exact = [1.0; 6];
        let beside = [(1, 4.0, 1.25), (2, 2.0, 1.3), (4, 2.0, 2.0)];
        let choice = sweep(&beside, &exact).choose().unwrap();
        assert_eq!((choice.at, choice.best, choice.better_rounds), (1, 1, 6));
    }

    #[test]
    fn without_evidence_all_threads_are_chosen() {
        // One thread is better, but the result of so few rounds may be luck.
        let beside = [(1, 2.0, 1.9), (2, 2.0, 2.0)];
        for (rounds, at) in [(1, 1), (4, 1), (5, 0)] {
            let choice = sweep(&beside, &vec![1.0; rounds]).choose().unwrap();
            assert_eq!((choice.at, choice.best), (at, 0), "{rounds}");
        }
        // The more numbers are tried, the luckier the best of them is.
        let more = [(1, 2.0, 1.9), (2, 2.0, 2.0), (3, 2.0, 2.0)];
        assert_eq!(sweep(&more, &[1.0; 5]).choose().unwrap().at, 2);
        assert_eq!(sweep(&more, &[1.0; 6]).choose().unwrap().at, 0);
    }

    /// All threads are as good as one on average. So another number may not be chosen
    /// more often than the accepted chance.
    #[test]
    fn luck_is_hardly_ever_taken_for_a_gain() {
        // The high bits of a linear congruential generator, as noise of 5 %.
        let mut state = 1u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            1.0 + 0.1 * (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let mut lucky = 0;
        for _ in 0..2000 {
            let mut point = || Point {
                alone_s: vec![1.0; 9],
                beside_s: (0..9).map(|_| noise()).collect(),
                other_beside_s: vec![2.0; 9],
            };
            let points = [1, 2, 3, 4].map(|threads| (threads, point()));
            let sweep = Sweep {
                other_alone_s: vec![1.0; 9],
                points: points.to_vec(),
            };
            lucky += usize::from(sweep.choose().unwrap().at != 3);
        }
        assert!((1..100).contains(&lucky), "{lucky} of 2000");
    }

    #[test]
    fn signs_say_what_coins_cannot() {
        let ratios = |above: usize, below: usize| [vec![1.1; above], vec![0.9; below]].concat();
        // The chances are 1/32; 7/64; 2/256, 9/256 and 37/256: of 5, 6 and 8 coins.
        for (above, below, better) in [(5, 0, true), (5, 1, false), (8, 0, true), (7, 1, true)] {
            assert_eq!(
                is_better(&ratios(above, below), 1),
                better,
                "{above} {below}"
            );
        }
        assert!(!is_better(&ratios(6, 2), 1));
        assert!(!is_better(&ratios(5, 0), 2));
        assert!(!is_better(&ratios(0, 0), 1) && !is_better(&[1.0; 9], 1));
        assert!(!is_better(&ratios(0, 9), 1));
    }

    /// Tests more coins than an `f64` has powers of two. The fewest sufficient heads
    /// were counted in integers.
    #[test]
    fn signs_are_told_of_any_number_of_rounds() {
        let ratios = |above: usize, below: usize| [vec![1.1; above], vec![0.9; below]].concat();
        for (rounds, fewest) in [
            (1000, 527),
            (1074, 565),
            (1075, 565),
            (2000, 1038),
            (5000, 2559),
            (20_000, 10_117),
        ] {
            let is_better = |above: usize| is_better(&ratios(above, rounds - above), 1);
            assert!(is_better(fewest) && !is_better(fewest - 1), "{rounds}");
            assert!(is_better(rounds) && !is_better(0), "{rounds}");
        }
        for coins in [1, 62, 63, 64, 126, 1000, 1075, 20_000] {
            let sure = chance_of_heads(0, coins);
            assert!((sure - 1.0).abs() < 1e-9, "{coins}: {sure}");
        }
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
