//! The sums of the ones of k partitions over the same bases, one partition after the other
//! and all in one pass, in turns. Then one pass with fewer and more sets of buckets than the
//! cost model chooses.

use benches::{
    Result,
    columns::{Encoded, Partitions},
    mode::Mode,
    msm::bases,
    stage::agree,
    study::{Study, time},
    table,
};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use criterion::Criterion;
use cuzk_kernels::{
    Isa,
    msm::{self, Bits, PackedScalars},
};
use std::{hint::black_box, time::Duration};

const ROUNDS: usize = 11;

/// Adds up one partition.
type Single<'a, G> = Box<dyn Fn(Isa, &PackedScalars<'_>) -> Result<G> + 'a>;

/// Adds up all partitions, in so many sets; `None` lets the cost model choose.
type Together<'a, G> = Box<dyn Fn(Isa, Option<usize>, &[Bits<'_>]) -> Result<Vec<G>> + 'a>;

/// The sums in one group, as both functions compute them.
struct Group<'a, G> {
    name: &'static str,
    log: u32,
    single: Single<'a, G>,
    together: Together<'a, G>,
}

fn g1(bases: &Encoded<G1Affine>, log: u32) -> Group<'_, G1Projective> {
    Group {
        name: "G1",
        log,
        single: Box::new(|isa, scalars| Ok(msm::g1_packed(isa, bases, scalars)?)),
        together: Box::new(|isa, sets, columns| {
            Ok(match sets {
                None => msm::g1_columns(isa, bases, columns)?,
                Some(sets) => msm::g1_columns_in_sets(isa, sets, bases, columns)?,
            })
        }),
    }
}

fn g2(bases: &Encoded<G2Affine>, log: u32) -> Group<'_, G2Projective> {
    Group {
        name: "G2",
        log,
        single: Box::new(|isa, scalars| Ok(msm::g2_packed(isa, bases, scalars)?)),
        together: Box::new(|isa, sets, columns| {
            Ok(match sets {
                None => msm::g2_columns(isa, bases, columns)?,
                Some(sets) => msm::g2_columns_in_sets(isa, sets, bases, columns)?,
            })
        }),
    }
}

/// The ones of partitions, in both forms.
struct Ones<'a> {
    kind: Partitions,
    scalars: Vec<PackedScalars<'a>>,
    columns: Vec<Bits<'a>>,
}

