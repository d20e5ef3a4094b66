//! Freeing what partitions leave behind, and what the foreground notices.

use benches::{
    Result,
    mode::{Mode, cores, thread_counts},
    plot::{self, Line},
    study::{Study, Timed, time},
    table,
    victim::{Deed, Victim},
    working_set::{Disposal, Gauge, Pages, Pool, Shape, Side, WorkingSet},
};
use criterion::Criterion;
use cuzk_tune::counters::{Counters, Usage};
use std::{
    cell::RefCell,
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use supraseal_sys::test_hooks::dealloc_in_cpp;

const ROUNDS: usize = 7;

/// The memory that one sample frees. Each partition has a part of Rust's and a part
/// of C++'s, and each part is freed on its own.
#[derive(Clone, Copy)]
struct Load {
    partitions: usize,
    vector_bytes: usize,
    rust_vectors: usize,
    cpp_vectors: usize,
    walk_rounds: usize,
    allocate_rounds: usize,
}

/// 4 × (128 + 32) MiB: the two sides are to each other about as a partition's
/// 13 GiB and 3.7 GiB. Vectors of 32 MiB are above every limit under which
/// the allocator would keep them. Either victim's work takes longer than freeing all
/// of it.
const LOAD: Load = Load {
    partitions: 4,
    vector_bytes: 32 << 20,
    rust_vectors: 4,
    cpp_vectors: 1,
    walk_rounds: 600,
    allocate_rounds: 8,
};

const SMOKE_LOAD: Load = Load {
    partitions: 2,
    vector_bytes: 1 << 20,
    walk_rounds: 1,
    allocate_rounds: 1,
    ..LOAD
};

impl Load {
    fn bytes(self) -> usize {
        self.partitions * self.vector_bytes * (self.rust_vectors + self.cpp_vectors)
    }

    /// Makes the sets of all partitions.
    fn sets(
        self,
        pages: Pages,
        mut make: impl FnMut(Shape) -> io::Result<WorkingSet>,
    ) -> io::Result<Vec<(WorkingSet, Side)>> {
        let sides = [
            (Side::Rust, self.rust_vectors),
            (Side::Cpp, self.cpp_vectors),
        ];
        let set = |(side, vectors)| {
            let bytes = self.vector_bytes;
            let set = make(Shape {
                vectors,
                bytes,
                pages,
            })?;
            Ok((set, side))
        };
        (0..self.partitions).flat_map(|_| sides).map(set).collect()
    }

    fn victim(self, deed: Deed, threads: usize) -> Victim {
        let rounds = match deed {
            Deed::Walk => self.walk_rounds,
            Deed::Allocate => self.allocate_rounds,
        };
        Victim::new(deed, threads, rounds)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    Nothing,
    Unbounded,
    Serial,
    Recycle,
    UnboundedHuge,
    SerialHuge,
}

impl Arm {
    const ALL: [Arm; 6] = [
        Arm::Nothing,
        Arm::Unbounded,
        Arm::Serial,
        Arm::Recycle,
        Arm::UnboundedHuge,
        Arm::SerialHuge,
    ];

    fn name(self) -> &'static str {
        match self {
            Arm::Nothing => "nothing freed",
            Arm::Unbounded => "unbounded",
            Arm::Serial => "serial",
            Arm::Recycle => "recycle",
            Arm::UnboundedHuge => "unbounded, huge pages",
            Arm::SerialHuge => "serial, huge pages",
        }
    }

    fn pages(self) -> Pages {
        match self {
            Arm::UnboundedHuge | Arm::SerialHuge => Pages::Huge,
            Arm::Nothing | Arm::Unbounded | Arm::Serial | Arm::Recycle => Pages::Small,
        }
    }

    fn disposal(self, load: Load) -> Result<Disposal> {
        Ok(match self {
            Arm::Nothing => Disposal::Keep(Vec::new()),
            Arm::Unbounded | Arm::UnboundedHuge => Disposal::Unbounded(Vec::new()),
            Arm::Serial | Arm::SerialHuge => Disposal::Serial(|set| Ok(dealloc_in_cpp(set)?)),
            Arm::Recycle => {
                let mut pool = Pool::new(load.partitions * 2);
                // The steady state: the pool has seen these partitions before.
                let gauge = Arc::new(Gauge::default());
                for (set, _) in load.sets(self.pages(), |shape| WorkingSet::new(shape, &gauge))? {
                    pool.give(set);
                }
                Disposal::Recycle(pool)
            }
        })
    }
}

struct Sample {
    /// The victim's fixed work.
    victim: Duration,
    /// Obtaining and filling the sets before, and the page faults of that.
    prepare: Duration,
    prepare_faults: u64,
    /// From the first set's end until everything was freed.
    freed_after: Option<Duration>,
    /// From the victim's start until then.
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
            load.sets(arm.pages(), |shape| match disposal {
                Disposal::Recycle(pool) => pool.take(shape, &gauge),
                _ => WorkingSet::new(shape, &gauge),
            })
        })
    };
    let ((sets, prepare), prepared) = counters.count(prepare)?;
    let sets = sets?;
    let ((victim, given), window) = counters.count(|| {
        let worked = victim.work(|| {
            let start = Instant::now();
            let mut sets = sets.into_iter();
            let given = sets.try_for_each(|(set, side)| disposal.dispose(set, side));
            given.map(|()| start)
        });
        disposal.settle();
        worked
    })?;
    let given = given?;
    let sample = Sample {
        victim,
        prepare,
        prepare_faults: prepared.page_faults,
        freed_after: gauge.last().map(|last| last.duration_since(given)),
        window,
        unmaps_max: gauge.max(),
        unmaps: gauge.ever(),
    };
    if arm == Arm::Nothing {
        *disposal = arm.disposal(load)?;
    }
    Ok(sample)
}

