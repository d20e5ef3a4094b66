//! Serves the page with a made-up engine, to work on the page and to test it.
//!
//! `cargo run --release -p cuzk-server --example page -- 127.0.0.1:9821` serves until it is
//! ended. No proof is made: threads sleep through the stages of made-up partitions.

#![allow(clippy::unwrap_used, reason = "an example may end with a panic")]

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cuzk_core::engine::{
    AssetStatus, DeviceStatus, EndedJob, JobSeconds, JobStatus, KindTotals, MemoryStatus,
    PartitionStatus, Status,
};
use cuzk_core::timeline::{Stage, Timeline};
use cuzk_filecoin::CircuitId;
use cuzk_server::http::{Sources, router, serve};

const GIB: u64 = 1 << 30;

/// Kind, circuit, partitions and bytes of a partition, in the order of arrival.
const ARRIVALS: [(&str, &str, usize, u64); 4] = [
    ("porep", "porep-32GiB", 10, 14 * GIB),
    ("window-post", "window-post-32GiB", 1, 12 * GIB),
    ("snap-deals", "snap-deals-32GiB", 16, 9 * GIB),
    ("winning-post", "winning-post-32GiB", 1, GIB),
];

struct Job {
    status: JobStatus,
    accepted: Instant,
    since: Vec<Instant>,
}

#[derive(Default)]
struct World {
    jobs: Vec<Job>,
    ended: VecDeque<(EndedJob, Instant)>,
    proved: [u64; 4],
    failed: [u64; 4],
    on_device: Option<(u64, usize, Instant)>,
    device_proved: u64,
}

struct MadeUp {
    world: Mutex<World>,
    timeline: Timeline,
    started: Instant,
    /// The length of a partition's witness.
    step: Duration,
}

/// A partition on its way: its job's number and its index.
type Partition = (u64, usize);

impl MadeUp {
    fn stage(&self, (number, index): Partition, stage: Option<Stage>) {
        let mut world = self.world.lock().unwrap();
        let Some(job) = world
            .jobs
            .iter_mut()
            .find(|job| job.status.number == number)
        else {
            return;
        };
        job.since[index] = Instant::now();
        job.status.parts[index].stage = stage.map(Stage::name);
        if stage.is_some() {
            job.status.state = "running";
            job.status.waits_for = None;
        }
    }

    /// Sleeps through a stage, for tenths of a step.
    fn pass(&self, partition: Partition, stage: Stage, tenths: u32) {
        let (number, index) = partition;
        self.stage(partition, Some(stage));
        let mut trace = self.timeline.trace(number, Some(index));
        if matches!(stage, Stage::Quotient | Stage::Msm) {
            trace = trace.on_device(0);
        }
        trace.time(stage, || thread::sleep(self.step * tenths / 10));
    }

    fn accept(&self, number: u64) {
        let arrival = (number % 4) as usize;
        let (kind, circuit, partitions, _) = ARRIVALS[arrival];
        let part = |index| PartitionStatus {
            index,
            stage: None,
            since_s: 0.0,
            synthesis_s: 0.0,
            device_s: 0.0,
            done: false,
        };
        let waits_for = format!("waits for {} partitions that are ahead", partitions + 2);
        let status = JobStatus {
            number,
            id: Some(format!("{kind}-1000-{}", 48_211 + number)),
            circuit: circuit.to_owned(),
            kind,
            priority: if partitions == 1 { "high" } else { "normal" },
            state: "waiting",
            accepted_s_ago: 0.0,
            waits_for: Some(waits_for),
            parts: (0..partitions).map(part).collect(),
            partitions_done: 0,
            partitions,
        };
        let now = Instant::now();
        let job = Job {
            status,
            accepted: now,
            since: vec![now; partitions],
        };
        self.world.lock().unwrap().jobs.push(job);
    }

