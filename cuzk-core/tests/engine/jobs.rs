//! Ids, results, cancellation, deadlines and the end of an engine, as callers see
//! them.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[cfg(unix)]
use cuzk_bounded::{BoundedJoin, bounded};
use cuzk_core::circuits;
use cuzk_core::job::{JobHandle, JobOptions};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Stage;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::{ProofKind, Statement};
use cuzk_groth16::backend::Device;

use crate::common::BoundedJob as _;
use crate::common::device::{Deed, Opened, Scripted, cores, engine_on, held_up, pool};
use crate::common::tiny::{self, Hooked, TinyJob};
use crate::common::{self, MOMENTS, named, submit, urgent, wait_until};
#[cfg(unix)]
use crate::pipe::Pipe;

const KIND: ProofKind = ProofKind::SnapDeals;

fn is_cancelled(job: &JobHandle) -> bool {
    matches!(job.poll(), Some(Err(error)) if matches!(*error, Error::Cancelled))
}

#[test]
fn the_same_id_and_request_is_the_same_job() {
    common::circuit_with_params(ProofKind::WindowPost);
    let engine = Engine::start(common::config()).unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WindowPost);
    // Several at once: one decides, the others attach.
    let jobs: Vec<_> = std::thread::scope(|scope| {
        let submit = || engine.submit_with(&request, named("sector-1")).unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(submit)).collect();
        threads
            .into_iter()
            .map(|t| t.join_bounded().unwrap())
            .collect()
    });
    assert!(jobs.iter().all(|job| job.number() == jobs[0].number()));
    let proof = jobs[0].wait_bounded().unwrap();
    let again = engine.submit_with(&request, named("sector-1")).unwrap();
    assert_eq!(again.wait_bounded().unwrap(), proof, "not proved twice");
    assert_eq!(engine.job("sector-1").unwrap().number(), jobs[0].number());

    let other = cuzk_testing::bundled_request(ProofKind::WinningPost);
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
    let request = cuzk_testing::bundled_request(ProofKind::WindowPost);
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
    second.wait_bounded().unwrap();
}

#[test]
fn results_are_kept_for_a_bounded_number_of_jobs() {
    common::circuit_with_params(ProofKind::WindowPost);
    let mut config = common::config();
    config.jobs.results_kept = 2;
    let engine = Engine::start(config).unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WindowPost);
    for id in ["a", "b", "c"] {
        let job = engine.submit_with(&request, named(id)).unwrap();
        job.wait_bounded().unwrap();
    }
    wait_until("the oldest is forgotten", || engine.job("a").is_none());
    assert!(engine.job("b").is_some() && engine.job("c").is_some());
}

#[test]
fn results_are_kept_for_a_bounded_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.jobs.results_kept_for = Duration::from_secs(2);
    let engine = Engine::start(config).unwrap();
    let error = engine.submit_bytes(b"no request", named("a")).unwrap_err();
    assert!(error.is_input() && engine.job("a").is_none());
    let request = cuzk_testing::bundled_request(ProofKind::WindowPost);
    // It is another circuit's, and fails; it is kept as well as any.
    let job = engine.submit_with(&request, named("a")).unwrap();
    drop(job.wait_bounded());
    assert!(engine.job("a").is_some());
    wait_until("it is forgotten", || engine.job("a").is_none());
}

/// Sends the ids of the jobs that the status shows as ended, when it is woken.
struct ReadsStatus(Weak<Engine>, mpsc::Sender<Vec<Option<String>>>);

impl Wake for ReadsStatus {
    fn wake(self: Arc<Self>) {
        let ended = self.0.upgrade().unwrap().status().ended;
        let ids = ended.into_iter().map(|job| job.id).collect();
        self.1.send(ids).unwrap();
    }
}

/// Its caller may look for it there at once.
#[test]
fn the_status_shows_a_job_as_ended_before_its_caller_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, device) = held_up(&mut tiny::config(directory.path()));
    let engine = Arc::new(engine);
    let job = engine.submit_job(tiny::job(KIND, 1), named("a")).unwrap();
    let (sender, seen) = mpsc::channel();
    let waker = Waker::from(Arc::new(ReadsStatus(Arc::downgrade(&engine), sender)));
    let mut proof = pin!(IntoFuture::into_future(job.clone()));
    let polled = proof.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    device.gate.open();
    let seen = seen.recv_timeout(MOMENTS).unwrap();
    assert_eq!(seen, [Some("a".to_owned())]);
    job.wait_for(MOMENTS).unwrap().unwrap();
}

