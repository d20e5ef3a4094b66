//! Urgent jobs: what they overtake, and what they do not wait for.

use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use cuzk_core::config::Devices;
use cuzk_core::job::JobHandle;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::{Span, Stage};
use cuzk_core::{Engine, Error};
use cuzk_filecoin::{ProofKind, Statement};
use cuzk_memory::Checkpoint;

use crate::common::BoundedJob as _;
use crate::common::device::{Doorway, Scripted, cores, engine_on, held_up, pool};
use crate::common::tiny::{self, Hooked};
use crate::common::{self, MOMENTS, submit, urgent, wait_until};
#[cfg(unix)]
use crate::pipe::Pipe;

const KIND: ProofKind = ProofKind::SnapDeals;

fn submit_critical(engine: &Engine, job: Arc<dyn Statement>) -> JobHandle {
    let critical = urgent(Priority::Critical);
    engine.submit_job(job, critical).unwrap()
}

/// When devices were busy with a job's partitions.
fn regions(engine: &Engine, job: &JobHandle) -> Vec<Span> {
    let spans = engine.timeline().of_job(job.number()).into_iter();
    spans.filter(|span| span.stage == Stage::Device).collect()
}

#[test]
fn the_devices_say_who_goes_first_and_not_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let critical = |engine: Engine| {
        let job = submit_critical(&engine, tiny::job(KIND, 1));
        job.wait_bounded().unwrap();
        let devices = engine.status().devices.into_iter();
        let proved = devices.filter(|device| device.proved > 0);
        proved.map(|device| device.role).collect::<Vec<_>>()
    };
    // GPUs were asked for, and the cores are what there is.
    config.gpus.devices = Devices::Ordinals(vec![0]);
    let pool = pool(&config);
    let devices = vec![cores(&pool)];
    let engine = Engine::start_on(config.clone(), pool, devices).unwrap();
    assert_eq!(critical(engine), ["critical"]);
    // The other way round.
    config.gpus.devices = Devices::Cpu;
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    assert_eq!(critical(engine), ["device"]);
}

#[test]
fn urgent_jobs_go_first_and_the_low_are_not_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let of = |priority| {
        let job = tiny::job(KIND, 1);
        engine.submit_job(job, urgent(priority)).unwrap()
    };
    let first = of(Priority::Normal);
    wait_until("the device has it", || device.started() == 1);
    // These fill what is between admission and the device.
    let fill: Vec<_> = (0..2).map(|_| of(Priority::Normal)).collect();
    wait_until("that is full", || engine.status().partitions_waiting == 0);
    let order = [
        Priority::Low,
        Priority::Normal,
        Priority::High,
        Priority::Critical,
    ];
    let jobs = order.map(of);
    device.gate.open();
    for job in fill.iter().chain(&jobs).chain([&first]) {
        job.wait_bounded().unwrap();
    }
    let starts = jobs.each_ref().map(|job| regions(&engine, job)[0].start);
    assert!(starts.is_sorted_by(|a, b| a > b), "{starts:?}");
}

#[test]
fn a_critical_job_does_not_wait_for_a_partition_that_runs() {
    let [inner, busy] = critical_beside_poreps(1);
    // In the middle of the other's region.
    let [outer] = &busy[..] else {
        panic!("each partition is proved once: {busy:?}")
    };
    assert!(outer.start < inner[0].start && inner[0].end < outer.end);
}

/// Nor for a pass over the bits of both partitions, if it comes while that runs.
#[test]
fn a_critical_job_does_not_wait_for_a_pass_that_runs() {
    let [inner, busy] = critical_beside_poreps(2);
    assert!(busy.iter().any(|span| span.served == Some(2)));
    let began_in = |outer: &&Span| outer.start < inner[0].start && inner[0].start < outer.end;
    if let Some(outer) = busy.iter().find(began_in) {
        println!("it came in {}", outer.stage);
        assert!(inner[0].end < outer.end);
    }
}

/// Proves PoReps that may share a pass, and a WinningPoSt that comes once the first has waited for the
/// device. Returns the spans in which the device was busy with the latter, and with the first.
fn critical_beside_poreps(poreps: usize) -> [Vec<Span>; 2] {
    for kind in [ProofKind::Porep, ProofKind::WinningPost] {
        common::circuit_with_params(kind);
    }
    let mut config = common::config();
    config.gpus.devices = Devices::Cpu;
    config.pipeline.max_batch = poreps;
    let engine = Engine::start(config).unwrap();
    let sealing = cuzk_testing::bundled_request(ProofKind::Porep);
    let jobs: Vec<_> = (0..poreps)
        .map(|_| engine.submit(&sealing).unwrap())
        .collect();
    let in_device = || {
        let spans = engine.timeline().of_job(jobs[0].number());
        spans.iter().any(|span| span.stage == Stage::LockWait)
    };
    wait_until("a partition is on the device", in_device);
    let winning = cuzk_testing::bundled_request(ProofKind::WinningPost);
    let winning = engine.submit(&winning).unwrap();
    winning.wait_bounded().unwrap();
    assert!(jobs.iter().all(|job| job.poll().is_none()));
    for job in &jobs {
        job.wait_bounded().unwrap();
    }
    let busy = engine.timeline().of_job(jobs[0].number()).into_iter();
    let busy = busy.filter(|span| matches!(span.stage, Stage::Device | Stage::Columns));
    [regions(&engine, &winning), busy.collect()]
}

