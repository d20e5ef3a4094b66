//! Bad devices, and statements that are false: what the caller sees of them.

use std::sync::Arc;
use std::time::Duration;

use cuzk_core::job::JobOptions;
use cuzk_core::kinds::{Job, ProofKind};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine, Error};

use crate::common::device::{Deed, Scripted, pool};
use crate::common::tiny::{self, TinyJob};

const KIND: ProofKind = ProofKind::WindowPost;

fn engine(config: &Config, devices: &[Arc<Scripted>]) -> Engine {
    let devices = devices.iter().map(Scripted::device).collect();
    Engine::start_on(config.clone(), pool(config), devices).unwrap()
}

fn prove(engine: &Engine, job: Arc<dyn Job>) -> cuzk_core::job::Outcome {
    engine
        .submit_job(job, JobOptions::default())
        .unwrap()
        .wait()
}

#[test]
fn whatever_a_device_does_the_proof_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    for deed in [
        Deed::PanicInStart,
        Deed::PanicInFinish,
        Deed::WrongPoint,
        Deed::ErrorInStart,
    ] {
        let device = Scripted::new(&config, move |n| if n == 0 { deed } else { Deed::Prove });
        let engine = engine(&config, &[Arc::clone(&device)]);
        let proof = prove(&engine, tiny::job(KIND, 1)).unwrap();
        assert_eq!(proof.partitions(), 1, "{deed:?}");
        let status = engine.status();
        assert_eq!(status.devices[0].faults, 1, "{deed:?}");
        assert!(!status.devices[0].quarantined);
        assert!(status.devices[0].last_fault.is_some());
        // Elsewhere: there is no other device, so on the CPU.
        let retry = status.devices.last().unwrap();
        assert_eq!((retry.role, retry.proved), ("retry", 1), "{deed:?}");
        assert_eq!(retry.device, 2, "after the device and the critical station");
        prove(&engine, tiny::job(KIND, 1)).unwrap();
        assert_eq!(device.started(), 2, "it is trusted again");
        engine.shutdown();
    }
}

#[test]
fn another_device_is_tried_before_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let bad = Scripted::new(&config, |_| Deed::WrongPoint);
    let good = Scripted::new(&config, |_| Deed::Prove);
    let engine = engine(&config, &[Arc::clone(&bad), Arc::clone(&good)]);
    let jobs: Vec<_> = (0..20)
        .map(|_| {
            engine
                .submit_job(tiny::job(KIND, 2), JobOptions::default())
                .unwrap()
        })
        .collect();
    for job in jobs {
        job.wait().unwrap();
    }
    let status = engine.status();
    assert!(status.devices.iter().all(|device| device.role == "device"));
    assert_eq!(status.devices[1].proved, 40);
    assert_eq!(status.devices[1].faults, 0);
}

#[test]
fn a_device_that_keeps_failing_gets_no_more_work() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::ErrorInStart);
    let engine = engine(&config, &[Arc::clone(&device)]);
    let jobs: Vec<_> = (0..12)
        .map(|_| {
            engine
                .submit_job(tiny::job(KIND, 2), JobOptions::default())
                .unwrap()
        })
        .collect();
    for job in jobs {
        job.wait().unwrap();
    }
    let status = engine.status();
    assert!(status.devices[0].quarantined);
    // Two workers may each have had one more in hand.
    let workers = config.gpus.gpu_workers_per_device;
    assert!(device.started() < config.gpus.faults_max as usize + workers);
    assert_eq!(status.devices.last().unwrap().proved, 24);
    engine.shutdown();
}

#[test]
fn a_device_that_does_not_answer_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.stall = Duration::from_millis(300);
    let device = Scripted::new(&config, |n| if n == 0 { Deed::Stall } else { Deed::Prove });
    let engine = engine(&config, &[Arc::clone(&device)]);
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    let status = engine.status();
    assert!(status.devices[0].quarantined);
    let fault = status.devices[0].last_fault.clone().unwrap();
    assert!(fault.contains("did not answer"), "{fault}");
    // Its answer comes too late and changes nothing.
    device.gate.open();
    prove(&engine, tiny::job(KIND, 3)).unwrap();
    engine.shutdown();
    assert_eq!(device.started(), 1);
}

