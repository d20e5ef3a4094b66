//! Ids, cancellation, deadlines, priorities and the end of an engine, as callers
//! see them.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use cuzk_core::backend::{CpuBackend, Device};
use cuzk_core::config::Devices;
use cuzk_core::job::{JobHandle, JobOptions};
use cuzk_core::kinds::ProofKind;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Stage;
use cuzk_core::{Config, Engine, Error};
use supraseal_sys::GpuResources;

use crate::common::device::{Deed, Scripted, pool};
use crate::common::{self, tiny};

const KIND: ProofKind = ProofKind::SnapDeals;

fn named(id: &str) -> JobOptions {
    JobOptions {
        id: Some(id.to_owned()),
        ..JobOptions::default()
    }
}

fn urgent(priority: Priority) -> JobOptions {
    JobOptions {
        priority: Some(priority),
        ..JobOptions::default()
    }
}

/// An engine whose one device does nothing until its gate is opened.
fn held_up(config: &mut Config) -> (Engine, Opened) {
    config.gpus.gpu_workers_per_device = 1;
    let device = Scripted::new(config, |n| if n == 0 { Deed::Stall } else { Deed::Prove });
    let engine = Engine::start_on(config.clone(), pool(config), vec![device.device()]).unwrap();
    (engine, Opened(device))
}

/// A device whose gate is open when a test ends, however it ends: an engine waits
/// for its devices.
struct Opened(Arc<Scripted>);

impl std::ops::Deref for Opened {
    type Target = Arc<Scripted>;

