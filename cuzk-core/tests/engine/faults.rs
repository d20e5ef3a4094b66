//! Bad devices, and statements that are false: what the caller sees of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use blstrs::Scalar;
use cuzk_bounded::bounded;
use cuzk_core::circuits;
use cuzk_core::job::{JobOptions, Outcome};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::{ProofKind, Statement};
use cuzk_groth16::backend::footprint::partition_bytes;
use cuzk_groth16::params::Shapes;
use cuzk_pce::PackedBuilder;

use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Doorway, FAULTS, Opened, Scripted, engine_on};
use crate::common::tiny::{self, Hooked, TinyJob};
use crate::common::{MOMENTS, submit, urgent, wait_until};

const KIND: ProofKind = ProofKind::WindowPost;

fn prove(engine: &Engine, job: Arc<dyn Statement>) -> Outcome {
    let job = submit(engine, job);
    job.wait_for(MOMENTS).unwrap()
}

#[test]
fn whatever_a_device_does_the_proof_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let all = FAULTS
        .into_iter()
        .flat_map(|deed| ProofKind::ALL.map(|kind| (deed, kind)));
    for (deed, kind) in all {
        let device = Scripted::new(&config, move |n| if n == 0 { deed } else { Deed::Prove });
        let engine = engine_on(&config, &[&device]);
        let proof = prove(&engine, tiny::job(kind, 1)).unwrap();
        assert_eq!(proof.partitions(), 1, "{deed:?}");
        let status = engine.status();
        assert_eq!(status.devices[0].faults, 1, "{deed:?}");
        assert!(!status.devices[0].quarantined);
        assert!(status.devices[0].last_fault.is_some());
        // Elsewhere: there is no other device, so on the CPU.
        let elsewhere = status.devices.last().unwrap();
        let role = match kind {
            ProofKind::WinningPost => ("critical", 1),
            _ => ("retry", 2),
        };
        assert_eq!((elsewhere.role, elsewhere.device), role, "{deed:?}");
        assert_eq!(elsewhere.proved, 1, "{deed:?}");
        prove(&engine, tiny::job(kind, 1)).unwrap();
        assert_eq!(device.started(), 2, "it is trusted again");
        engine.shutdown();
    }
}

#[test]
fn another_device_is_tried_before_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let bad = Scripted::new(&config, |_| Deed::WrongPoint);
    let good = Scripted::good(&config);
    let engine = engine_on(&config, &[&bad, &good]);
    let jobs: Vec<_> = (0..20)
        .map(|_| submit(&engine, tiny::job(KIND, 2)))
        .collect();
    for job in jobs {
        job.wait_bounded().unwrap();
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
    let engine = engine_on(&config, &[&device]);
    let jobs: Vec<_> = (0..12)
        .map(|_| submit(&engine, tiny::job(KIND, 2)))
        .collect();
    for job in jobs {
        job.wait_bounded().unwrap();
    }
    let status = engine.status();
    assert!(status.devices[0].quarantined);
    // Two workers may each have had one more in hand.
    let workers = config.gpus.gpu_workers_per_device;
    assert!(device.started() < config.gpus.faults_max as usize + workers);
    assert_eq!(status.devices.last().unwrap().proved, 24);
    engine.shutdown();
}

/// What is wrong with parameters is no reason to do without a device.
#[test]
fn a_device_is_not_blamed_for_what_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.faults_max = 2;
    let device = Scripted::new(
        &config,
        |n| if n < 6 { Deed::BadInput } else { Deed::Prove },
    );
    let engine = engine_on(&config, &[&device]);
    prove(&engine, tiny::job(KIND, 6)).unwrap();
    let status = engine.status();
    assert_eq!((status.devices[0].faults, status.devices[0].proved), (0, 0));
    assert_eq!(status.devices.last().unwrap().proved, 6, "elsewhere");
    prove(&engine, tiny::job(KIND, 6)).unwrap();
    assert_eq!(engine.status().devices[0].proved, 6);
    engine.shutdown();
}

/// Nor is a circuit that does not fit; and it is tried once, since a witness that is made for
/// a device in vain has to be made again.
#[test]
fn a_circuit_that_does_not_fit_goes_elsewhere_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.faults_max = 2;
    let small = Scripted::new(
        &config,
        |n| if n == 0 { Deed::TooLarge } else { Deed::Prove },
    );
    let engine = engine_on(&config, &[&small]);
    let num_proved = || {
        let devices = engine.status().devices;
        (devices[0].proved, devices.last().unwrap().proved)
    };
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    prove(&engine, tiny::job(KIND, 6)).unwrap();
    assert_eq!(small.started(), 1);
    assert_eq!(engine.status().devices[0].faults, 0);
    assert_eq!(num_proved(), (0, 7));
    // Others do fit.
    prove(&engine, tiny::job(ProofKind::SnapDeals, 6)).unwrap();
    assert_eq!(num_proved(), (6, 7));
    engine.shutdown();
}

