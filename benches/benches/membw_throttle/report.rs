//! The tables and the plots.

use crate::{arm::Arm, load::Load, two_workers::Counts};
use benches::{
    Result,
    g2::Kernel,
    mode::cores,
    msm::Scalars,
    plot::{self, Line},
    table,
};

/// The results of all loads.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) reactions: Vec<Vec<String>>,
    pub(crate) msms: Vec<(Load, Vec<(Arm, f64)>)>,
    pub(crate) pairs: Vec<Vec<String>>,
    pub(crate) checks: Vec<Vec<String>>,
    pub(crate) counts: Vec<(Load, Counts)>,
}

impl Report {
    /// Prints the tables and draws the plots.
    pub(crate) fn show(&self) -> Result<()> {
        self.print_reactions();
        self.print_pairs();
        self.print_checks();
        self.print_counts();
        Kernel::ALL
            .into_iter()
            .try_for_each(|kernel| self.draw(kernel))
    }

    fn print_reactions(&self) {
        let title = format!(
            "membw_throttle: one MSM in G2 on {} cores beside evaluations of A and B over CSR, \
             eight times as many of the compiled circuit, or two syntheses, on so many threads; \
             medians. `loss` is what those lost, in the sum's time beside them",
            cores()
        );
        let header = [
            "kernel, scalars",
            "throttle",
            "sum",
            "against alone",
            "evaluations",
            "loss",
        ];
        table::print(&title, &header, &self.reactions);
    }

    fn print_pairs(&self) {
        let header = [
            "kernel, scalars",
            "beside",
            "sum alone",
            "beside, median",
            "lower quartile",
            "upper quartile",
            "within 10 %",
        ];
        table::print(
            "the sum beside what the engine does, throttled as it does, against the sum alone \
             just before or after; over pairs",
            &header,
            &self.pairs,
        );
    }

    fn print_checks(&self) {
        let header = [
            "evaluation and its checks",
            "evaluation",
            "not raised",
            "checks",
            "one check",
            "all, by an evaluation",
        ];
        table::print(
            "the check while the throttle is not raised",
            &header,
            &self.checks,
        );
    }

    fn print_counts(&self) {
        let rows: Vec<_> = (self.counts.iter())
            .map(|(load, counts)| {
                vec![
                    load.name(),
                    counts.highest.to_string(),
                    table::figure(counts.lowest.map(f64::from), table::count),
                ]
            })
            .collect();
        let header = [
            "kernel, scalars",
            "highest count",
            "lowest while one is left",
        ];
        table::print("two workers in the sum", &header, &rows);
    }

    /// Draws the MSM over a witness beside each arm that was measured on both numbers of
    /// threads.
    fn draw(&self, kernel: Kernel) -> Result<()> {
        let of_kernel = |load: &Load| load.kernel == kernel && load.scalars == Scalars::Witness;
        let line = |arm: Arm| Line {
            name: arm.name().to_owned(),
            points: (self.msms.iter().rev())
                .filter(|(load, _)| of_kernel(load))
                .flat_map(|(load, msms)| msms.iter().map(|msm| (load.threads(), msm)))
                .filter(|(_, (of, _))| *of == arm)
                .map(|(threads, (_, msm_s))| (threads as f64, *msm_s))
                .collect(),
        };
        let lines: Vec<_> = (Arm::ALL.into_iter().map(line))
            .filter(|line| line.points.len() > 1)
            .collect();
        plot::draw(
            &format!("membw_throttle-{}", kernel.name()),
            "one MSM in G2 beside synthesis on so many threads",
            "seconds",
            &lines,
        )
    }
}
