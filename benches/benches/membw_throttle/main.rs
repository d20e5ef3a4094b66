//! The throttle: the MSM in G2 beside synthesis, with several reactions of synthesis
//! while the throttle is raised. It also measures the cost of the check while the
//! throttle is not raised. The C++ kernel and the engine's compute the MSM on all
//! cores. Synthesis has all of them or one thread.
//!
//! Reading order: [`load`] and [`arm`] list the measurements, over [`circuits`].
//! [`work`] runs one of them. [`reactions`], [`paired`], [`check`] and [`two_workers`]
//! are the four studies. [`report`] prints and draws them.

mod arm;
mod check;
mod circuits;
mod load;
mod paired;
mod reactions;
mod report;
mod two_workers;
mod work;

use benches::{Result, mode::Mode};
use circuits::Circuits;
use criterion::Criterion;
use load::{LOADS, SMOKE_LOADS};
use report::Report;
use work::Work;

/// The number of challenges of a partition, each of which has a witness.
const WITNESS_CHALLENGES: usize = 18;

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let loads = mode.pick(&LOADS[..], &SMOKE_LOADS);
    let (hashes, challenges, evaluations) = mode.pick((24, WITNESS_CHALLENGES, 4), (1, 1, 1));
    let circuits = Circuits::new(hashes, challenges)?;
    let mut report = Report::default();
    for (at, &load) in loads.iter().enumerate() {
        let work = Work::new(load, &circuits, evaluations)?;
        let measured = reactions::measure(&work, load, &mut criterion, mode)?;
        report.reactions.extend(measured.rows);
        report.msms.push((load, measured.msms));
        let pairs = paired::measure(&work, load, &mut criterion, mode)?;
        report.pairs.extend(pairs);
        if at == 0 {
            report.checks = check::measure(&work, &mut criterion, mode)?;
        }
        if mode == Mode::Measure && load.on_all {
            report.counts.push((load, two_workers::count(&work)?));
        }
    }
    if mode == Mode::Measure {
        report.show()?;
    }
    criterion.final_summary();
    Ok(())
}