/// Memory may have been added, or a driver's limit raised.
#[test]
fn a_circuit_that_did_not_fit_is_tried_again_on_a_device_that_is_reinstated() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let small = Scripted::new(
        &config,
        |n| if n == 0 { Deed::TooLarge } else { Deed::Prove },
    );
    let engine = engine_on(&config, &[&small]);
    for (reinstated, started) in [(false, 1), (false, 1), (true, 2), (false, 3)] {
        if reinstated {
            engine.reinstate(0).unwrap();
        }
        prove(&engine, tiny::job(KIND, 1)).unwrap();
        assert_eq!(small.started(), started);
    }
    assert_eq!(engine.status().devices[0].proved, 2);
    engine.shutdown();
}

/// Also when the last device that could still try is lost while the partition waits for it.
#[test]
fn what_a_device_failed_to_prove_it_is_not_given_again() {
    const PARTITIONS: usize = 4;
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.stall = Duration::from_millis(500);
    config.gpus.faults_max = 1000;
    config.gpus.gpu_workers_per_device = 1;
    config.pipeline.synthesis_lookahead = PARTITIONS;
    let failing = Scripted::new(&config, |_| Deed::ErrorInStart);
    let silent = Scripted::new(&config, |_| Deed::Stall);
    let engine = engine_on(&config, &[&failing, &silent]);
    let silent = Opened(silent);
    prove(&engine, tiny::job(KIND, PARTITIONS)).unwrap();
    assert_eq!(silent.started(), 1);
    assert!(failing.started() <= PARTITIONS);
    assert_eq!(engine.status().devices[0].faults, failing.started() as u64);
    let elsewhere = engine.status().devices.last().unwrap().proved;
    assert_eq!(elsewhere, PARTITIONS as u64);
    silent.gate.open();
    engine.shutdown();
}

#[test]
fn a_device_that_does_not_answer_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.stall = Duration::from_millis(300);
    let device = Scripted::new(&config, |n| if n == 0 { Deed::Stall } else { Deed::Prove });
    let engine = engine_on(&config, &[&device]);
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

/// Files are charged as long as there is room for them, and their pages are the system's
/// to take back.
#[test]
fn what_a_silent_device_has_taken_is_no_reason_to_refuse_other_kinds() {
    const KEPT_BYTES: u64 = 1 << 30;
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.stall = Duration::from_millis(300);
    config.memory.critical_reserve_bytes = 0;
    config.memory.safety_margin_bytes = 1;
    let kinds = [ProofKind::SnapDeals, KIND];
    // All kinds have the same circuit here.
    let engine = engine_on(&config, &[&Scripted::keeping(&config, KEPT_BYTES)]);
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    wait_until("it is over", || engine.status().partitions_running == 0);
    let shared_bytes = engine.status().memory.used_bytes;
    engine.shutdown();
    let id = tiny::id(KIND);
    let circuit = circuits::cached(id, directory.path()).unwrap();
    let own_bytes = partition_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    let params = directory
        .path()
        .join(circuits::parameter_files(id).unwrap().params);
    let file_bytes = std::fs::metadata(params).unwrap().len();
    let both = 2 * (own_bytes + shared_bytes);

    for (missing, fits) in [(file_bytes, true), (file_bytes + 1, false)] {
        config.memory.total_budget_bytes = both - missing + 1;
        let device = Scripted::new(&config, |_| Deed::Stall).that_keeps(KEPT_BYTES);
        let engine = engine_on(&config, &[&device]);
        let device = Opened(device);
        prove(&engine, tiny::job(kinds[0], 1)).unwrap();
        // At its turn, and when it is submitted.
        for _ in 0..2 {
            let proved = engine.submit_job(tiny::job(kinds[1], 1), JobOptions::default());
            let outcome = proved
                .map_err(Arc::new)
                .and_then(|job| job.wait_for(MOMENTS).unwrap());
            match outcome {
                Ok(_) => assert!(fits),
                Err(error) => assert!(!fits && matches!(*error, Error::OverBudget(_)), "{error}"),
            }
        }
        device.gate.open();
        engine.shutdown();
    }
}

