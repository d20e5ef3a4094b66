//! An engine with its threads, on the circuit of the simulation and this CPU.
//!
//! Each wait has an end, so that a thread that never comes fails its test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::{fs, thread};

use cuzk_bounded::{BoundedJoin as _, bounded};
use cuzk_filecoin::{CircuitId, SectorSize};
use cuzk_scheduler::admission::Need;
use cuzk_scheduler::priority::Priority;
use rayon::ThreadPool;
use tempfile::TempDir;

use super::*;
use crate::Error;
use crate::circuits::parameter_files;
use crate::config::{Config, Devices};
use crate::engine::assets::DigestState;
use crate::engine::workers::{self, Crew};
use crate::engine::{
    Elsewhere, Engine, GiveBack, PartitionId, QueuedPartition, Remote, devices, serve_one_command,
};
use crate::job::JobHandle;

/// As long as a test waits for what comes at once.
const MOMENTS: Duration = Duration::from_secs(60);

/// Circuits, parameters and a folder for a journal, which the engines of a test share.
struct Place {
    config: Config,
    bench: Bench,
    _folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let bench = Bench::new();
        let folder = tempfile::tempdir().unwrap();
        let mut config = bench.config.clone();
        config.gpus.devices = Devices::Cpu;
        config.jobs.journal = Some(folder.path().join("journal"));
        Self {
            config,
            bench,
            _folder: folder,
        }
    }

    fn pool(&self) -> Arc<ThreadPool> {
        Arc::new(self.config.synthesis.pool().unwrap())
    }

    fn start(&self) -> Engine {
        let pool = self.pool();
        let devices = devices(&self.config, &pool).unwrap();
        let decoder = Arc::new(Request::decode);
        Engine::start_with(self.config.clone(), pool, devices, decoder).unwrap()
    }
}

fn submit(engine: &Engine, request: Request, options: JobOptions) -> Result<JobHandle> {
    let bytes = request.to_bytes();
    engine.submit_bytes(&bytes, options)
}

/// Submits a job without an id.
fn accept(engine: &Engine, kind: ProofKind, partitions: usize) -> JobHandle {
    submit(engine, request(kind, partitions), JobOptions::default()).unwrap()
}

/// Waits for the proof of a job, and returns its length in partitions.
fn proved(job: &JobHandle) -> usize {
    let outcome = job.wait_for(MOMENTS).unwrap();
    outcome.unwrap().partitions()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < MOMENTS, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_engine_proves_all_priorities_and_ends() {
    let place = Place::new();
    let engine = place.start();
    assert!(engine.is_idle() && !engine.is_urgent() && !engine.is_draining());
    let before = engine.checkpoints();
    for kind in [WINNING, WINDOW, POREP] {
        assert_eq!(proved(&accept(&engine, kind, 2)), 2);
    }
    assert!(engine.checkpoints() > before);
    wait_until("nothing is left", || engine.is_idle());
    let flawed = Request {
        flaw: Flaw::Lies,
        ..request(POREP, 1)
    };
    let job = submit(&engine, flawed, JobOptions::default()).unwrap();
    let outcome = job.wait_for(MOMENTS).unwrap();
    assert!(matches!(*outcome.unwrap_err(), Error::Unsatisfied { .. }));
    assert!(!engine.timeline().spans().is_empty());
    assert_eq!(engine.config().jobs.journal, place.config.jobs.journal);
    assert!(engine.reinstate(9).is_err());
    assert!(engine.preload(id(POREP)).unwrap().already_loaded);
    wait_until("nobody uses it", || engine.evict(id(POREP)).is_ok());
    let admission = &engine.core.dispatch.admission;
    let in_background = admission.reserve(&Need::own(1)).unwrap();
    assert!(!engine.is_idle());
    drop(in_background);
    let last = accept(&engine, POREP, 6);
    engine.close();
    let refused = submit(&engine, request(POREP, 1), JobOptions::default());
    assert!(matches!(refused, Err(Error::ShuttingDown)));
    bounded(|| engine.shutdown());
    assert!(last.poll().unwrap().is_ok(), "it is finished first");
}

/// Decoding has no checkpoint, so it waits before it begins.
#[test]
fn what_can_wait_is_not_decoded_while_critical_work_runs() {
    let place = Place::new();
    let engine = place.start();
    let pause = Arc::clone(&engine.core.dispatch.pause);
    let urgent = pause.raise();
    assert!(engine.is_urgent());
    let (sends, accepted) = mpsc::channel();
    let critical = JobOptions {
        priority: Some(Priority::Critical),
        ..JobOptions::default()
    };
    thread::scope(|scope| {
        scope.spawn(|| sends.send(accept(&engine, POREP, 1)).unwrap());
        // Time enough for one that does not wait.
        let early = accepted.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "it waits");
        let critical = submit(&engine, request(WINNING, 1), critical).unwrap();
        assert_eq!(proved(&critical), 1);
        drop(urgent);
        let accepted = accepted.recv_timeout(MOMENTS).unwrap();
        assert_eq!(proved(&accepted), 1);
    });
    engine.shutdown();
}