    /// Marks a partition as proved, and ends its job after the last one.
    fn proved(&self, (number, index): Partition) {
        let mut world = self.world.lock().unwrap();
        let found = world
            .jobs
            .iter()
            .position(|job| job.status.number == number);
        let Some(at) = found else {
            return;
        };
        let step_s = self.step.as_secs_f64();
        let job = &mut world.jobs[at];
        job.status.partitions_done += 1;
        let part = &mut job.status.parts[index];
        (part.done, part.synthesis_s, part.device_s) = (true, 1.4 * step_s, step_s);
        let failed = number % 7 == 5;
        if job.status.partitions_done < job.status.partitions && !failed {
            return;
        }
        let job = world.jobs.remove(at);
        let kind = (number % 4) as usize;
        let counts = if failed {
            &mut world.failed
        } else {
            &mut world.proved
        };
        counts[kind] += 1;
        let partitions = job.status.partitions as f64;
        let total_s = job.accepted.elapsed().as_secs_f64();
        let error = "partition 0: the vanilla proof does not satisfy constraint 130278869; \
                     it was altered, or belongs to another sector";
        let ended = EndedJob {
            number,
            id: job.status.id,
            circuit: job.status.circuit,
            kind: job.status.kind,
            outcome: if failed { "failed" } else { "proved" },
            error: failed.then(|| error.to_owned()),
            ended_s_ago: 0.0,
            times: JobSeconds {
                queue_wait_s: (total_s - partitions * step_s).max(0.0),
                srs_load_s: 0.3 * step_s,
                synthesis_s: 1.4 * step_s * partitions,
                device_s: step_s * partitions,
                total_s,
            },
        };
        world.ended.push_front((ended, Instant::now()));
        world.ended.truncate(50);
    }

    fn device(&self) -> DeviceStatus {
        let world = self.world.lock().unwrap();
        let busy = world.on_device;
        let id = |number: u64| {
            let job = world.jobs.iter().find(|job| job.status.number == number);
            job.and_then(|job| job.status.id.clone())
        };
        DeviceStatus {
            device: 0,
            backend: "cpu",
            role: "device",
            quarantined: false,
            proved: world.device_proved,
            faults: 1,
            last_fault: Some("partition 3 took longer than 600 s".to_owned()),
            job: busy.and_then(|(number, _, _)| id(number)),
            partition: busy.map(|(_, index, _)| index),
            busy_s: busy.map(|(_, _, since)| since.elapsed().as_secs_f64()),
        }
    }
}

impl Sources for MadeUp {
    fn status(&self) -> Status {
        let device = self.device();
        let world = self.world.lock().unwrap();
        let jobs: Vec<_> = world.jobs.iter().map(Job::now).collect();
        let running = jobs.iter().flat_map(|job| &job.parts);
        let running = running
            .filter(|part| part.stage.is_some() && !part.done)
            .count();
        let all: usize = jobs
            .iter()
            .map(|job| job.partitions - job.partitions_done)
            .sum();
        let totals = ARRIVALS.iter().enumerate().map(|(at, arrival)| KindTotals {
            kind: arrival.0,
            proved: world.proved[at],
            failed: world.failed[at],
            cancelled: 0,
        });
        let ended = world.ended.iter().map(|(ended, at)| EndedJob {
            ended_s_ago: at.elapsed().as_secs_f64(),
            ..ended.clone()
        });
        Status {
            started_s: self.started.elapsed().as_secs_f64(),
            draining: false,
            partitions_waiting: all - running,
            partitions_running: running,
            devices: vec![device],
            making_multiples: Vec::new(),
            memory: MemoryStatus {
                total_bytes: 62 * GIB,
                used_bytes: (running as u64).min(3) * 14 * GIB + 4 * GIB,
                idle_bytes: 3 * GIB,
                kept_bytes: 5 * GIB,
                pool_bytes: running as u64 * 12 * GIB,
                mappings: 41,
            },
            assets: vec![AssetStatus {
                circuit: "porep-32GiB".to_owned(),
                parameter_bytes: 48 * GIB,
                circuit_bytes: 700 << 20,
                digests: "not_compared",
                uses: running,
                idle_s: None,
            }],
            ended: ended.collect(),
            totals: totals.collect(),
            jobs,
        }
    }