/// All devices share the workers that finish: here the only one is lost to a device
/// that does not answer, and the other device's partitions go on.
#[test]
fn a_finish_that_does_not_answer_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.stall = Duration::from_millis(300);
    config.gpus.rest = Duration::from_secs(3600);
    config.pipeline.finish_workers = 1;
    let silent = Scripted::new(&config, |_| Deed::StallInFinish);
    let good = Scripted::good(&config);
    let engine = engine_on(&config, &[&silent, &good]);
    let silent = Opened(silent);
    let status = || engine.status();
    // Until the silent one got a partition, and was noticed.
    bounded(|| {
        while !status().devices[0].quarantined {
            prove(&engine, tiny::job(KIND, 2)).unwrap();
        }
    });
    let fault = status().devices[0].last_fault.clone().unwrap();
    assert!(fault.contains("did not answer"), "{fault}");
    let proved = status().devices[1].proved;
    prove(&engine, tiny::job(KIND, 5)).unwrap();
    assert_eq!(status().devices[1].proved, proved + 5);
    assert_eq!(status().devices[0].proved, 0);
    // What the silent one may still use is not given to others.
    wait_until("the rest is given back", || {
        status().partitions_running == 0
    });
    let used = || status().memory.used_bytes - status().memory.idle_bytes;
    assert!(used() > 0);
    let error = engine.reinstate(0).unwrap_err();
    assert!(error.to_string().contains("still owes"), "{error}");
    // Its answers come too late, change nothing, and give the memory back.
    silent.gate.open();
    wait_until("it has answered", || engine.reinstate(0).is_ok());
    wait_until("its memory is free", || used() == 0);
    assert_eq!(status().devices[0].proved, 0);
    engine.shutdown();
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
    let engine = engine_on(&config, &[&device]);
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    assert!(is_out(&engine));
    std::thread::sleep(rest);
    // A critical job is not what a device is tried with.
    let critical = urgent(Priority::Critical);
    let job = engine.submit_job(tiny::job(KIND, 1), critical).unwrap();
    job.wait_bounded().unwrap();
    assert_eq!((device.started(), is_out(&engine)), (1, true));
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    assert_eq!((device.started(), is_out(&engine)), (2, false));
    // It has not made up for its fault yet.
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    assert_eq!((device.started(), is_out(&engine)), (3, true));
}

#[test]
fn a_device_that_stays_bad_is_tried_less_and_less() {
    const REST: Duration = Duration::from_millis(20);
    const TRIALS: usize = 4;
    let directory = tempfile::tempdir().unwrap();
    let config = strict(directory.path(), REST);
    let starts = Arc::new(Mutex::new(Vec::new()));
    let device = Scripted::new(&config, {
        let starts = Arc::clone(&starts);
        move |_| {
            starts.lock().unwrap().push(Instant::now());
            Deed::WrongPoint
        }
    });
    let engine = engine_on(&config, &[&device]);
    let mut proved = 0;
    // One after the other, so that none is on its way when the device fails.
    while device.started() <= TRIALS {
        prove(&engine, tiny::job(KIND, 1)).unwrap();
        proved += 1;
    }
    let starts = starts.lock().unwrap().clone();
    let mut rest = REST;
    for pair in starts.windows(2) {
        let rested = pair[1] - pair[0];
        assert!(rested >= rest, "{rested:?}, not {rest:?}");
        rest *= 2;
    }
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
    let engine = engine_on(&config, &[&device]);
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
    wait_until("it has answered", || engine.reinstate(0).is_ok());
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
    let both = [Deed::Stall, Deed::StallInFinish];
    for (end, deed) in ends
        .into_iter()
        .flat_map(|end| both.map(|deed| (end, deed)))
    {
        // Only one engine at a time can have the journal.
        let device = Scripted::new(&config, move |_| deed);
        let engine = engine_on(&config, &[&device]);
        let device = Opened(device);
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
        // Who waited for the device would wait for ever.
        end(engine);
    }
}

/// The device never answers, and the end comes nevertheless; but not before the device
/// had its seconds.
#[test]
fn an_end_that_does_not_wait_gives_devices_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::Stall);
    let engine = engine_on(&config, &[&device]);
    let job = submit(&engine, tiny::job(KIND, 3));
    wait_until("the device has one", || device.started() > 0);
    let started = Instant::now();
    let left = engine.shutdown_within(Duration::from_millis(50));
    assert!(started.elapsed() > Duration::from_secs(9));
    assert_eq!(left.len(), 1);
    assert!(matches!(
        *job.wait_bounded().unwrap_err(),
        Error::ShuttingDown
    ));
    device.gate.open();
}