/// One fault puts a device out.
fn strict(directory: &std::path::Path, rest: Duration) -> Config {
    let mut config = tiny::config(directory);
    config.gpus.faults_max = 1;
    config.gpus.rest = rest;
    config
}

fn is_out(engine: &Engine) -> bool {
    engine.status().devices[0].quarantined
}

#[test]
fn a_device_that_has_rested_shows_on_one_partition_that_it_is_good() {
    let directory = tempfile::tempdir().unwrap();
    let rest = Duration::from_millis(100);
    let config = strict(directory.path(), rest);
    let device = Scripted::new(&config, |n| match n {
        0 => Deed::ErrorInStart,
        2 => Deed::WrongPoint,
        _ => Deed::Prove,
    });
    let engine = engine(&config, &[Arc::clone(&device)]);
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    assert!(is_out(&engine));
    std::thread::sleep(rest);
    // A critical job is not what a device is tried with.
    let critical = JobOptions {
        priority: Some(Priority::Critical),
        ..JobOptions::default()
    };
    let job = engine.submit_job(tiny::job(KIND, 1), critical).unwrap();
    job.wait().unwrap();
    assert_eq!((device.started(), is_out(&engine)), (1, true));
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    assert_eq!((device.started(), is_out(&engine)), (2, false));
    // It has not made up for its fault yet.
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    assert_eq!((device.started(), is_out(&engine)), (3, true));
}

#[test]
fn a_device_that_stays_bad_is_tried_less_and_less() {
    let directory = tempfile::tempdir().unwrap();
    let config = strict(directory.path(), Duration::from_millis(20));
    let device = Scripted::new(&config, |_| Deed::WrongPoint);
    let engine = engine(&config, &[Arc::clone(&device)]);
    let started = std::time::Instant::now();
    let mut proved = 0;
    while started.elapsed() < Duration::from_millis(600) {
        prove(&engine, tiny::job(KIND, 2)).unwrap();
        proved += 2;
    }
    // After 0, 20, 60, 140, 300 and 620 ms, whichever worker had one in hand.
    let tried = device.started();
    assert!((3..=7).contains(&tried), "{tried}");
    let status = engine.status();
    assert_eq!(status.devices[0].proved, 0);
    assert_eq!(status.devices.last().unwrap().proved, proved);
}

#[test]
fn a_device_can_be_reinstated_unless_it_owes_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = strict(directory.path(), Duration::from_secs(3600));
    config.gpus.stall = Duration::from_millis(200);
    let device = Scripted::new(&config, |n| match n {
        0 => Deed::ErrorInStart,
        2 => Deed::Stall,
        _ => Deed::Prove,
    });
    let engine = engine(&config, &[Arc::clone(&device)]);
    engine.reinstate(0).unwrap();
    assert!(engine.reinstate(1).unwrap_err().is_input());
    let run = |starts, out| {
        prove(&engine, tiny::job(KIND, 1)).unwrap();
        assert_eq!((device.started(), is_out(&engine)), (starts, out));
    };
    run(1, true);
    run(1, true);
    engine.reinstate(0).unwrap();
    run(2, false);
    run(3, true);
    let error = engine.reinstate(0).unwrap_err();
    assert!(error.to_string().contains("still owes"), "{error}");
    device.gate.open();
    while engine.reinstate(0).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    run(4, false);
}

