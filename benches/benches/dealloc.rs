//! Freeing what partitions leave behind, and what the foreground notices.

use benches::{
    Result,
    mode::{Mode, cores, thread_counts},
    plot::{self, Line},
    study::{Study, Timed, time},
    table,
    victim::{Deed, Victim},
    working_set::{Disposal, Gauge, Pool, Side, WorkingSet},
};
use criterion::Criterion;
use cuzk_tune::counters::{Counters, Usage};
use std::{cell::RefCell, sync::Arc, time::Duration};
use supraseal_sys::test_hooks::dealloc_in_cpp;

const ROUNDS: usize = 6;

/// What is freed in one sample: of each partition what Rust holds and what C++
/// holds, each freed on its own.
#[derive(Clone, Copy)]
struct Load {
    partitions: usize,
    vector_bytes: usize,
    rust_vectors: usize,
    cpp_vectors: usize,
    victim_rounds: usize,
}

/// 4 × (256 + 64) MiB: the two sides are to each other about as a partition's
/// 13 GiB and 3.7 GiB. Vectors of 64 MiB are above every limit under which
/// the allocator would keep them.
const LOAD: Load = Load {
    partitions: 4,
    vector_bytes: 64 << 20,
    rust_vectors: 4,
    cpp_vectors: 1,
    victim_rounds: 60,
};

const SMOKE_LOAD: Load = Load {
    partitions: 2,
    vector_bytes: 1 << 20,
    victim_rounds: 1,
    ..LOAD
};

impl Load {
    fn bytes(self) -> usize {
        self.partitions * self.vector_bytes * (self.rust_vectors + self.cpp_vectors)
    }

    /// Makes the sets of all partitions with `make(vectors, bytes)`.
    fn sets(self, mut make: impl FnMut(usize, usize) -> WorkingSet) -> Vec<(WorkingSet, Side)> {
        let sides = [
            (Side::Rust, self.rust_vectors),
            (Side::Cpp, self.cpp_vectors),
        ];
        (0..self.partitions)
            .flat_map(|_| sides)
            .map(|(side, vectors)| (make(vectors, self.vector_bytes), side))
            .collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Nothing,
    Unbounded,
    Serial,
    Recycle,
}

impl Arm {
    const ALL: [Arm; 4] = [Arm::Nothing, Arm::Unbounded, Arm::Serial, Arm::Recycle];

    fn name(self) -> &'static str {
        match self {
            Arm::Nothing => "nothing freed",
            Arm::Unbounded => "unbounded",
            Arm::Serial => "serial",
            Arm::Recycle => "recycle",
        }
    }

    fn disposal(self, load: Load) -> Disposal {
        match self {
            Arm::Nothing => Disposal::Keep(Vec::new()),
            Arm::Unbounded => Disposal::Unbounded(Vec::new()),
            Arm::Serial => Disposal::Serial(|set| Ok(dealloc_in_cpp(set)?)),
            Arm::Recycle => {
                let mut pool = Pool::new(load.partitions * 2);
                // The steady state: the pool has seen these partitions before.
                let gauge = Arc::new(Gauge::default());
                for (set, _) in load.sets(|vectors, bytes| WorkingSet::new(vectors, bytes, &gauge))
                {
                    pool.give(set);
                }
                Disposal::Recycle(pool)
            }
        }
    }
}

struct Sample {
    /// The victim's fixed work.
    victim: Duration,
    /// Obtaining and filling the sets before, and the page faults of that.
    prepare: Duration,
    prepare_faults: u64,
    /// From the first set's end until everything was freed.
    window: Usage,
    unmaps_max: usize,
    unmaps: usize,
}

impl Timed for Sample {
    fn wall(&self) -> Duration {
        self.victim
    }
}

fn sample(
    arm: Arm,
    load: Load,
    disposal: &mut Disposal,
    victim: &mut Victim,
    counters: &mut Counters,
) -> Result<Sample> {
    let gauge = Arc::new(Gauge::default());
    let prepare = || {
        time(|| {
            load.sets(|vectors, bytes| match disposal {
                Disposal::Recycle(pool) => pool.take(vectors, bytes, &gauge),
                _ => WorkingSet::new(vectors, bytes, &gauge),
            })
        })
    };
    let ((sets, prepare), prepared) = counters.count(prepare)?;
    let (victim, window) = counters.count(|| {
        for (set, side) in sets {
            disposal.dispose(set, side)?;
        }
        let victim = victim.work();
        disposal.settle();
        Result::Ok(victim)
    })?;
    let victim = victim?;
    let sample = Sample {
        victim,
        prepare,
        prepare_faults: prepared.page_faults,
        window,
        unmaps_max: gauge.max(),
        unmaps: gauge.ever(),
    };
    if arm == Arm::Nothing {
        *disposal = arm.disposal(load);
    }
    Ok(sample)
}