    fn deref(&self) -> &Arc<Scripted> {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.gate.open();
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_cancelled(job: &JobHandle) -> bool {
    matches!(job.poll(), Some(Err(error)) if matches!(*error, Error::Cancelled))
}

#[test]
fn the_same_id_and_request_is_the_same_job() {
    common::circuit_with_params(ProofKind::WindowPost);
    let engine = Engine::start(common::config()).unwrap();
    let request = common::bundled_request(ProofKind::WindowPost);
    // Several at once: one decides, the others attach.
    let jobs: Vec<_> = std::thread::scope(|scope| {
        let submit = || engine.submit_with(&request, named("sector-1")).unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(submit)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(jobs.iter().all(|job| job.number() == jobs[0].number()));
    let proof = jobs[0].wait().unwrap();
    let again = engine.submit_with(&request, named("sector-1")).unwrap();
    assert_eq!(again.wait().unwrap(), proof, "not proved twice");
    assert_eq!(engine.job("sector-1").unwrap().number(), jobs[0].number());

    let other = common::bundled_request(ProofKind::WinningPost);
    let error = engine.submit_with(&other, named("sector-1")).unwrap_err();
    assert!(matches!(&error, Error::Conflict { id } if id == "sector-1"));
    assert!(error.is_input());
    for id in ["", "a\nb", &"x".repeat(2000)] {
        let error = engine.submit_with(&request, named(id)).unwrap_err();
        assert!(error.is_input(), "{error}");
    }
    assert!(engine.job("sector-2").is_none());
}

#[test]
fn an_id_whose_job_was_refused_or_cancelled_is_free_again() {
    let config = common::config();
    common::circuit_with_params(ProofKind::WindowPost);
    let request = common::bundled_request(ProofKind::WindowPost);
    let mut elsewhere = config.clone();
    let empty = tempfile::tempdir().unwrap();
    elsewhere.srs.param_cache = empty.path().to_owned();
    let engine = Engine::start(elsewhere).unwrap();
    for _ in 0..2 {
        let error = engine.submit_with(&request, named("a")).unwrap_err();
        assert!(matches!(error, Error::Params(_)), "{error}");
    }
    let engine = Engine::start(config).unwrap();
    let first = engine.submit_with(&request, named("a")).unwrap();
    first.cancel();
    let second = engine.submit_with(&request, named("a")).unwrap();
    if is_cancelled(&first) {
        assert_ne!(first.number(), second.number());
    }
    second.wait().unwrap();
}

#[test]
fn results_are_kept_for_a_bounded_number_of_jobs() {
    common::circuit_with_params(ProofKind::WindowPost);
    let mut config = common::config();
    config.jobs.results_kept = 2;
    let engine = Engine::start(config).unwrap();
    let request = common::bundled_request(ProofKind::WindowPost);
    for id in ["a", "b", "c"] {
        let job = engine.submit_with(&request, named(id)).unwrap();
        job.wait().unwrap();
    }
    wait_until("the oldest is forgotten", || engine.job("a").is_none());
    assert!(engine.job("b").is_some() && engine.job("c").is_some());
}

#[test]
fn a_cancelled_job_gives_back_all_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let running = engine
        .submit_job(tiny::job(KIND, 1), JobOptions::default())
        .unwrap();
    wait_until("the device has it", || device.started() == 1);
    let input = tiny::job(KIND, 20);
    let waiting = engine
        .submit_job(Arc::clone(&input), JobOptions::default())
        .unwrap();
    wait_until("one of it is synthesized", || {
        engine.status().partitions_running > 1
    });
    assert!(waiting.cancel());
    assert!(!waiting.cancel());
    assert!(is_cancelled(&waiting));
    assert_eq!(engine.status().partitions_waiting, 0);
    wait_until("its input is dropped", || Arc::strong_count(&input) == 1);
    // Of what runs only the device's own partition is left.
    wait_until("its memory is free", || {
        engine.status().partitions_running == 1
    });
    assert!(running.cancel());
    device.gate.open();
    wait_until("that is stopped as well", || {
        engine.status().partitions_running == 0
    });
    let memory = engine.status().memory;
    assert_eq!(memory.used_bytes, memory.idle_bytes);
    engine.shutdown();
}

#[test]
fn a_real_partition_stops_at_its_next_chunk() {
    common::circuit_with_params(ProofKind::WinningPost);
    let engine = Engine::start(common::config()).unwrap();
    let request = common::bundled_request(ProofKind::WinningPost);
    let job = engine.submit(&request).unwrap();
    let in_device = |engine: &Engine| {
        let spans = engine.timeline().of_job(job.number());
        spans.iter().any(|span| span.stage == Stage::LockWait)
    };
    wait_until("its transforms run", || in_device(&engine));
    assert!(job.cancel());
    wait_until("it is gone", || engine.status().partitions_running == 0);
    let spans = engine.timeline().of_job(job.number());
    assert!(!spans.iter().any(|span| span.stage == Stage::Verify));
    engine.submit(&request).unwrap().wait().unwrap();
}

#[test]
fn a_partition_stops_in_the_middle_of_its_evaluation() {
    common::circuit_with_params(ProofKind::WinningPost);
    let config = common::config();
    let resources = Arc::new(GpuResources::new().unwrap());
    let pool = pool(&config);
    let backend = Arc::new(CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool)));
    let device = Device {
        resources: Arc::clone(&resources),
        backend,
    };
    let engine = Engine::start_on(config, pool, vec![device]).unwrap();
    // Holds evaluation up for a while, as a sum in G2 would.
    let _raised = resources.raise_throttle();
    let request = common::bundled_request(ProofKind::WinningPost);
    let job = engine.submit_with(&request, urgent(Priority::Normal));
    let job = job.unwrap();
    let stages = || {
        let spans = engine.timeline().of_job(job.number());
        spans.into_iter().map(|span| span.stage).collect::<Vec<_>>()
    };
    wait_until("its witness is there", || {
        stages().contains(&Stage::Witness)
    });
    assert!(job.cancel());
    wait_until("it is gone", || engine.status().partitions_running == 0);
    let stages = stages();
    assert!(stages.contains(&Stage::Evaluate), "{stages:?}");
    assert!(!stages.contains(&Stage::Prepare), "{stages:?}");
}

#[test]
fn the_devices_say_who_goes_first_and_not_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let critical = |engine: Engine| {
        let job = tiny::job(KIND, 1);
        let job = engine.submit_job(job, urgent(Priority::Critical));
        job.unwrap().wait().unwrap();
        let devices = engine.status().devices.into_iter();
        let proved = devices.filter(|device| device.proved > 0);
        proved.map(|device| device.role).collect::<Vec<_>>()
    };
    // GPUs were asked for, and the cores are what there is.
    config.gpus.devices = Devices::Ordinals(vec![0]);
    let pool = pool(&config);
    let resources = Arc::new(GpuResources::new().unwrap());
    let backend = Arc::new(CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool)));
    let cores = Device { resources, backend };
    let engine = Engine::start_on(config.clone(), Arc::clone(&pool), vec![cores]).unwrap();
    assert_eq!(critical(engine), ["critical"]);
    // The other way round.
    config.gpus.devices = Devices::Cpu;
    let device = Scripted::new(&config, |_| Deed::Prove);
    let engine = Engine::start_on(config, pool, vec![device.device()]).unwrap();
    assert_eq!(critical(engine), ["device"]);
}

