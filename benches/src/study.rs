//! Arms that are measured in turns.
//!
//! Criterion finishes with one benchmark before it starts the next, and a
//! shared machine changes in between. A study runs every arm once a round, in
//! rotating order, so that a change of the machine hits all arms. Then it
//! replays the samples to criterion, for its comparison with the run before.
//! With fewer than ten samples criterion sees some of them twice.

use crate::{Result, mode::Mode};
use criterion::{Criterion, SamplingMode};
use cuzk_tune::sweep;
use std::time::{Duration, Instant};

/// A measurement that has a duration, whatever else it has.
pub trait Timed {
    /// The duration that criterion is shown.
    fn wall(&self) -> Duration;
}

impl Timed for Duration {
    fn wall(&self) -> Duration {
        *self
    }
}

/// The work of an arm for one sample.
type Run<'a, T> = Box<dyn FnMut() -> Result<T> + 'a>;

struct Arm<'a, T> {
    name: String,
    run: Run<'a, T>,
    samples: Vec<T>,
}

/// Arms, and the samples of each.
pub struct Study<'a, T> {
    arms: Vec<Arm<'a, T>>,
}

impl<T> Default for Study<'_, T> {
    fn default() -> Self {
        Study { arms: Vec::new() }
    }
}

impl<'a, T: Timed> Study<'a, T> {
    /// A study without arms.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an arm; returns its number.
    pub fn arm(&mut self, name: impl Into<String>, run: impl FnMut() -> Result<T> + 'a) -> usize {
        self.arms.push(Arm {
            name: name.into(),
            run: Box::new(run),
            samples: Vec::new(),
        });
        self.arms.len() - 1
    }

    /// Runs every arm `rounds` times.
    ///
    /// # Errors
    /// The first error of an arm.
    pub fn run(&mut self, rounds: usize) -> Result<()> {
        let arms = self.arms.len();
        for round in 0..rounds {
            for turn in 0..arms {
                let arm = &mut self.arms[(round + turn) % arms];
                let sample = (arm.run)()?;
                arm.samples.push(sample);
            }
        }
        Ok(())
    }

    /// Runs every arm as often as the mode says and shows criterion the
    /// samples.
    ///
    /// # Errors
    /// The first error of an arm.
    pub fn bench(
        &mut self,
        criterion: &mut Criterion,
        group: &str,
        mode: Mode,
        rounds: usize,
    ) -> Result<()> {
        self.run(mode.rounds(rounds))?;
        let mut group = criterion.benchmark_group(group);
        group.sampling_mode(SamplingMode::Flat);
        group.warm_up_time(Duration::from_nanos(1));
        for arm in &self.arms {
            let walls: Vec<Duration> = arm.samples.iter().map(Timed::wall).collect();
            // Ten is criterion's least. It asks for many iterations, because a
            // replay takes no time: all of them are then the same sample.
            group.sample_size(walls.len().max(10));
            group.measurement_time(Duration::from_micros(10));
            let mut replay = walls.iter().cycle();
            group.bench_function(&arm.name, |bencher| {
                bencher.iter_custom(|iterations| {
                    let sample = replay.next().copied().unwrap_or_default();
                    let all = sample.as_secs_f64() * iterations as f64;
                    Duration::try_from_secs_f64(all).unwrap_or(Duration::MAX)
                });
            });
        }
        group.finish();
        Ok(())
    }

    /// The name of an arm.
    pub fn name(&self, arm: usize) -> &str {
        &self.arms[arm].name
    }

    /// The samples of an arm, in the order they were taken.
    pub fn samples(&self, arm: usize) -> &[T] {
        &self.arms[arm].samples
    }

    /// The median of something measured in an arm; `None` without samples.
    pub fn median(&self, arm: usize, of: impl Fn(&T) -> f64) -> Option<f64> {
        median(self.samples(arm).iter().map(of))
    }

    /// The median duration of an arm, in seconds.
    pub fn median_s(&self, arm: usize) -> Option<f64> {
        self.median(arm, |sample| sample.wall().as_secs_f64())
    }

    /// Returns the median over rounds of an arm's figure divided by another arm's in
    /// the same round. A slow minute of the machine does not change it.
    pub fn ratio(&self, arm: usize, to: usize, of: impl Fn(&T) -> f64) -> Option<f64> {
        let pairs = self.samples(arm).iter().zip(self.samples(to));
        median(pairs.map(|(sample, to)| of(sample) / of(to)))
    }
}

/// The median; of an even number of values the mean of the middle two.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    sweep::median(&values.collect::<Vec<_>>())
}

/// The mean.
pub fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

/// How long `work` takes.
pub fn time<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn arms_take_turns() {
        let order = RefCell::new(String::new());
        let mut study = Study::new();
        for name in ["a", "b", "c"] {
            let order = &order;
            study.arm(name, move || {
                order.borrow_mut().push_str(name);
                Ok(Duration::from_secs(order.borrow().len() as u64))
            });
        }
        study.run(3).unwrap();
        assert_eq!(*order.borrow(), "abcbcacab");
        assert_eq!(study.samples(0).len(), 3);
        assert_eq!(study.name(2), "c");
        // a: 1, 6, 8; b: 2, 4, 9.
        assert_eq!(study.median_s(0), Some(6.0));
        assert_eq!(
            study.ratio(1, 0, |wall| wall.as_secs_f64()),
            Some(9.0 / 8.0)
        );
    }

    #[test]
    fn the_first_error_ends_the_study() {
        let mut study = Study::<Duration>::new();
        study.arm("fails", || Err("as it must".into()));
        assert_eq!(study.run(2).unwrap_err().to_string(), "as it must");
        assert_eq!(study.median_s(0), None);
    }

    #[test]
    fn middles_and_means() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
        assert_eq!(mean([1.0, 2.0, 6.0].into_iter()), Some(3.0));
        assert_eq!(mean(std::iter::empty()), None);
    }
}
