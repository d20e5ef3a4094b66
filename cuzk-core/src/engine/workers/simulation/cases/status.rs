//! The state of an engine as a status shows it.

use std::thread;

use cuzk_groth16::backend::footprint::READING_BYTES;
use cuzk_scheduler::admission::Need;

use super::*;
use crate::Error;
use crate::engine::entrance::{await_running, is_idle};
use crate::engine::status::{JobStatus, Status};
use crate::timeline::Stage;

const MIB: u64 = 1 << 20;

impl Case {
    fn status(&self) -> Status {
        Status::of(self.core())
    }

    /// Returns the reasons for which nothing of each job runs, in the order of the jobs.
    fn waits_for(&self) -> Vec<Option<String>> {
        let jobs = self.status().jobs.into_iter();
        jobs.map(|job| job.waits_for).collect()
    }
}

/// Returns the state of a job of a status.
fn of<'a>(status: &'a Status, job: &JobState) -> &'a JobStatus {
    let mut jobs = status.jobs.iter();
    jobs.find(|shown| shown.number == job.number()).unwrap()
}

#[test]
fn a_job_says_what_it_waits_for() {
    let case = Case::new(1, false);
    for _ in 0..3 {
        case.accept(POREP, 1);
    }
    let some = |text: &str| Some(text.to_owned());
    let worker = some("waits for a worker");
    let one_ahead = some("waits for 1 partition that is ahead");
    let two_ahead = some("waits for 2 partitions that are ahead");
    assert_eq!(
        case.waits_for(),
        [worker.clone(), one_ahead.clone(), two_ahead]
    );
    let running = case.admit(Lane::Common).unwrap();
    assert_eq!(case.waits_for(), [None, worker.clone(), one_ahead.clone()]);
    // Of a job with two partitions, one runs and one waits.
    case.accept(POREP, 2);
    drop((case.admit(Lane::Common), case.admit(Lane::Common)));
    let next = case.admit(Lane::Common);
    assert_eq!(case.waits_for(), [None, None, None, None]);
    drop((running, next));
}

#[test]
fn a_job_waits_with_its_last_partition() {
    let case = Case::new(1, false);
    let job = case.accept(POREP, 2);
    case.make_ready(1);
    let finishing = case.start(0, Deed::Prove).unwrap();
    case.finish(finishing);
    assert_eq!(of(&case.status(), &job).partitions_done, 1);
    assert_eq!(case.waits_for(), [Some("waits for a worker".to_owned())]);
}

#[test]
fn a_job_says_how_long_ago_it_was_accepted() {
    let case = Case::new(1, false);
    let monotonic = Instant::now() - Duration::from_secs(100);
    set(Some(Time {
        monotonic,
        ..case.now
    }));
    let job = case.accept(POREP, 1);
    assert!(of(&case.status(), &job).accepted_s_ago >= 100.0);
}

#[test]
fn a_job_that_a_drain_holds_says_so() {
    let case = Case::new(1, false);
    case.accept(POREP, 1);
    case.accept(WINDOW, 1);
    let reasons = || case.waits_for().into_iter().map(Option::unwrap);
    case.core().dispatch.drain(true);
    let expected = ["the engine is draining", "waits for a worker"];
    assert!(reasons().eq(expected));
    assert!(case.status().draining);
    case.submit(request(POREP, 1), waits("a")).unwrap();
    assert_eq!(reasons().next_back().unwrap(), "the engine is draining");
    case.core().dispatch.drain(false);
    let in_journal = "waits in the journal until the queue has room";
    assert_eq!(reasons().next_back().unwrap(), in_journal);
    assert!(!case.status().draining);
}

#[test]
fn a_job_without_memory_says_how_much_it_needs() {
    let case = Case::with(1, false, |sizes| {
        sizes.config.memory.total_budget_bytes = 400 * MIB;
        sizes.config.memory.critical_reserve_bytes = 100 * MIB;
    });
    case.accept(POREP, 2);
    let running = [(); 2].map(|()| case.admit(Lane::Common).unwrap());
    let waiting = case.accept(POREP, 1);
    // A circuit has to be read before more is known.
    let unread = [WINDOW, WINNING].map(|kind| case.accept(kind, 1));
    let status = case.status();
    let reason = |job: &JobState| of(&status, job).waits_for.clone().unwrap();
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / MIB as f64);
    let free = mib(299 * MIB - status.memory.used_bytes);
    let lacking = |bytes| format!("waits for {} of memory; {free} are free", mib(bytes));
    assert_eq!(reason(&unread[0]), lacking(READING_BYTES));
    assert_eq!(
        reason(&unread[1]),
        "waits for a worker",
        "it has the reserve"
    );
    assert_eq!(reason(&waiting), "waits for 1 partition that is ahead");
    case.core().end(&unread[0], Error::Cancelled);
    let status = case.status();
    let reason = of(&status, &waiting).waits_for.clone().unwrap();
    assert_eq!(reason, lacking(running[0].memory.own_bytes()));
}

#[test]
fn a_job_whose_memory_is_just_free_waits_for_a_worker() {
    let case = Case::new(1, false);
    case.accept(POREP, 1);
    let admission = &case.core().dispatch.admission;
    let take = |bytes| admission.reserve_evicting(&Need::own(bytes)).unwrap();
    let _rest = take(admission.usage().total_bytes - READING_BYTES);
    assert_eq!(case.waits_for(), [Some("waits for a worker".to_owned())]);
    let _one_more = take(1);
    assert_ne!(case.waits_for(), [Some("waits for a worker".to_owned())]);
}