#[test]
fn a_job_outlives_its_engine_in_the_journal() {
    let place = Place::new();
    let engine = place.start();
    engine.drain();
    assert!(engine.is_draining());
    let job = submit(&engine, request(POREP, 2), waits("a")).unwrap();
    let urgent = accept(&engine, WINDOW, 1);
    assert_eq!(proved(&urgent), 1, "a drain does not hold it");
    assert!(job.poll().is_none());
    drop(engine.shutdown_within(MOMENTS));
    assert!(matches!(
        *job.poll().unwrap().unwrap_err(),
        Error::ShuttingDown
    ));

    let engine = place.start();
    let job = engine.job("a").unwrap();
    assert_eq!(proved(&job), 2);
    engine.drain();
    let held = submit(&engine, request(POREP, 1), waits("b")).unwrap();
    wait_until("held work is not counted", || engine.is_idle());
    engine.resume();
    assert!(!engine.is_draining());
    assert_eq!(proved(&held), 1);
    engine.shutdown();

    let engine = place.start();
    let again = submit(&engine, request(POREP, 2), waits("a")).unwrap();
    let kept = again.poll().unwrap().unwrap();
    assert_eq!(kept.partitions(), 2, "the journal has its proof");
}

#[test]
fn an_engine_that_is_dropped_ends_its_jobs() {
    let place = Place::new();
    let engine = place.start();
    engine.drain();
    let job = submit(&engine, request(POREP, 1), waits("a")).unwrap();
    drop(engine);
    assert!(matches!(
        *job.poll().unwrap().unwrap_err(),
        Error::ShuttingDown
    ));
}

#[test]
fn an_engine_of_one_command_logs_less_and_makes_no_multiples() {
    let place = Place::new();
    let engine = place.start();
    let asset = CircuitId {
        sector_size: SectorSize::GiB32,
        ..id(POREP)
    };
    serve_one_command(&engine);
    engine.core.assets.multiples.ask(asset);
    engine.core.assets.digests.ask(asset);
    assert!(engine.status().making_multiples.is_empty());
    let digests = engine.core.assets.digests.state(asset).name();
    assert_eq!(digests, "not_compared");
    let lines = logged(|| drop(accept(&engine, POREP, 1)));
    assert!(!lines.contains("the job is accepted"), "{lines}");
}

#[test]
fn parameters_are_compared_in_the_background() {
    let mut place = Place::new();
    place.config.srs.check_digests = true;
    let engine = place.start();
    let asset = CircuitId {
        sector_size: SectorSize::GiB32,
        ..id(POREP)
    };
    engine.core.assets.digests.ask(asset);
    let state = || engine.core.assets.digests.state(asset).name();
    wait_until("its files are not there", || state() == "unreadable");
    engine.shutdown();
}

/// A place that does nothing: the test does it.
struct Others;

impl Elsewhere for Others {
    fn is_left_to_others(&self, _: Priority) -> bool {
        true
    }

    fn has(&self, _: PartitionId) -> bool {
        true
    }

    fn queued(&self, _: QueuedPartition) {}

    fn begun(&self, _: PartitionId) {}

    fn ended(&self, _: PartitionId) {}
}

