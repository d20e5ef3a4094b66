//! The cost of recording a span, compared with two readings of the clock, which it
//! cannot do without. Measured on one thread and on eight, with and without a recorder
//! of metrics.

#![allow(missing_docs, reason = "criterion's macros make functions without any")]

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use cuzk_timeline::{Stage, Timeline, device_use, waterfall_svg};
use metrics_util::debugging::DebuggingRecorder;

const THREADS: usize = 8;

/// Returns the time in which `threads` threads record `rounds` spans each, divided by
/// the number of threads.
fn together(threads: usize, rounds: u64) -> Duration {
    let timeline = Timeline::default();
    let start = Barrier::new(threads + 1);
    let record = |job| {
        start.wait();
        let trace = timeline.trace(job, Some(0)).on_device(0);
        for _ in 0..rounds {
            trace.time(Stage::Msm, || ());
        }
    };
    let record = &record;
    let started = thread::scope(|scope| {
        for job in 0..threads as u64 {
            scope.spawn(move || record(job));
        }
        start.wait();
        Instant::now()
    });
    started.elapsed() / u32::try_from(threads).unwrap_or(u32::MAX)
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record a span");
    group.bench_function("two looks at the clock", |bencher| {
        bencher.iter(|| Instant::now().elapsed());
    });
    for threads in [1, THREADS] {
        group.bench_function(format!("{threads} thread(s)"), |bencher| {
            bencher.iter_custom(|rounds| together(threads, rounds));
        });
    }
    let recorder = DebuggingRecorder::new();
    group.bench_function("1 thread, metrics recorded", |bencher| {
        let timeline = Timeline::default();
        let trace = timeline.trace(0, Some(0)).on_device(0);
        metrics::with_local_recorder(&recorder, || {
            bencher.iter(|| trace.time(Stage::Msm, || ()));
        });
    });
    group.finish();
}

fn draw(criterion: &mut Criterion) {
    let timeline = Timeline::default();
    for job in 0..cuzk_timeline::SPANS_MAX as u64 {
        let trace = timeline.trace(job / 16, Some(0)).on_device(0);
        trace.time(Stage::Device, || ());
    }
    let spans = timeline.spans();
    let mut group = criterion.benchmark_group("a full timeline");
    group.sample_size(10);
    group.bench_function("of one job", |bencher| bencher.iter(|| timeline.of_job(7)));
    group.bench_function("device use", |bencher| bencher.iter(|| device_use(&spans)));
    group.bench_function("waterfall", |bencher| {
        bencher.iter(|| waterfall_svg(&spans, &Default::default()));
    });
    group.finish();
}

criterion_group!(benches, record, draw);
criterion_main!(benches);