fn study<'a>(
    load: Load,
    deed: Deed,
    threads: usize,
    counters: &'a RefCell<Counters>,
) -> Study<'a, Sample> {
    let mut study = Study::new();
    for arm in Arm::ALL {
        // Its own memory, so that the order of arms does not matter to it.
        let mut victim = Victim::new(deed, threads, load.victim_rounds);
        let mut disposal = None;
        study.arm(arm.name(), move || {
            let disposal = disposal.get_or_insert_with(|| arm.disposal(load));
            sample(arm, load, disposal, &mut victim, &mut counters.borrow_mut())
        });
    }
    study
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let load = mode.pick(LOAD, SMOKE_LOAD);
    let counters = RefCell::new(Counters::open());
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    let mut walks = Vec::new();
    let victims = thread_counts()
        .into_iter()
        .map(|threads| (Deed::Walk, threads));
    for (deed, threads) in victims.chain([(Deed::Allocate, 1)]) {
        let mut study = study(load, deed, threads, &counters);
        let workload = format!("{}, {threads}", deed.name());
        study.bench(&mut criterion, &format!("dealloc/{workload}"), mode, ROUNDS)?;
        rows.extend((0..Arm::ALL.len()).map(|arm| row(&workload, &study, arm)));
        if deed == Deed::Walk {
            walks.push((threads, study));
        }
    }
    if mode == Mode::Measure {
        report(load, &rows);
        draw(&walks)?;
    }
    criterion.final_summary();
    Ok(())
}

fn report(load: Load, rows: &[Vec<String>]) {
    let title = format!(
        "dealloc: {} partitions, {} in all, freed while a victim does fixed work on {} cores; \
         medians. `next` is filling the next partitions' sets; `faults` are its page faults. \
         TLB shootdowns are the whole machine's",
        load.partitions,
        table::mebibytes(load.bytes() as f64),
        cores(),
    );
    let header = [
        "victim, threads",
        "arm",
        "victim",
        "slow-down",
        "system",
        "TLB shootdowns",
        "unmaps at once",
        "unmaps",
        "next",
        "faults",
    ];
    table::print(&title, &header, rows);
}

fn row(workload: &str, study: &Study<'_, Sample>, arm: usize) -> Vec<String> {
    let median = |of: fn(&Sample) -> f64| study.median(arm, of);
    let shootdowns = (study.samples(arm).iter())
        .map(|sample| sample.window.tlb_shootdowns.map(|count| count as f64))
        .collect::<Option<Vec<f64>>>()
        .and_then(|counts| benches::study::median(counts.into_iter()));
    let most = study.samples(arm).iter().map(|s| s.unmaps_max as f64);
    let slow_down = study.ratio(arm, 0, |sample| sample.victim.as_secs_f64());
    vec![
        workload.to_owned(),
        study.name(arm).to_owned(),
        table::figure(median(|s| s.victim.as_secs_f64()), table::seconds),
        table::figure(slow_down, table::percent_over),
        table::figure(median(|s| s.window.system.as_secs_f64()), table::seconds),
        table::figure(shootdowns, table::count),
        table::figure(most.reduce(f64::max), table::count),
        table::figure(median(|s| s.unmaps as f64), table::count),
        table::figure(median(|s| s.prepare.as_secs_f64()), table::seconds),
        table::figure(median(|s| s.prepare_faults as f64), table::count),
    ]
}

fn draw(walks: &[(usize, Study<'_, Sample>)]) -> Result<()> {
    let line = |arm: usize| Line {
        name: Arm::ALL[arm].name().to_owned(),
        points: (walks.iter())
            .filter_map(|(threads, study)| Some((*threads as f64, study.median_s(arm)?)))
            .collect(),
    };
    let lines: Vec<_> = (0..Arm::ALL.len()).map(line).collect();
    plot::draw(
        "dealloc-walk",
        "a victim that walks memory",
        "seconds",
        &lines,
    )
}