#[test]
fn partitions_are_proved_elsewhere_or_come_back() {
    let place = Place::new();
    let (pool, remote) = (place.pool(), OnceLock::new());
    let devices = devices(&place.config, &pool).unwrap();
    let decoder = Arc::new(Request::decode);
    let engine = Remote::start_engine(place.config.clone(), pool, devices, decoder, |given| {
        remote.set(given).unwrap();
        Ok(Arc::new(Others))
    });
    let (engine, remote) = (engine.unwrap(), remote.into_inner().unwrap());
    assert!(remote.has_resumed() && remote.engine().is_some());
    let job = accept(&engine, POREP, 3);
    let [first, second, third] = [0, 1, 2].map(|partition| PartitionId {
        job: job.number(),
        partition,
    });
    let none = PartitionId {
        partition: 3,
        ..first
    };
    assert_eq!(remote.statement(first).unwrap().partitions(), 3);
    assert!(remote.statement(none).is_none());
    remote.begun(first);
    let status = engine.status();
    assert_eq!(status.jobs[0].parts[0].stage, Some("elsewhere"));
    assert!(job.poll().is_none(), "it is left to others");
    let bytes = |root: usize| {
        let mut bytes = Vec::new();
        place.bench.proofs[root].write(&mut bytes).unwrap();
        bytes
    };
    let wrong = remote.verify(first, &bytes(1)).unwrap_err();
    assert!(
        matches!(wrong, Error::Rejected { partition: 0, .. }),
        "{wrong}"
    );
    let proof = remote.verify(first, &bytes(0)).unwrap();
    remote.proved(first, proof, "another machine", Duration::from_secs(1));
    assert_eq!(job.progress().partitions_done, 1);
    assert!(remote.statement(first).is_none(), "nothing is left to do");
    assert!(matches!(
        remote.verify(first, &bytes(0)),
        Err(Error::Stopped)
    ));
    // The others begin neither of the rest.
    remote.give_back(second, GiveBack::Free);
    remote.give_back(third, GiveBack::Failed);
    assert_eq!(proved(&job), 3);
    let by_others = engine.timeline().spans().into_iter();
    let by_others = by_others.filter(|span| span.stage == crate::timeline::Stage::Elsewhere);
    assert_eq!(by_others.count(), 1);
    engine.drain();
    let held = submit(&engine, request(POREP, 1), waits("a")).unwrap();
    assert!(remote.has_resumed(), "there is no room for it now");
    engine.resume();
    let queued = PartitionId {
        job: held.number(),
        partition: 0,
    };
    wait_until("it is queued", || engine.status().partitions_waiting == 1);
    remote.give_back(queued, GiveBack::Free);
    assert_eq!(proved(&held), 1);
    engine.shutdown();
    assert!(remote.has_resumed() && remote.engine().is_none());
}

#[test]
fn threads_of_devices_that_answer_are_waited_for() {
    let case = Case::new(1, false);
    let crew = Crew::default();
    let work = |core: &Core| drop(core.fleet.watchdog.enter());
    crew.spawn(case.core(), "device".to_owned(), work).unwrap();
    crew.join_all_but_the_lost(&case.core().fleet.watchdog);
    assert!(crew.lock().is_empty());
}

#[test]
fn threads_of_a_crew_are_waited_for() {
    let (case, crew) = (Case::new(1, false), Crew::default());
    let has_ended = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&has_ended);
    let work = move |_: &Core| {
        thread::sleep(Duration::from_millis(50));
        ended.store(true, Ordering::Relaxed);
    };
    crew.spawn(case.core(), "slow".to_owned(), work).unwrap();
    bounded(|| crew.join());
    assert!(has_ended.load(Ordering::Relaxed));
}

#[test]
fn multiples_are_looked_at_until_the_queue_is_closed() {
    let case = Case::new(1, false);
    let queue = &case.core().assets.multiples;
    queue.ask(id(POREP));
    let core = Arc::clone(case.core());
    let maker = thread::spawn(move || workers::multiples::run(&core));
    wait_until("it is looked at", || queue.asked().is_empty());
    queue.close();
    maker.join_bounded().unwrap();
}

#[test]
fn calls_of_devices_are_looked_at_until_the_watchdog_is_closed() {
    let case = Case::new(1, false);
    case.accept(POREP, 1);
    case.make_ready(1);
    let region = case.begin(0, case.claim(0).unwrap(), Deed::Prove);
    let core = Arc::clone(case.core());
    let looks = thread::spawn(move || workers::watchdog::run(&core, |_| Ok(())));
    let heartbeat = &case.core().dispatch.heartbeat;
    let before = heartbeat.count();
    wait_until("it computes", || heartbeat.count() > before);
    case.core().fleet.watchdog.close();
    looks.join_bounded().unwrap();
    assert!(case.answer(region).is_some());
}

#[test]
fn a_comparison_that_is_stopped_finds_nothing() {
    let case = Case::with(1, false, |sizes| sizes.config.srs.check_digests = true);
    let asset = CircuitId {
        sector_size: SectorSize::GiB32,
        ..id(POREP)
    };
    let (core, digests) = (case.core(), &case.core().assets.digests);
    let vk = parameter_files(asset).unwrap().vk;
    fs::write(core.config.srs.param_cache.join(vk), "a key").unwrap();
    let urgent = core.dispatch.pause.raise();
    digests.ask(asset);
    let own = Arc::clone(core);
    let compares = thread::spawn(move || workers::digests::run(&own));
    let is_compared = || digests.state(asset) == DigestState::Checking;
    wait_until("it is compared", is_compared);
    workers::digests::stop(core);
    compares.join_bounded().unwrap();
    assert!(is_compared());
    drop(urgent);
}
