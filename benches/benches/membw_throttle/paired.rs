//! Pairs of MSMs: one alone, and one beside the work that the engine does.

use crate::{
    arm::Arm,
    load::Load,
    work::{SYNTHESES, Sample, Work},
};
use benches::{Result, mode::Mode, study::Study, table};
use criterion::Criterion;

/// The number of MSMs alone, each with one beside evaluations and one beside syntheses. An
/// MSM takes a tenth of a second, and two in a row differ by as much as the target allows.
const PAIRS: usize = 19;

/// The number of evaluations beside an MSM that they give way to. They need not last
/// longer than the MSM, because they wait for it.
const COMPILED_PAIRED: usize = 8;

/// Measures the engine's arms again and again: evaluations and whole syntheses. Each time
/// the MSM runs alone before or after it. Returns rows of the table.
pub(crate) fn measure(
    work: &Work<'_>,
    load: Load,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Vec<Vec<String>>> {
    let mut study = Study::new();
    let alone = study.arm("sum alone", || work.msm_alone());
    let beside = [
        (Arm::CompiledSleep, COMPILED_PAIRED),
        (Arm::SynthesisAside, SYNTHESES),
    ];
    let beside = beside.map(|(arm, count)| study.arm(arm.name(), move || work.both(arm, count)));
    let group = format!("membw_throttle/{}, paired", load.name());
    study.bench(criterion, &group, mode, PAIRS)?;
    let rows = beside.map(|beside| row(load, &study, alone, beside));
    Ok(rows.to_vec())
}

fn row(load: Load, study: &Study<'_, Sample>, alone: usize, beside: usize) -> Vec<String> {
    let mut ratios: Vec<f64> = (study.samples(beside).iter().zip(study.samples(alone)))
        .map(|(beside, alone)| beside.msm_s() / alone.msm_s())
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let quarter = |quarters: usize| ratios.get(ratios.len() * quarters / 4).copied();
    let within = ratios.iter().filter(|&&ratio| ratio <= 1.1).count();
    vec![
        load.name(),
        study.name(beside).to_owned(),
        table::figure(study.median(alone, Sample::msm_s), table::seconds),
        table::figure(
            study.ratio(beside, alone, Sample::msm_s),
            table::percent_over,
        ),
        table::figure(quarter(1), table::percent_over),
        table::figure(quarter(3), table::percent_over),
        format!("{within} of {}", ratios.len()),
    ]
}