/// A device that never answers, as long as the engine lives.
#[test]
fn a_silent_device_holds_up_neither_a_job_nor_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = strict(directory.path(), Duration::from_millis(10));
    config.gpus.stall = Duration::from_millis(200);
    config.jobs.journal = Some(directory.path().join("jobs.journal"));
    let ends: [fn(Engine); 3] = [Engine::shutdown, drop, |engine| {
        assert!(engine.shutdown_within(Duration::from_secs(60)).is_empty())
    }];
    for end in ends {
        // Only one engine at a time can have the journal.
        let device = Scripted::new(&config, |_| Deed::Stall);
        let engine = engine(&config, &[Arc::clone(&device)]);
        prove(&engine, tiny::job(KIND, 1)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        prove(&engine, tiny::job(KIND, 3)).unwrap();
        assert!(is_out(&engine), "rested or not, it owes an answer");
        assert_eq!(device.started(), 1);
        let status = engine.status();
        assert_eq!(status.partitions_running, 0);
        let memory = status.memory;
        assert!(
            memory.used_bytes > memory.idle_bytes,
            "it may still be used"
        );
        let started = std::time::Instant::now();
        end(engine);
        assert!(started.elapsed() < Duration::from_secs(5));
        device.gate.open();
    }
}

#[test]
fn an_end_that_does_not_wait_gives_devices_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::Stall);
    let engine = engine(&config, &[Arc::clone(&device)]);
    let job = engine
        .submit_job(tiny::job(KIND, 3), JobOptions::default())
        .unwrap();
    while device.started() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let started = std::time::Instant::now();
    let left = engine.shutdown_within(Duration::from_millis(50));
    let took = started.elapsed();
    assert!(
        took > Duration::from_secs(9) && took < Duration::from_secs(20),
        "{took:?}"
    );
    assert_eq!(left.len(), 1);
    assert!(matches!(*job.wait().unwrap_err(), Error::ShuttingDown));
    device.gate.open();
}

#[test]
fn a_false_statement_is_the_callers_and_blames_no_device() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::Prove);
    let engine = engine(&config, &[device]);
    let job = TinyJob {
        kind: KIND,
        partitions: 3,
        false_partition: Some(1),
    };
    let error = prove(&engine, Arc::new(job)).unwrap_err();
    let Error::Unsatisfied { partition: 1, row } = *error else {
        panic!("{error}")
    };
    assert_eq!(row, 17, "the last row is the one that looks at the square");
    assert!(error.is_input());
    assert_eq!(engine.status().devices[0].faults, 0);
}

#[test]
fn what_fails_everywhere_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::PanicInFinish);
    let engine = engine(&config, &[device]);
    let broken = Arc::new(Broken);
    let error = prove(&engine, broken).unwrap_err();
    assert!(
        matches!(
            *error,
            Error::Internal {
                stage: "finish",
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.is_input());
}

/// A job that panics where a proof is verified.
struct Broken;

impl Job for Broken {
    fn circuit(&self) -> cuzk_core::kinds::CircuitId {
        tiny::id(KIND)
    }

    fn partitions(&self) -> usize {
        1
    }

    fn writer(&self) -> cuzk_core::kinds::Writer {
        cuzk_core::kinds::Writer::Circuit
    }

    fn witness(&self, partition: usize) -> Result<cuzk_pce::PackedWitness<blstrs::Scalar>, Error> {
        tiny::job(KIND, 1).witness(partition)
    }

    fn public_inputs(&self, _: usize) -> Result<Vec<blstrs::Scalar>, Error> {
        panic!("a defect of a kind")
    }

    fn reference_witness(
        &self,
        partition: usize,
    ) -> Result<bellperson::util_cs::witness_cs::WitnessCS<blstrs::Scalar>, Error> {
        tiny::job(KIND, 1).reference_witness(partition)
    }

    fn reference_proof(
        &self,
        partition: usize,
        parameters: &bellperson::groth16::MappedParameters<blstrs::Bls12>,
        r: blstrs::Scalar,
        s: blstrs::Scalar,
    ) -> Result<bellperson::groth16::Proof<blstrs::Bls12>, Error> {
        tiny::job(KIND, 1).reference_proof(partition, parameters, r, s)
    }
}