/// The only synthesis worker is in a witness that takes as long as it likes, and what
/// is between synthesis and the device is full.
#[test]
fn a_critical_job_waits_for_no_synthesis_worker() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.synthesis.partition_workers = 1;
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let witness = Arc::new(Doorway::default());
    let slow = submit(&engine, tiny::held(KIND, &witness));
    witness.wait_bounded();
    let waiting = submit(&engine, tiny::job(KIND, 5));
    let proved = submit_critical(&engine, tiny::job(KIND, 2)).wait_for(MOMENTS);
    witness.open();
    proved.unwrap().unwrap();
    let on_device = engine.status().devices;
    assert_eq!(
        (on_device[0].role, on_device[0].proved >= 2),
        ("device", true)
    );
    slow.wait_bounded().unwrap();
    waiting.wait_bounded().unwrap();
}

#[test]
fn a_witness_stands_still_in_its_middle_for_a_critical_job() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let pool = pool(&config);
    let devices = vec![cores(&pool)];
    let engine = Engine::start_on(config, pool, devices).unwrap();
    let [middle, urgent_witness] = [(); 2].map(|()| Arc::new(Doorway::default()));
    let critical = Arc::new(OnceLock::<JobHandle>::new());
    let (tell, told) = mpsc::channel();
    let in_witness = {
        let (middle, critical) = (Arc::clone(&middle), Arc::clone(&critical));
        move |checkpoint: &Checkpoint<'_>| {
            middle.pass();
            assert!(checkpoint.check().is_ok());
            tell.send(critical.get().unwrap().poll().is_some()).unwrap();
        }
    };
    let paused = Arc::new(Hooked {
        in_witness: Box::new(in_witness),
        ..Hooked::from(tiny::job(KIND, 1))
    });
    let paused = submit(&engine, paused);
    middle.wait_bounded();
    let job = submit_critical(&engine, tiny::held(KIND, &urgent_witness));
    urgent_witness.wait_bounded();
    critical.set(job).unwrap();
    middle.open();
    urgent_witness.open();
    assert!(told.recv_timeout(MOMENTS).unwrap(), "it went on before");
    paused.wait_bounded().unwrap();
}

/// The only thread of the worker for critical work is in a witness that takes as long as
/// it likes.
#[test]
fn a_critical_request_is_read_while_another_is_proved() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.synthesis.threads = 1;
    let pool = pool(&config);
    let devices = vec![cores(&pool)];
    let decoder = |_: &[u8]| -> Result<_, Error> { Ok(tiny::job(KIND, 1)) };
    let engine = Engine::start_with(config, pool, devices, Arc::new(decoder)).unwrap();
    let witness = Arc::new(Doorway::default());
    let slow = submit_critical(&engine, tiny::held(KIND, &witness));
    witness.wait_bounded();
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let engine = &engine;
        let critical = urgent(Priority::Critical);
        scope.spawn(move || tell.send(engine.submit_bytes(b"", critical)));
        let submitted = told.recv_timeout(MOMENTS);
        witness.open();
        submitted.unwrap().unwrap().wait_bounded().unwrap();
    });
    slow.wait_bounded().unwrap();
}

/// The only synthesis worker reads a circuit of another kind, from a file that gives
/// nothing.
#[test]
#[cfg(unix)]
fn a_critical_job_waits_for_nobodys_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.synthesis.partition_workers = 1;
    let kind = ProofKind::WindowPost;
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    // Dropped before the engine, which waits for who reads.
    let pipe = Pipe::in_place_of(kind, directory.path());
    let slow = submit(&engine, tiny::job(kind, 1));
    wait_until("its turn has come", || {
        engine.status().partitions_running == 1
    });
    let critical = submit_critical(&engine, tiny::job(ProofKind::WinningPost, 2));
    let proved = critical.wait_for(MOMENTS);
    assert!(slow.poll().is_none());
    slow.cancel();
    drop(pipe);
    proved.unwrap().unwrap();
}

/// The room before the device is full, and the device takes the next when it will.
#[test]
fn a_critical_job_waits_for_no_room_before_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.pipeline.synthesis_lookahead = 1;
    let (engine, device) = held_up(&mut config);
    let others = submit(&engine, tiny::job(KIND, 4));
    // One is on the device, one before it, and one waits for room.
    wait_until("all is full", || engine.status().partitions_running == 3);
    let critical = submit_critical(&engine, tiny::job(KIND, 1));
    wait_until("it is before the device", || {
        engine.status().partitions_running == 4
    });
    device.gate.open();
    critical.wait_bounded().unwrap();
    others.wait_bounded().unwrap();
    let before = regions(&engine, &critical)[0].start;
    let others = regions(&engine, &others);
    let overtaken = others.iter().filter(|other| other.start > before);
    assert_eq!(overtaken.count(), 3);
}