    fn timeline(&self) -> Timeline {
        self.timeline.clone()
    }

    fn synthesis_workers(&self) -> usize {
        1
    }

    fn missing(&self, _circuit: Option<CircuitId>) -> Vec<String> {
        Vec::new()
    }

    fn served_params(&self) -> Option<std::path::PathBuf> {
        None
    }

    fn recorded_metrics(&self) -> String {
        String::new()
    }
}

impl Job {
    /// Returns the job's status, with ages as of now.
    fn now(&self) -> JobStatus {
        let mut status = self.status.clone();
        status.accepted_s_ago = self.accepted.elapsed().as_secs_f64();
        for (part, since) in status.parts.iter_mut().zip(&self.since) {
            part.since_s = since.elapsed().as_secs_f64();
        }
        status
    }
}

/// Accepts jobs so that three are there, and takes their partitions through synthesis.
fn synthesize(made_up: &MadeUp, ready: &Sender<Partition>) {
    for number in 0.. {
        while made_up.world.lock().unwrap().jobs.len() >= 3 {
            thread::sleep(made_up.step / 10);
        }
        made_up.accept(number);
        if number < 2 {
            continue;
        }
        let number = number - 2;
        for index in 0..ARRIVALS[(number % 4) as usize].2 {
            let partition = (number, index);
            if index == 0 {
                made_up.pass(partition, Stage::Params, 3);
            }
            made_up.pass(partition, Stage::Witness, 10);
            made_up.pass(partition, Stage::Evaluate, 4);
            made_up.stage(partition, Some(Stage::ReadyWait));
            let _ = ready.send(partition);
            if number % 7 == 5 {
                break;
            }
        }
    }
}

fn prove(made_up: &MadeUp, ready: &Receiver<Partition>, finish: &Sender<Partition>) {
    for partition in ready {
        let begun = Instant::now();
        made_up.world.lock().unwrap().on_device = Some((partition.0, partition.1, begun));
        made_up.pass(partition, Stage::Quotient, 3);
        made_up.pass(partition, Stage::Msm, 8);
        let trace = made_up.timeline.trace(partition.0, Some(partition.1));
        trace.on_device(0).waited(Stage::Device, begun);
        let mut world = made_up.world.lock().unwrap();
        world.on_device = None;
        world.device_proved += 1;
        drop(world);
        let _ = finish.send(partition);
    }
}

fn finish(made_up: &MadeUp, finished: &Receiver<Partition>) {
    for partition in finished {
        made_up.pass(partition, Stage::BG2, 3);
        made_up.pass(partition, Stage::Verify, 1);
        made_up.stage(partition, None);
        made_up.proved(partition);
    }
}

/// Takes an address and the milliseconds of a witness.
#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:9821".to_owned());
    let step_ms = arguments.next().and_then(|text| text.parse().ok());
    let made_up = Arc::new(MadeUp {
        world: Mutex::default(),
        timeline: Timeline::default(),
        started: Instant::now(),
        step: Duration::from_millis(step_ms.unwrap_or(1_000)),
    });
    let (ready, ready_out) = channel();
    let (finished, finished_out) = channel();
    let [first, second, third] = [&made_up, &made_up, &made_up].map(Arc::clone);
    thread::spawn(move || synthesize(&first, &ready));
    thread::spawn(move || prove(&second, &ready_out, &finished));
    thread::spawn(move || finish(&third, &finished_out));
    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("http://{}/", listener.local_addr()?);
    serve(listener, router(made_up), std::future::pending()).await;
    Ok(())
}