/// However a job ends, and whoever still holds it.
#[test]
fn the_input_of_a_job_dies_with_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::start(tiny::config(directory.path())).unwrap();
    for false_partition in [None, Some(3)] {
        let input = Arc::new(TinyJob {
            kind: KIND,
            partitions: 20,
            false_partition,
        });
        // Shared by its partitions: there is no other way to hold it.
        let job = submit(&engine, Arc::<TinyJob>::clone(&input));
        assert_eq!(job.wait_bounded().is_ok(), false_partition.is_none());
        wait_until("it is dropped", || Arc::strong_count(&input) == 1);
        assert!(job.poll().is_some());
    }
}

#[test]
fn a_job_goes_on_without_its_handle_and_a_wait_ends_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let job = submit(&engine, tiny::job(KIND, 1));
    // It would not end before the gate is open.
    assert!(job.wait_for(Duration::from_millis(20)).is_none());
    drop(job);
    device.gate.open();
    wait_until("it has ended", || engine.status().jobs.is_empty());
    assert_eq!(engine.status().devices[0].proved, 1);
}

#[test]
fn a_closed_engine_refuses_what_is_new_and_ends_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let before = submit(&engine, tiny::job(KIND, 5));
    engine.close();
    let after = engine.submit_job(tiny::job(KIND, 1), named("after"));
    let error = after.unwrap_err();
    assert!(matches!(error, Error::ShuttingDown), "{error}");
    assert!(before.wait_for(Duration::from_millis(20)).is_none());
    device.gate.open();
    assert_eq!(before.wait_for(MOMENTS).unwrap().unwrap().partitions(), 5);
    engine.shutdown();
}

#[test]
fn a_cancelled_job_gives_back_all_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let running = submit(&engine, tiny::job(KIND, 1));
    wait_until("the device has it", || device.started() == 1);
    let input = tiny::job(KIND, 20);
    let waiting = submit(&engine, Arc::clone(&input));
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

/// One worker reads a circuit's file, for as long as that takes, and another waits for it.
#[test]
#[cfg(unix)]
fn a_cancelled_job_leaves_the_wait_for_anothers_reading() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.synthesis.partition_workers = 2;
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    // Dropped before the engine, which waits for who reads.
    let pipe = Pipe::in_place_of(KIND, directory.path());
    let running = || engine.status().partitions_running;
    let reads = submit(&engine, tiny::job(KIND, 1));
    wait_until("one reads", || running() == 1);
    let waits = submit(&engine, tiny::job(KIND, 1));
    wait_until("the other waits", || running() == 2);
    assert!(waits.cancel());
    wait_until("it has left", || running() == 1);
    // Its worker has other work now.
    let other = submit(&engine, tiny::job(ProofKind::WinningPost, 1));
    let proved = other.wait_for(MOMENTS);
    assert!(reads.poll().is_none());
    reads.cancel();
    drop(pipe);
    proved.unwrap().unwrap();
}

/// The circuit's file cannot be read, which is known only once the job that reads it is
/// cancelled: it would be compiled next. Another job has waited for the file, and does so.
#[test]
#[cfg(unix)]
fn a_cancelled_job_compiles_no_circuit_and_who_waits_for_it_does() {
    const REAL: ProofKind = ProofKind::WindowPost;
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    common::copy_params(REAL, folder);
    let path = circuits::cache_path(tiny::id(REAL), folder).unwrap();
    let mut config = common::config();
    config.srs.param_cache = folder.to_owned();
    config.synthesis.partition_workers = 2;
    let request = cuzk_testing::bundled_request(REAL);
    for others in 0..=1 {
        std::fs::write(&path, "").unwrap();
        let engine = Engine::start(config.clone()).unwrap();
        let pipe = Pipe::in_place_of(REAL, folder);
        let running = || engine.status().partitions_running;
        let reads = engine.submit(&request).unwrap();
        wait_until("one reads", || running() == 1);
        let waits: Vec<_> = (0..others)
            .map(|_| engine.submit(&request).unwrap())
            .collect();
        wait_until("the others wait", || running() == 1 + others);
        assert!(reads.cancel());
        drop(pipe);
        for job in waits {
            job.wait_for(MOMENTS).unwrap().unwrap();
        }
        engine.shutdown();
        assert!(is_cancelled(&reads));
        assert_eq!(path.exists(), others > 0);
    }
}

/// Somebody else has the device's lock, for as long as they like.
#[test]
fn a_cancelled_job_leaves_the_wait_for_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::good(&config);
    let engine = engine_on(&config, &[&device]);
    let resources = device.device().resources;
    let held = resources.lock_gpu().unwrap();
    let job = submit(&engine, tiny::job(KIND, 1));
    wait_until("the device has it", || device.started() == 1);
    assert!(job.cancel());
    wait_until("it has left", || engine.status().partitions_running == 0);
    drop(held);
    submit(&engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
    assert_eq!(engine.status().devices[0].faults, 0);
}

