//! How a criterion target was started. The only place that reads arguments
//! and the environment.

use cuzk_tune::sweep;
use std::{env, path::PathBuf, thread::available_parallelism};

/// The way in which a target was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Measure: `cargo bench`.
    Measure,
    /// Run everything once, as small as it can be: `cargo test --benches`.
    Smoke,
    /// Name the benchmarks and run nothing.
    List,
}

impl Mode {
    /// The mode that criterion would choose from these arguments.
    fn of(args: impl Iterator<Item = String>) -> Self {
        let mut mode = Mode::Smoke;
        for arg in args {
            match arg.as_str() {
                "--list" => return Mode::List,
                "--test" => return Mode::Smoke,
                "--bench" => mode = Mode::Measure,
                _ => {}
            }
        }
        mode
    }

    /// This process's.
    pub fn current() -> Self {
        Self::of(Self::arguments())
    }

    /// The arguments of this process.
    pub fn arguments() -> impl Iterator<Item = String> {
        env::args().skip(1)
    }

    /// One of two sizes of the work: when measuring, and otherwise.
    pub fn pick<T>(self, measure: T, smoke: T) -> T {
        match self {
            Mode::Measure => measure,
            Mode::Smoke | Mode::List => smoke,
        }
    }

    /// How often to run each arm: `rounds` when measuring, once to smoke, and
    /// never to list.
    pub fn rounds(self, rounds: usize) -> usize {
        match self {
            Mode::Measure => rounds,
            Mode::Smoke => 1,
            Mode::List => 0,
        }
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// 1, 2, 3, 4, 6 … and the number of cores.
pub fn thread_counts() -> Vec<usize> {
    sweep::thread_counts(cores())
}

/// Where to write a plot of this name, beside criterion's own output, if plots
/// are wanted: `CUZK_BENCH_SVG` is set.
pub fn plot_path(name: &str) -> Option<PathBuf> {
    env::var_os("CUZK_BENCH_SVG")?;
    // target/PROFILE/deps/TARGET-HASH
    let target = env::current_exe().ok()?.ancestors().nth(3)?.to_owned();
    Some(target.join("criterion").join(format!("{name}.svg")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_mean_what_criterion_means_by_them() {
        let of = |args: &str| Mode::of(args.split_whitespace().map(str::to_owned));
        assert_eq!(of(""), Mode::Smoke);
        assert_eq!(of("--bench"), Mode::Measure);
        assert_eq!(of("--bench --test"), Mode::Smoke);
        assert_eq!(of("some-filter --bench --list"), Mode::List);
        assert_eq!((Mode::Measure.rounds(7), Mode::List.rounds(7)), (7, 0));
        assert_eq!((Mode::Measure.pick(1, 2), Mode::Smoke.pick(1, 2)), (1, 2));
    }

    #[test]
    fn thread_counts_end_with_all_cores() {
        let counts = thread_counts();
        assert_eq!((counts[0], counts[counts.len() - 1]), (1, cores()));
        assert!(counts.is_sorted());
    }
}