#[test]
fn a_false_statement_is_the_callers_and_blames_no_device() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::good(&config);
    let engine = engine_on(&config, &[&device]);
    let job = TinyJob {
        kind: KIND,
        partitions: 3,
        false_partition: Some(1),
    };
    let error = prove(&engine, Arc::new(job)).unwrap_err();
    let Error::Unsatisfied {
        partition: 1,
        row,
        part: Some(part),
    } = &*error
    else {
        panic!("{error}")
    };
    assert_eq!(*row, 17, "the last row is the one that looks at the square");
    // The name is that of the circuit whose place the tiny one has.
    let named = cuzk_filecoin::blank::row_name(tiny::id(KIND), *row).unwrap();
    assert_eq!(Some(part), named.as_ref());
    assert!(
        error
            .to_string()
            .contains(&format!("constraint 17 ({part})")),
        "{error}"
    );
    assert!(error.is_input());
    assert_eq!(engine.status().devices[0].faults, 0);
}

#[test]
fn what_fails_everywhere_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |_| Deed::PanicInFinish);
    let engine = engine_on(&config, &[&device]);
    let broken = Hooked {
        in_public_inputs: Box::new(|| panic!("a defect of a kind")),
        ..Hooked::from(tiny::job(KIND, 1))
    };
    let error = prove(&engine, Arc::new(broken)).unwrap_err();
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

/// A statement whose witness does something the second time it is written: when it is
/// looked at because a proof was rejected.
fn second_witness(deed: impl Fn() + Send + Sync + 'static) -> Arc<dyn Statement> {
    let written = AtomicUsize::new(0);
    Arc::new(Hooked {
        in_witness: Box::new(move |_| {
            if written.fetch_add(1, Ordering::SeqCst) == 1 {
                deed();
            }
        }),
        ..Hooked::from(tiny::job(KIND, 1))
    })
}

#[test]
fn a_panic_beside_the_stages_ends_its_job_and_no_thread() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.synthesis.partition_workers = 1;
    config.pipeline.finish_workers = 1;
    config.gpus.faults_max = 1000;
    for priority in [Priority::Normal, Priority::Critical] {
        let device = Scripted::new(&config, |n| match n % 2 {
            0 => Deed::WrongPoint,
            _ => Deed::Prove,
        });
        let engine = engine_on(&config, &[&device]);
        for _ in 0..2 {
            let broken = second_witness(|| panic!("a defect of a kind"));
            let broken = engine.submit_job(broken, urgent(priority)).unwrap();
            let error = broken.wait_for(MOMENTS).unwrap().unwrap_err();
            assert!(matches!(*error, Error::Internal { .. }), "{error}");
            let good = engine.submit_job(tiny::job(KIND, 1), urgent(priority));
            good.unwrap().wait_for(MOMENTS).unwrap().unwrap();
        }
        assert!(engine.status().jobs.is_empty());
        engine.shutdown();
    }
}

/// It is no panic, and no fault of a device: neither where a partition is synthesized nor
/// where it is seen whose fault a rejected proof is.
#[test]
fn a_witness_without_memory_is_an_error_that_says_what_to_do() {
    // More than a machine has addresses for.
    const WORDS: usize = 1 << 48;
    let no_memory = || drop(PackedBuilder::<Scalar>::with_capacity(64 * WORDS, 0));
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |n| match n {
        0 => Deed::WrongPoint,
        _ => Deed::Prove,
    });
    let engine = engine_on(&config, &[&device]);
    let first: Arc<dyn Statement> = Arc::new(Hooked {
        in_witness: Box::new(move |_| no_memory()),
        ..Hooked::from(tiny::job(KIND, 1))
    });
    for job in [first, second_witness(no_memory)] {
        let error = prove(&engine, job).unwrap_err();
        let Error::NoMemory(asked) = &*error else {
            panic!("{error}");
        };
        assert!(asked.bytes >= 8 * WORDS && !error.is_input());
        let told = error.to_string();
        let bytes = asked.bytes.to_string();
        assert!(
            told.contains(&bytes) && told.contains("total_budget"),
            "{told}"
        );
    }
    assert_eq!(engine.status().devices[0].faults, 0);
    prove(&engine, tiny::job(KIND, 1)).unwrap();
    engine.shutdown();
}

#[test]
fn what_a_second_look_at_a_statement_takes_is_charged() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::new(&config, |n| match n {
        1 => Deed::WrongPoint,
        _ => Deed::Prove,
    });
    let engine = engine_on(&config, &[&device]);
    submit(&engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
    let shared_bytes = engine.status().memory.idle_bytes;
    let circuit = circuits::cached(tiny::id(KIND), directory.path()).unwrap();
    let own_bytes = partition_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    let looks = Arc::new(Doorway::default());
    let job = second_witness({
        let looks = Arc::clone(&looks);
        move || looks.pass()
    });
    let job = submit(&engine, job);
    looks.wait_bounded();
    // What the first attempt had goes back behind the second's admission.
    wait_until("the look is charged, and nothing else", || {
        engine.status().memory.used_bytes == own_bytes + shared_bytes
    });
    looks.open();
    job.wait_bounded().unwrap();
}