fn study<'a>(
    load: Load,
    deed: Deed,
    threads: usize,
    counters: &'a RefCell<Counters>,
) -> Result<Study<'a, Sample>> {
    let mut study = Study::new();
    for arm in Arm::ALL {
        // Its own memory, so that the order of arms does not matter to it.
        let mut victim = load.victim(deed, threads);
        let mut disposal = arm.disposal(load)?;
        study.arm(arm.name(), move || {
            sample(
                arm,
                load,
                &mut disposal,
                &mut victim,
                &mut counters.borrow_mut(),
            )
        });
    }
    Ok(study)
}

fn main() -> Result<()> {
    let mode = Mode::current();
    let load = mode.pick(LOAD, SMOKE_LOAD);
    let counters = RefCell::new(Counters::open());
    let mut criterion = Criterion::default().configure_from_args();
    let mut rows = Vec::new();
    let mut walks = Vec::new();
    let victims = [Deed::Walk, Deed::Allocate].into_iter().flat_map(|deed| {
        thread_counts()
            .into_iter()
            .map(move |threads| (deed, threads))
    });
    for (deed, threads) in victims {
        let mut study = study(load, deed, threads, &counters)?;
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
         medians. `freed` is when the last of it was. `next` is filling the next partitions' sets; `faults` are its page faults. \
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
        "freed",
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
    let freed = (study.samples(arm).iter())
        .map(|sample| sample.freed_after.map(|after| after.as_secs_f64()))
        .collect::<Option<Vec<f64>>>();
    let most = study.samples(arm).iter().map(|s| s.unmaps_max as f64);
    let slow_down = study.ratio(arm, 0, |sample| sample.victim.as_secs_f64());
    vec![
        workload.to_owned(),
        study.name(arm).to_owned(),
        table::figure(median(|s| s.victim.as_secs_f64()), table::seconds),
        table::figure(slow_down, table::percent_over),
        table::figure(
            freed.and_then(|all| benches::study::median(all.into_iter())),
            table::seconds,
        ),
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
