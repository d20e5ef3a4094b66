//! The MSM in G2 on several numbers of threads, alone and beside synthesis, by the
//! C++ kernel and by the engine's own. The bench also measures the effect of cores of
//! its own for the MSM. The bench `membw_throttle` measures giving way.
//!
//! The size of the C++ pool is decided once per process. So each size has a child
//! process, which waits for its turn. The engine's kernel has a pool of rayon's. It is
//! run in the same way, so that nothing else is different.
//!
//! Reading order: [`load`] lists the measurements, [`work`] runs one of them in a
//! [`child`], and [`measured`] has the [`sample`]s of all.

mod child;
mod load;
mod measured;
mod sample;
mod work;

use benches::{
    Result,
    mode::{Mode, cores},
    table,
};
use child::{CHILD, serve};
use criterion::Criterion;
use load::loads;
use measured::measure;
use std::env;

fn main() -> Result<()> {
    let mut args = env::args().skip(1);
    if let (Some(CHILD), Some(argument)) = (args.next().as_deref(), args.next()) {
        return serve(&argument);
    }
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    for (at, &load) in loads(mode).iter().enumerate() {
        let measured = measure(mode, at, load, &mut criterion)?;
        rows.extend(measured.rows());
        if mode == Mode::Measure {
            measured.draw()?;
        }
    }
    if mode == Mode::Measure {
        report(&rows);
    }
    criterion.final_summary();
    Ok(())
}

/// Prints the table.
fn report(rows: &[Vec<String>]) {
    let title = format!(
        "gpu_threads on {} cores: the MSM in G2 beside another work; medians, of one piece of \
         each. `on` is where the other work runs meanwhile: on all cores or on those that the MSM \
         leaves. `combined` is the sum of both sides' rates beside each \
         other, each by its own alone on all cores; * is the best, if enough rounds say that it \
         is better than gpu_threads and the other work on all cores, else that",
        cores()
    );
    let header = [
        "scalars",
        "beside",
        "kernel",
        "gpu_threads",
        "on",
        "sum alone",
        "sum beside",
        "other alone",
        "other beside",
        "slow-down",
        "preemptions/s",
        "combined",
        "buckets",
    ];
    table::print(&title, &header, rows);
}
