//! Spans to draw in tests: a small pipeline whose times are computed, not measured.

use std::time::Duration;

use crate::{Lane, Span, Stage};

/// Times in microseconds.
struct Clock {
    spans: Vec<Span>,
}

impl Clock {
    fn record(&mut self, [job, partition]: [usize; 2], stage: Stage, lane: &str, us: [u64; 2]) {
        let on_device = matches!(
            stage,
            Stage::LockWait | Stage::Device | Stage::Quotient | Stage::Msm
        );
        let [start, end] = us.map(Duration::from_micros);
        self.spans.push(Span {
            job: Some(job as u64),
            partition: Some(partition),
            device: on_device.then_some(0),
            stage,
            served: None,
            stood_aside: None,
            lane: Lane::new(lane),
            start,
            end,
        });
    }
}

/// Returns the spans of `jobs` jobs of `partitions` partitions each. The pipeline has
/// two synthesis workers, one device with two workers, and one finishing worker. The
/// device is faster than synthesis, so it has gaps.
pub(crate) fn pipeline(jobs: usize, partitions: usize) -> Vec<Span> {
    let mut clock = Clock { spans: Vec::new() };
    let (mut synthesis_free, mut device_free, mut finish_free) = ([0; 2], 0, 0);
    for number in 0..jobs * partitions {
        let id = [number / partitions, number % partitions];
        let [synthesis, worker] = [
            format!("synth-{}", number % 2),
            format!("dev0-{}", number % 2),
        ];
        let start = synthesis_free[number % 2];
        let ready = start + 9_000 + 500 * (number as u64 % 3);
        clock.record(id, Stage::QueueWait, &synthesis, [0, start]);
        clock.record(id, Stage::Witness, &synthesis, [start, start + 4_000]);
        clock.record(id, Stage::Evaluate, &synthesis, [start + 4_000, ready]);
        synthesis_free[number % 2] = ready;
        let locked = device_free.max(ready + 50);
        device_free = locked + 4_000;
        clock.record(id, Stage::ReadyWait, &worker, [ready, ready + 50]);
        clock.record(id, Stage::LockWait, &worker, [ready + 50, locked]);
        clock.record(id, Stage::Device, &worker, [locked, device_free]);
        clock.record(id, Stage::Quotient, &worker, [locked, locked + 1_500]);
        clock.record(id, Stage::Msm, &worker, [locked + 1_500, device_free]);
        let finish = finish_free.max(device_free + 20);
        finish_free = finish + 2_000;
        clock.record(id, Stage::FinishWait, "finish-0", [device_free, finish]);
        clock.record(id, Stage::Finish, "finish-0", [finish, finish + 1_500]);
        clock.record(id, Stage::BG2, "finish-0", [finish, finish + 1_400]);
        clock.record(id, Stage::Verify, "finish-0", [finish + 1_500, finish_free]);
    }
    clock.spans
}