#[test]
fn a_status_shows_how_far_its_jobs_are() {
    let mut case = Case::new(1, false);
    let job = case.accept(POREP, 2);
    case.pass(5);
    let status = case.status();
    let shown = of(&status, &job);
    assert_eq!(
        (shown.state, shown.kind, shown.priority),
        ("waiting", "porep", "normal")
    );
    assert_eq!(
        (shown.partitions_done, shown.partitions, shown.parts.len()),
        (0, 2, 2)
    );
    let stages = shown
        .parts
        .iter()
        .map(|part| (part.index, part.stage, part.done));
    let queued = Some("queue_wait");
    assert_eq!(
        stages.collect::<Vec<_>>(),
        [(0, queued, false), (1, queued, false)]
    );
    assert_eq!(
        (status.partitions_waiting, status.partitions_running),
        (2, 0)
    );
    case.make_ready(1);
    let finishing = case.start(0, Deed::Prove).unwrap();
    assert_eq!(case.status().partitions_running, 1);
    assert_eq!(
        finishing.memory.own_bytes(),
        40 * MIB,
        "the rest is given back"
    );
    assert!(case.finish(finishing));
    let status = case.status();
    let shown = of(&status, &job);
    assert_eq!((shown.state, shown.partitions_done), ("running", 1));
    let done = shown.parts.iter().map(|part| (part.done, part.stage));
    assert_eq!(done.collect::<Vec<_>>(), [(true, None), (false, queued)]);
    let device = &status.devices[0];
    assert_eq!((device.role, device.backend), ("device", "simulated"));
    assert_eq!(
        (device.proved, device.faults, device.quarantined),
        (1, 0, false)
    );
    let name = case.core().timeline.names().job(job.number());
    assert!(name.contains(&id(POREP).to_string()), "{name}");
    let waiting = case.submit(request(POREP, 1), waits("a")).unwrap();
    let name = case.core().timeline.names().job(waiting.number());
    assert!(name.contains(&format!("{} a", id(POREP))), "{name}");
    assert_eq!(of(&case.status(), &waiting).state, "waiting");
    case.core().dispatch.drain(true);
    let in_journal = case.submit(request(POREP, 1), waits("b")).unwrap();
    assert_eq!(of(&case.status(), &in_journal).state, "journal");
}

#[test]
fn a_device_is_shown_with_what_is_on_it_longest() {
    let case = Case::new(2, false);
    let [first, second] = [POREP, WINDOW].map(|kind| case.accept(kind, 2));
    let timeline = &case.core().timeline;
    let on_device = |job: &JobState, partition| {
        let trace = timeline.trace(job.number(), Some(partition)).on_device(1);
        let shown = trace.shows(Stage::Device);
        // The next one comes later on every clock.
        thread::sleep(Duration::from_millis(1));
        shown
    };
    let on_it = || {
        let device = case.status().devices.remove(1);
        (device.job, device.partition, device.busy_s.is_some())
    };
    assert_eq!(on_it(), (None, None, false));
    let later = on_device(&second, 1);
    let of = |job: &JobState, partition| (Some(job.number().to_string()), Some(partition), true);
    assert_eq!(on_it(), of(&second, 1));
    let latest = on_device(&first, 0);
    assert_eq!(on_it(), of(&second, 1), "it came before");
    drop(later);
    assert_eq!(on_it(), of(&first, 0));
    let last = on_device(&second, 0);
    assert_eq!(on_it(), of(&first, 0));
    drop((latest, last));
    assert_eq!(on_it(), (None, None, false));
    assert_eq!(case.status().devices[0].partition, None);
}

#[test]
fn a_status_shows_what_is_charged() {
    let case = Case::new(1, false);
    case.accept(POREP, 2);
    let admitted = case.admit(Lane::Common).unwrap();
    let status = case.status();
    let usage = case.core().dispatch.admission.usage();
    assert_eq!(status.memory.used_bytes, usage.used_bytes);
    assert_eq!(status.memory.total_bytes, usage.total_bytes);
    let [asset] = &status.assets[..] else {
        panic!("{:?}", status.assets);
    };
    assert_eq!(
        (asset.circuit.clone(), asset.uses),
        (id(POREP).to_string(), 1)
    );
    assert_eq!((asset.digests, asset.idle_s), ("not_compared", None));
    let own_bytes = admitted.memory.own_bytes();
    let shared_bytes = asset.parameter_bytes + asset.circuit_bytes;
    assert_eq!(own_bytes + shared_bytes, usage.used_bytes);
    assert!(asset.parameter_bytes > 0 && asset.circuit_bytes >= 50 * MIB);
    drop(admitted);
    let asset = &case.status().assets[0];
    assert!(asset.uses == 0 && asset.idle_s.is_some());
    assert_eq!(case.status().memory.idle_bytes, shared_bytes);
}

/// A daemon that drains waits for partitions, and not for multiples. Nor does an engine that
/// shuts down.
#[test]
fn memory_of_the_multiples_maker_is_no_partitions() {
    let case = Case::new(1, false);
    let core = case.core();
    let need = Need::own(1);
    let admission = &core.dispatch.admission;
    let in_background = admission.reserve(&need).unwrap();
    assert_eq!(case.status().partitions_running, 0);
    assert!(!is_idle(core));
    let (awaited, _) = admission.reserve_evicting(&need).unwrap();
    assert_eq!(case.status().partitions_running, 1);
    drop(awaited);
    let later = Instant::now() + Duration::from_secs(600);
    await_running(core, Some(later));
    assert!(Instant::now() < later, "multiples were waited for");
    drop(in_background);
    assert!(is_idle(core));
}
