//! The cost of the check while the throttle is not raised.

use crate::work::Work;
use benches::{
    Result,
    mode::Mode,
    study::{Study, time},
    table,
};
use criterion::Criterion;
use cuzk_pce::{CHUNK_ROWS, THROTTLE_CHUNKS, evaluate};
use std::{
    hint::black_box,
    sync::atomic::{AtomicI32, Ordering},
    time::Duration,
};

const ROUNDS: usize = 8;

/// The number of loads over which a check's cost is averaged.
const CHECKS: u32 = 10_000_000;

/// Measures evaluation with no throttle and with one that is never raised, and the cost
/// of the checks of one evaluation. Returns the rows of the table.
pub(crate) fn measure(
    work: &Work<'_>,
    criterion: &mut Criterion,
    mode: Mode,
) -> Result<Vec<Vec<String>>> {
    let lowered = AtomicI32::new(0);
    let mut study = Study::new();
    let plain = [None, Some(&lowered)].map(|throttle| {
        study.arm(arm_name("CSR", throttle), move || {
            let (result, wall) =
                time(|| evaluate(&work.circuits.r1cs, &work.circuits.witness, throttle));
            black_box(result?);
            Ok(wall)
        })
    });
    let compiled = [None, Some(&lowered)].map(|throttle| {
        study.arm(arm_name("compiled", throttle), move || {
            let (result, wall) = time(|| work.evaluate_compiled(throttle));
            result.map(|()| wall)
        })
    });
    study.bench(criterion, "membw_throttle/check", mode, ROUNDS)?;
    let check_s = check_s(&lowered);
    let chunks = work.circuits.r1cs.rows().div_ceil(CHUNK_ROWS);
    Ok(vec![
        row(
            &study,
            "CSR, every 64th chunk of A and of B",
            plain,
            2 * chunks.div_ceil(THROTTLE_CHUNKS),
            check_s,
        ),
        row(&study, "compiled, every chunk", compiled, chunks, check_s),
    ])
}

/// Returns the mean duration of one check.
fn check_s(lowered: &AtomicI32) -> f64 {
    let (raised, loads) = time(|| {
        (0..CHECKS)
            .filter(|_| black_box(lowered).load(Ordering::Acquire) > 0)
            .count()
    });
    black_box(raised);
    loads.as_secs_f64() / f64::from(CHECKS)
}

/// Returns the row of the arms `without` and `with` a throttle.
fn row(
    study: &Study<'_, Duration>,
    name: &str,
    [without, with]: [usize; 2],
    checks: usize,
    check_s: f64,
) -> Vec<String> {
    let measured = study.ratio(with, without, Duration::as_secs_f64);
    let share = |evaluation| format!("{:.6} %", checks as f64 * check_s / evaluation * 100.0);
    vec![
        name.to_owned(),
        table::figure(study.median_s(without), table::seconds),
        table::figure(measured, table::percent_over),
        checks.to_string(),
        table::seconds(check_s),
        table::figure(study.median_s(without), share),
    ]
}

fn arm_name(of: &str, throttle: Option<&AtomicI32>) -> String {
    let throttle = throttle.map_or("no throttle", |_| "throttle not raised");
    format!("{of}, {throttle}")
}