#[test]
fn a_real_partition_stops_at_its_next_chunk() {
    common::circuit_with_params(ProofKind::WinningPost);
    let engine = Engine::start(common::config()).unwrap();
    let request = cuzk_testing::bundled_request(ProofKind::WinningPost);
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
    engine.submit(&request).unwrap().wait_bounded().unwrap();
}

#[test]
fn a_partition_stops_in_the_middle_of_its_evaluation() {
    common::circuit_with_params(ProofKind::WinningPost);
    let config = common::config();
    let pool = pool(&config);
    let device = cores(&pool);
    let resources = Arc::clone(&device.resources);
    let engine = Engine::start_on(config, pool, vec![device]).unwrap();
    // Holds evaluation up for a while, as a sum in G2 would.
    let _raised = resources.raise_throttle();
    let request = cuzk_testing::bundled_request(ProofKind::WinningPost);
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

/// A job of so many partitions, which is of use for so long.
fn submit_within(
    engine: &Engine,
    deadline: Duration,
    partitions: usize,
) -> Result<JobHandle, Error> {
    let options = JobOptions {
        deadline: Some(deadline),
        ..JobOptions::default()
    };
    engine.submit_job(tiny::job(KIND, partitions), options)
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_with_the_estimate() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let slow = Duration::from_millis(100);
    let device = Scripted::new(&config, move |_| Deed::ProveAfter(slow));
    let engine = engine_on(&config, &[&device]);
    let within = |deadline_ms, partitions| {
        submit_within(&engine, Duration::from_millis(deadline_ms), partitions)
    };
    // Nothing is known yet.
    within(60_000, 1).unwrap().wait_bounded().unwrap();
    let error = within(50, 5).unwrap_err();
    let Error::TooLate {
        deadline_ms: 50,
        estimate_ms,
    } = error
    else {
        panic!("{error}")
    };
    assert!(estimate_ms >= 500);
    within(60_000, 1).unwrap().wait_bounded().unwrap();
}

/// What was slow once may have been cold, or beside something else.
#[test]
fn a_slow_start_does_not_refuse_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let slow = Duration::from_millis(800);
    let device = Scripted::new(&config, move |n| match n {
        0 => Deed::ProveAfter(slow),
        _ => Deed::Prove,
    });
    let engine = engine_on(&config, &[&device]);
    for _ in 0..2 {
        submit(&engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
    }
    submit_within(&engine, slow / 2, 1).unwrap();
}

/// Somebody else had the device's lock for a while.
#[test]
fn the_wait_for_a_device_is_no_part_of_what_work_takes() {
    const HELD: Duration = Duration::from_secs(1);
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let device = Scripted::good(&config);
    let engine = engine_on(&config, &[&device]);
    let resources = device.device().resources;
    let held = resources.lock_gpu().unwrap();
    let job = submit(&engine, tiny::job(KIND, 1));
    wait_until("the device has it", || device.started() == 1);
    std::thread::sleep(HELD);
    drop(held);
    job.wait_bounded().unwrap();
    submit_within(&engine, HELD / 2, 1).unwrap();
}

#[test]
fn a_job_that_the_queue_could_never_hold_is_told_which_key_to_raise() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.jobs.queued_partitions = 4;
    let engine = Engine::start(config).unwrap();
    let submit = |partitions| engine.submit_job(tiny::job(KIND, partitions), JobOptions::default());
    let error = submit(5).unwrap_err();
    let told = error.to_string();
    assert!(matches!(
        error,
        Error::TooManyPartitions {
            partitions: 5,
            capacity: 4
        }
    ));
    assert!(
        error.is_input() && told.contains("queued_partitions"),
        "{told}"
    );
    let error = submit(0).unwrap_err();
    assert!(error.is_input(), "{error}");
    assert_eq!(submit(4).unwrap().wait_bounded().unwrap().partitions(), 4);
}

fn decoding(
    config: &Config,
    devices: Vec<Device>,
    decoder: impl Fn(&[u8]) -> Result<Arc<dyn Statement>, Error> + Send + Sync + 'static,
) -> Engine {
    Engine::start_with(config.clone(), pool(config), devices, Arc::new(decoder)).unwrap()
}

#[test]
fn a_decoder_that_panics_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let devices = vec![Scripted::good(&config).device()];
    let engine = decoding(&config, devices, |request| match request {
        b"panic" => panic!("a defect of a decoder"),
        _ => Ok(tiny::job(KIND, 1)),
    });
    for _ in 0..2 {
        let error = engine.submit_bytes(b"panic", named("a")).unwrap_err();
        let is_told = matches!(
            error,
            Error::Internal {
                stage: "decode",
                ..
            }
        );
        assert!(is_told && engine.job("a").is_none(), "{error}");
    }
    let job = engine.submit_bytes(b"right", named("a")).unwrap();
    job.wait_bounded().unwrap();
}

