//! Each reaction of synthesis beside the MSM, against each side alone.

use crate::{
    arm::{Arm, Workload},
    load::Load,
    work::{Sample, Work},
};
use benches::{Result, mode::Mode, study::Study, table};
use criterion::Criterion;

const ROUNDS: usize = 4;

/// The result of one load: the rows of the table, and each arm's MSM for the plot.
pub(crate) struct Measured {
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) msms: Vec<(Arm, f64)>,
}

/// Measures the arms of `load` in turns.
pub(crate) fn measure(
    work: &Work<'_>,
    load: Load,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Measured> {
    let mut study = Study::new();
    let msm_alone = study.arm("sum alone", || work.msm_alone());
    let is_measured = |of: &Workload| load.arms().iter().any(|arm| arm.work() == *of);
    let alone: Vec<_> = (Workload::ALL.into_iter().filter(is_measured))
        .map(|of| {
            let run = move || work.evaluations_alone(of);
            (of, study.arm(of.alone(), run))
        })
        .collect();
    let arms: Vec<_> = (load.arms().into_iter())
        .map(|arm| {
            let run = move || work.both(arm, work.count(arm));
            (arm, study.arm(arm.name(), run))
        })
        .collect();
    let group = format!("membw_throttle/{}", load.name());
    study.bench(criterion, &group, mode, ROUNDS)?;

    let msms = (arms.iter())
        .filter_map(|&(arm, at)| Some((arm, study.median(at, Sample::msm_s)?)))
        .collect();
    let by_themselves = (alone.iter().map(|&(_, at)| at))
        .chain([msm_alone])
        .map(|at| row(load, &study, msm_alone, at, None));
    let beside = arms.iter().map(|&(arm, at)| {
        let alone = alone.iter().find(|(of, _)| *of == arm.work());
        row(load, &study, msm_alone, at, alone.map(|&(_, at)| at))
    });
    let rows = by_themselves.chain(beside).collect();
    Ok(Measured { rows, msms })
}

/// Returns one arm's row, with its loss against the arm `alone`.
fn row(
    load: Load,
    study: &Study<'_, Sample>,
    msm_alone: usize,
    arm: usize,
    alone: Option<usize>,
) -> Vec<String> {
    let msm = study.median(arm, Sample::msm_s).filter(|&msm| msm > 0.0);
    let evaluations = (study.median(arm, Sample::evaluations_s)).filter(|&s| s > 0.0);
    let losses = alone.map(|alone| {
        let alone = study.samples(alone).iter().map(Sample::evaluations_s);
        (study.samples(arm).iter().zip(alone))
            .map(|(sample, alone)| (sample.evaluations_s() - alone) / sample.msm_s())
    });
    let slow_down = msm.and_then(|_| study.ratio(arm, msm_alone, Sample::msm_s));
    vec![
        load.name(),
        study.name(arm).to_owned(),
        table::figure(msm, table::seconds),
        table::figure(slow_down, table::percent_over),
        table::figure(evaluations, table::seconds),
        table::figure(losses.and_then(benches::study::median), table::times),
    ]
}