impl<'a> Ones<'a> {
    fn new(kind: Partitions, words: &'a [Vec<u64>], len: usize, none: &'a [u64]) -> Result<Self> {
        let scalars = words
            .iter()
            .map(|ones| PackedScalars::new(len, ones, none, &[]));
        let scalars: Vec<PackedScalars<'a>> = scalars.collect::<std::result::Result<_, _>>()?;
        Ok(Self {
            kind,
            columns: scalars.iter().map(PackedScalars::bits).collect(),
            scalars,
        })
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let (result, wall) = time(work);
    result.map(|()| wall)
}

/// Measures partitions one after the other and in one pass; returns the row.
fn compare<G: PartialEq>(
    criterion: &mut Criterion,
    mode: Mode,
    isa: Isa,
    group: &Group<'_, G>,
    ones: &Ones<'_>,
) -> Result<Vec<String>> {
    let each = || -> Result<Vec<G>> {
        let sums = ones
            .scalars
            .iter()
            .map(|scalars| (group.single)(isa, scalars));
        sums.collect()
    };
    let all = || (group.together)(isa, None, &ones.columns);
    agree(each()? == all()?, group.name)?;
    let mut study = Study::<Duration>::new();
    let each = study.arm("one by one", || {
        timed(|| each().map(|sums| drop(black_box(sums))))
    });
    let all = study.arm("one pass", || {
        timed(|| all().map(|sums| drop(black_box(sums))))
    });
    let Group { name, log, .. } = group;
    let k = ones.columns.len();
    let kind = ones.kind.name();
    let label = format!("columns {name} 2^{log} {isa} {kind}/{k}");
    study.bench(criterion, &label, mode, ROUNDS)?;
    let seconds = |wall: &Duration| wall.as_secs_f64();
    Ok(vec![
        format!("{name} 2^{log} {isa}"),
        kind.to_owned(),
        k.to_string(),
        table::figure(study.median_s(each), table::seconds),
        table::figure(study.median_s(all), table::seconds),
        table::figure(study.ratio(each, all, seconds), table::times),
    ])
}

/// Measures one pass in several numbers of sets; returns the row.
fn sets<G: PartialEq>(
    criterion: &mut Criterion,
    mode: Mode,
    isa: Isa,
    group: &Group<'_, G>,
    ones: &Ones<'_>,
) -> Result<Vec<String>> {
    let mut study = Study::<Duration>::new();
    let arms = [1, 2, 3, 5].map(|sets| {
        study.arm(format!("{sets} sets"), move || {
            timed(|| {
                black_box((group.together)(isa, Some(sets), &ones.columns)?);
                Ok(())
            })
        })
    });
    let Group { name, log, .. } = group;
    let k = ones.columns.len();
    study.bench(
        criterion,
        &format!("sets {name} 2^{log} {isa}/{k}"),
        mode,
        ROUNDS,
    )?;
    let mut row = vec![format!("{name} 2^{log} {isa}"), k.to_string()];
    row.extend(arms.map(|arm| table::figure(study.median_s(arm), table::seconds)));
    Ok(row)
}

/// Measures a group with one set of instructions; returns the rows of both tables.
fn measure<G: PartialEq>(
    criterion: &mut Criterion,
    mode: Mode,
    isa: Isa,
    group: &Group<'_, G>,
) -> Result<[Vec<Vec<String>>; 2]> {
    let len = 1 << group.log;
    let none = vec![0; usize::div_ceil(len, 64)];
    let independent = Partitions::Independent.ones(16, len);
    let half_constant = Partitions::HalfConstant.ones(10, len);
    let (mut rows, mut set_rows) = (Vec::new(), Vec::new());
    for k in [1, 2, 4, 5, 8, 10] {
        let ones = Ones::new(Partitions::Independent, &independent[..k], len, &none)?;
        rows.push(compare(criterion, mode, isa, group, &ones)?);
    }
    let ones = Ones::new(Partitions::HalfConstant, &half_constant, len, &none)?;
    rows.push(compare(criterion, mode, isa, group, &ones)?);
    for k in [5, 10, 16] {
        let ones = Ones::new(Partitions::Independent, &independent[..k], len, &none)?;
        set_rows.push(sets(criterion, mode, isa, group, &ones)?);
    }
    Ok([rows, set_rows])
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let mut criterion = Criterion::default().configure_from_args();
    let (mut rows, mut set_rows) = (Vec::new(), Vec::new());
    let most = mode.pick(20, 7);
    let g1_bases = bases::<G1Projective>(1 << most);
    let g2_bases = bases::<G2Projective>(1 << (most - 2));
    for isa in Isa::all().into_iter().rev() {
        for log in [most - 2, most] {
            let bases = Encoded::new(&g1_bases[..1 << log]);
            let [more, more_sets] = measure(&mut criterion, mode, isa, &g1(&bases, log))?;
            rows.extend(more);
            set_rows.extend(more_sets);
        }
        let bases = Encoded::new(&g2_bases);
        let [more, more_sets] = measure(&mut criterion, mode, isa, &g2(&bases, most - 2))?;
        rows.extend(more);
        set_rows.extend(more_sets);
    }
    if mode == Mode::Measure {
        let threads = rayon::current_num_threads();
        table::print(
            &format!(
                "sums of the ones of k partitions, medians over {ROUNDS} rounds, {threads} \
                 threads; `ratio` is one by one, by one pass"
            ),
            &[
                "bases",
                "partitions",
                "k",
                "one by one",
                "one pass",
                "ratio",
            ],
            &rows,
        );
        table::print(
            "one pass in so many sets of buckets",
            &["bases", "k", "1", "2", "3", "5"],
            &set_rows,
        );
    }
    criterion.final_summary();
    Ok(())
}
