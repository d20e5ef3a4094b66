//! The samples of one load on all numbers of threads, their rows and their plot.

use crate::{
    child::LazyChild,
    load::{Load, Way},
    sample::Sample,
};
use benches::{
    Result,
    g2::Kernel,
    mode::{Mode, thread_counts},
    plot::{self, Line},
    study::Study,
    table,
};
use criterion::Criterion;
use cuzk_tune::sweep::{Point, Sweep, median};
use std::rc::Rc;

/// One or two other settings than all cores are told from luck by 8 of 9.
const ROUNDS: usize = 9;

/// One kernel on one number of threads, and one way beside it.
struct Arms {
    kernel: Kernel,
    threads: usize,
    way: Way,
    /// The arm of the MSM alone.
    msm: usize,
    both: usize,
}

/// The samples of one load.
pub(crate) struct Measured<'a> {
    load: Load,
    study: Study<'a, Sample>,
    /// The arm of the other side alone.
    other: usize,
    arms: Vec<Arms>,
}

/// Measures `load`, which is at place `at` in the mode's loads.
pub(crate) fn measure(
    mode: Mode,
    at: usize,
    load: Load,
    criterion: &mut Criterion,
) -> Result<Measured<'static>> {
    let mut study = Study::new();
    let (mut arms, mut other) = (Vec::new(), None);
    for &kernel in load.kernels {
        for threads in thread_counts() {
            let child = Rc::new(LazyChild::new(kernel, threads, mode, at));
            let mut arm = |question: &'static str, name: String| {
                let child = Rc::clone(&child);
                study.arm(name, move || child.ask(question))
            };
            // It does not depend on the kernel and its threads.
            other.get_or_insert_with(|| arm("other", load.other.name().to_owned()));
            let name = |of| format!("{}/{threads} threads/{of}", kernel.name());
            let msm = arm("sum", name("alone"));
            for way in Way::ALL {
                if way.differs(threads) {
                    arms.push(Arms {
                        kernel,
                        threads,
                        way,
                        msm,
                        both: arm(way.name(), name(way.name())),
                    });
                }
            }
        }
    }
    let group = format!("gpu_threads/{}/{}", load.scalars.name(), load.other.name());
    study.bench(criterion, &group, mode, ROUNDS)?;
    Ok(Measured {
        load,
        study,
        other: other.ok_or("there are no threads")?,
        arms,
    })
}

impl Measured<'_> {
    fn of(&self, kernel: Kernel) -> impl Iterator<Item = &Arms> {
        self.arms.iter().filter(move |arms| arms.kernel == kernel)
    }

    /// Returns every number of threads and way. The last is all threads, while the other
    /// side makes no room.
    fn sweep(&self, kernel: Kernel) -> Sweep {
        let all =
            |arm: usize, of: fn(&Sample) -> f64| self.study.samples(arm).iter().map(of).collect();
        let point = |arms: &Arms| Point {
            alone_s: all(arms.msm, Sample::msm_s),
            beside_s: all(arms.both, Sample::msm_s),
            other_beside_s: all(arms.both, Sample::other_s),
        };
        Sweep {
            other_alone_s: all(self.other, Sample::other_s),
            points: (self.of(kernel).map(|arms| (arms.threads, point(arms)))).collect(),
        }
    }

    /// Returns the rows of the table. A star marks the best setting of each kernel.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let rows = self.load.kernels.iter().flat_map(|&kernel| {
            let sweep = self.sweep(kernel);
            let chosen = sweep.choose().map(|choice| choice.at);
            let arms = self.of(kernel).enumerate();
            let row = |(at, arms)| self.row(arms, &sweep.combined(at), chosen == Some(at));
            arms.map(row).collect::<Vec<_>>()
        });
        rows.collect()
    }

    fn row(&self, arms: &Arms, combined: &[f64], chosen: bool) -> Vec<String> {
        let (study, load) = (&self.study, self.load);
        let buckets = (arms.kernel).bucket_bytes(load.scalars, load.points, arms.threads);
        let slow_down = study.ratio(arms.both, self.other, Sample::other_s);
        vec![
            format!("{} {}", load.scalars.name(), load.points),
            load.other.name().to_owned(),
            arms.kernel.name().to_owned(),
            arms.threads.to_string(),
            arms.way.name().to_owned(),
            table::figure(study.median(arms.msm, Sample::msm_s), table::seconds),
            table::figure(study.median(arms.both, Sample::msm_s), table::seconds),
            table::figure(study.median(self.other, Sample::other_s), table::seconds),
            table::figure(study.median(arms.both, Sample::other_s), table::seconds),
            table::figure(slow_down, table::percent_over),
            table::figure(study.median(arms.both, Sample::preemptions), table::count),
            table::figure(median(combined), table::times) + if chosen { " *" } else { "" },
            table::mebibytes(buckets as f64),
        ]
    }

    /// Draws a plot of each kernel.
    pub(crate) fn draw(&self) -> Result<()> {
        (self.load.kernels.iter()).try_for_each(|&kernel| self.draw_kernel(kernel))
    }

    fn draw_kernel(&self, kernel: Kernel) -> Result<()> {
        let line = |name: String, way: Way, of: &dyn Fn(&Arms) -> Option<f64>| Line {
            name,
            points: (self.of(kernel).filter(|arms| arms.way == way))
                .filter_map(|arms| Some((arms.threads as f64, of(arms)?)))
                .collect(),
        };
        let (study, other) = (&self.study, self.load.other.name());
        let mut lines = vec![
            line("sum alone".to_owned(), Way::Beside, &|arms| {
                study.median(arms.msm, Sample::msm_s)
            }),
            line(format!("{other} alone"), Way::Beside, &|_| {
                study.median(self.other, Sample::other_s)
            }),
        ];
        for way in Way::ALL {
            let on = format!("{other}: {}", way.name());
            lines.push(line(format!("sum, {on}"), way, &|arms| {
                study.median(arms.both, Sample::msm_s)
            }));
            lines.push(line(on, way, &|arms| {
                study.median(arms.both, Sample::other_s)
            }));
        }
        let scalars = self.load.scalars.name();
        let name = format!("gpu_threads-{scalars}-{other}-{}", kernel.name());
        plot::draw(&name, "gpu_threads", "seconds", &lines)
    }
}