#[test]
fn what_cannot_enter_is_not_decoded() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.jobs.queued_partitions = 4;
    config.synthesis.partition_workers = 1;
    config.pipeline.synthesis_lookahead = 1;
    config.gpus.gpu_workers_per_device = 1;
    let device = Opened(Scripted::new(&config, |_| Deed::Stall));
    let decoded = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&decoded);
    let engine = decoding(&config, vec![device.device()], move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(tiny::job(KIND, 1))
    });
    // One on the device, one before it, one that waits to be there.
    for running in 1..=3 {
        submit(&engine, tiny::job(KIND, 1));
        wait_until("it has its turn", || {
            engine.status().partitions_running == running
        });
    }
    submit(&engine, tiny::job(KIND, 4));
    let error = engine.submit_bytes(b"", named("a")).unwrap_err();
    assert!(matches!(error, Error::Busy { capacity: 4 }), "{error}");
    engine.close();
    let error = engine.submit_bytes(b"", named("a")).unwrap_err();
    assert!(matches!(error, Error::ShuttingDown), "{error}");
    assert_eq!(decoded.load(Ordering::SeqCst), 0);
}

/// Not in the pool that everything in the process shares.
#[test]
fn decoding_and_verification_run_on_the_engines_threads() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let devices = vec![Scripted::good(&config).device()];
    let threads = Arc::new(Mutex::new(Vec::new()));
    let note = {
        let threads = Arc::clone(&threads);
        move || {
            assert!(rayon::current_thread_index().is_some());
            let thread = std::thread::current().name().unwrap().to_owned();
            threads.lock().unwrap().push(thread);
        }
    };
    let engine = decoding(&config, devices, move |_| {
        note();
        Ok(Arc::new(Hooked {
            in_public_inputs: Box::new(note.clone()),
            ..Hooked::from(tiny::job(KIND, 1))
        }))
    });
    for (priority, pool) in [
        (Priority::Normal, "cuzk-aux-"),
        (Priority::Critical, "cuzk-urgent-"),
    ] {
        let job = engine.submit_bytes(b"", urgent(priority)).unwrap();
        job.wait_bounded().unwrap();
        let threads = std::mem::take(&mut *threads.lock().unwrap());
        assert_eq!(threads.len(), 2);
        assert!(
            threads.iter().all(|thread| thread.starts_with(pool)),
            "{threads:?}"
        );
    }
}

#[test]
fn a_deadline_that_passes_while_waiting_ends_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let first = submit(&engine, tiny::job(KIND, 6));
    wait_until("the device has it", || device.started() == 1);
    let soon = JobOptions {
        deadline: Some(Duration::from_millis(20)),
        ..JobOptions::default()
    };
    let late = engine.submit_job(tiny::job(KIND, 6), soon).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    device.gate.open();
    let error = late.wait_bounded().unwrap_err();
    assert!(matches!(*error, Error::DeadlinePassed), "{error}");
    first.wait_bounded().unwrap();
}

#[test]
fn a_job_can_be_awaited() {
    let directory = tempfile::tempdir().unwrap();
    let config = tiny::config(directory.path());
    let engine = Engine::start(config).unwrap();
    let job = submit(&engine, tiny::job(KIND, 2));
    // Any executor does; this one looks again and again.
    let mut ended = Box::pin(job.into_future());
    let mut context = Context::from_waker(Waker::noop());
    let proof = bounded(|| {
        loop {
            match ended.as_mut().poll(&mut context) {
                Poll::Ready(outcome) => break outcome.unwrap(),
                Poll::Pending => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    });
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
    let jobs = [(); 3].map(|()| submit(&engine, tiny::job(KIND, 1)));
    wait_until("the device has one", || device.started() == 1);
    let opener = std::thread::spawn({
        let device = Arc::clone(&device);
        move || {
            std::thread::sleep(Duration::from_millis(200));
            device.gate.open();
        }
    });
    let left = engine.shutdown_within(Duration::from_millis(50));
    opener.join_bounded().unwrap();
    assert_eq!(left.len(), 3);
    for job in &jobs {
        let error = job.wait_bounded().unwrap_err();
        assert!(matches!(*error, Error::ShuttingDown), "{error}");
    }
}

#[test]
fn a_shutdown_may_have_all_the_time_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::start(tiny::config(directory.path())).unwrap();
    let job = submit(&engine, tiny::job(KIND, 3));
    assert!(engine.shutdown_within(Duration::MAX).is_empty());
    assert_eq!(job.poll().unwrap().unwrap().partitions(), 3);
}