#[test]
fn urgent_jobs_go_first_and_the_low_are_not_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let submit = |priority| {
        engine
            .submit_job(tiny::job(KIND, 1), urgent(priority))
            .unwrap()
    };
    let first = submit(Priority::Normal);
    wait_until("the device has it", || device.started() == 1);
    // These fill what is between admission and the device.
    let fill: Vec<_> = (0..2).map(|_| submit(Priority::Normal)).collect();
    wait_until("that is full", || engine.status().partitions_waiting == 0);
    let order = [
        Priority::Low,
        Priority::Normal,
        Priority::High,
        Priority::Critical,
    ];
    let jobs = order.map(submit);
    device.gate.open();
    for job in fill.iter().chain(&jobs).chain([&first]) {
        job.wait().unwrap();
    }
    let on_device = |job: &JobHandle| {
        let spans = engine.timeline().of_job(job.number());
        let span = spans.iter().find(|span| span.stage == Stage::Device);
        span.unwrap().start
    };
    let starts: Vec<_> = jobs.iter().map(on_device).collect();
    assert!(starts.is_sorted_by(|a, b| a > b), "{starts:?}");
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_with_the_estimate() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let slow = Duration::from_millis(100);
    let device = Scripted::new(&config, move |_| Deed::ProveAfter(slow));
    let engine = Engine::start_on(config.clone(), pool(&config), vec![device.device()]).unwrap();
    let within = |deadline_ms| JobOptions {
        deadline: Some(Duration::from_millis(deadline_ms)),
        ..JobOptions::default()
    };
    // Nothing is known yet.
    let first = engine
        .submit_job(tiny::job(KIND, 1), within(60_000))
        .unwrap();
    first.wait().unwrap();
    let error = engine
        .submit_job(tiny::job(KIND, 5), within(50))
        .unwrap_err();
    let Error::TooLate {
        deadline_ms: 50,
        estimate_ms,
    } = error
    else {
        panic!("{error}")
    };
    assert!(estimate_ms >= 500);
    engine
        .submit_job(tiny::job(KIND, 1), within(60_000))
        .unwrap()
        .wait()
        .unwrap();
}

#[test]
fn a_deadline_that_passes_while_waiting_ends_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let submit = |options| engine.submit_job(tiny::job(KIND, 6), options).unwrap();
    let first = submit(JobOptions::default());
    wait_until("the device has it", || device.started() == 1);
    let late = submit(JobOptions {
        deadline: Some(Duration::from_millis(20)),
        ..JobOptions::default()
    });
    std::thread::sleep(Duration::from_millis(30));
    device.gate.open();
    let error = late.wait().unwrap_err();
    assert!(matches!(*error, Error::DeadlinePassed), "{error}");
    first.wait().unwrap();
}

#[test]
fn a_job_can_be_awaited() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let engine = Engine::start(config).unwrap();
    let job = engine
        .submit_job(tiny::job(KIND, 2), JobOptions::default())
        .unwrap();
    // Any executor does; this one looks again and again.
    let mut ended = Box::pin(job.into_future());
    let mut context = Context::from_waker(Waker::noop());
    let proof = loop {
        match ended.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => break outcome.unwrap(),
            Poll::Pending => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    assert_eq!(proof.partitions(), 2);
}

#[test]
fn an_engine_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine>();
    shared::<JobHandle>();
}

#[test]
fn a_shutdown_with_a_deadline_says_what_was_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let submit = || {
        engine
            .submit_job(tiny::job(KIND, 1), JobOptions::default())
            .unwrap()
    };
    let jobs = [submit(), submit(), submit()];
    wait_until("the device has one", || device.started() == 1);
    let opener = std::thread::spawn({
        let device = Arc::clone(&device);
        move || {
            std::thread::sleep(Duration::from_millis(200));
            device.gate.open();
        }
    });
    let left = engine.shutdown_within(Duration::from_millis(50));
    opener.join().unwrap();
    assert_eq!(left.len(), 3);
    for job in &jobs {
        let error = job.wait().unwrap_err();
        assert!(matches!(*error, Error::ShuttingDown), "{error}");
    }
}

#[test]
fn a_critical_job_does_not_wait_for_a_partition_that_runs() {
    for kind in [ProofKind::Porep, ProofKind::WinningPost] {
        common::circuit_with_params(kind);
    }
    let mut config = common::config();
    config.gpus.devices = Devices::Cpu;
    let engine = Engine::start(config).unwrap();
    let sealing = common::bundled_request(ProofKind::Porep);
    let jobs = [
        engine.submit(&sealing).unwrap(),
        engine.submit(&sealing).unwrap(),
    ];
    let in_device = || {
        let spans = engine.timeline().of_job(jobs[0].number());
        spans.iter().any(|span| span.stage == Stage::LockWait)
    };
    wait_until("a partition is on the device", in_device);
    let winning = common::bundled_request(ProofKind::WinningPost);
    let winning = engine.submit(&winning).unwrap();
    winning.wait().unwrap();
    assert!(jobs.iter().all(|job| job.poll().is_none()));
    let device = |job: &JobHandle| {
        let spans = engine.timeline().of_job(job.number());
        spans
            .into_iter()
            .find(|span| span.stage == Stage::Device)
            .unwrap()
    };
    for job in &jobs {
        job.wait().unwrap();
    }
    // In the middle of the other's region.
    let (inner, outer) = (device(&winning), device(&jobs[0]));
    assert!(outer.start < inner.start && inner.end < outer.end);
}
