//! A test of the windows that the cost model chooses: MSMs with wider and narrower ones,
//! in turns.

use benches::{
    Result,
    mode::Mode,
    msm::{Scalars, bases},
    study::{Study, time},
    table,
};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use criterion::Criterion;
use cuzk_kernels::{Isa, msm};
use std::{hint::black_box, ops::RangeInclusive, time::Duration};

/// A sum over the first terms, in windows of so many bits.
type Sum<'a> = Box<dyn Fn(u32) -> Result<()> + 'a>;

fn g1<'a>(isa: Isa, bases: &'a [G1Affine], scalars: &'a [Scalar]) -> Sum<'a> {
    Box::new(move |bits| {
        black_box(msm::g1_in_windows(isa, bits, bases, scalars)?);
        Ok(())
    })
}

fn g2<'a>(isa: Isa, bases: &'a [G2Affine], scalars: &'a [Scalar]) -> Sum<'a> {
    Box::new(move |bits| {
        black_box(msm::g2_in_windows(isa, bits, bases, scalars)?);
        Ok(())
    })
}

/// The widths around the one that the model chooses for so many terms.
fn widths(terms: usize) -> (u32, RangeInclusive<u32>) {
    let chosen = msm::window_bits(terms, rayon::current_num_threads());
    (chosen, chosen.saturating_sub(2).max(2)..=chosen + 2)
}

/// Measures one sum; returns its row: the chosen width, and each by the chosen one.
fn measure(
    criterion: &mut Criterion,
    mode: Mode,
    (name, terms, rounds): (&str, usize, usize),
    sum: &Sum<'_>,
) -> Result<Vec<String>> {
    let (chosen, range) = widths(terms);
    let mut study = Study::<Duration>::new();
    let arms: Vec<_> = range
        .map(|bits| {
            let arm = study.arm(format!("{bits} bits"), move || {
                let (result, wall) = time(|| sum(bits));
                result.map(|()| wall)
            });
            (bits, arm)
        })
        .collect();
    study.bench(criterion, &format!("windows {name}"), mode, rounds)?;
    let seconds = |wall: &Duration| wall.as_secs_f64();
    let of_chosen = (arms.iter().find(|(bits, _)| *bits == chosen)).map_or(0, |(_, arm)| *arm);
    let mut row = vec![
        name.to_owned(),
        chosen.to_string(),
        table::figure(study.median_s(of_chosen), table::seconds),
    ];
    for offset in -2_i64..=2 {
        let bits = i64::from(chosen) + offset;
        let arm = arms.iter().find(|(own, _)| i64::from(*own) == bits);
        let ratio = arm.and_then(|(_, arm)| study.ratio(*arm, of_chosen, seconds));
        row.push(table::figure(ratio, table::times));
    }
    Ok(row)
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let logs = mode.pick(vec![12_u32, 15, 18, 20], vec![6]);
    let most = logs.iter().max().map_or(0, |log| 1 << log);
    let scalars = Scalars::Uniform.make(most);
    let g1_bases = bases::<G1Projective>(most);
    let g2_bases = bases::<G2Projective>(most.div_ceil(8));
    let isa = Isa::best();
    let mut rows = Vec::new();
    for log in logs {
        let rounds = if log < 20 { 12 } else { 5 };
        let len = 1 << log;
        let sum = g1(isa, &g1_bases[..len], &scalars[..len]);
        let name = format!("G1 2^{log}");
        rows.push(measure(&mut criterion, mode, (&name, len, rounds), &sum)?);
        let len = len / 8;
        let sum = g2(isa, &g2_bases[..len], &scalars[..len]);
        let name = format!("G2 2^{}", log - 3);
        rows.push(measure(&mut criterion, mode, (&name, len, rounds), &sum)?);
    }
    if mode == Mode::Measure {
        table::print(
            &format!(
                "sums with windows two and one bits narrower and wider than chosen, by the chosen \
                 one's time, median over rounds; {} threads, {isa}",
                rayon::current_num_threads()
            ),
            &["sum", "bits", "chosen", "−2", "−1", "0", "+1", "+2"],
            &rows,
        );
    }
    criterion.final_summary();
    Ok(())
}
