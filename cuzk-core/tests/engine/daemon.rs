//! The engine under a daemon: jobs in the journal, draining, new priorities, assets that
//! are loaded ahead, the status, and signs of life.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cuzk_core::engine::{EndedJob, JobStatus};
use cuzk_core::job::{JobHandle, JobOptions};
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::ProofKind;

use crate::common::device::{Deed, Opened, Scripted, engine_on, held_up, pool};
use crate::common::{self, MOMENTS, tiny, urgent, wait_until};

const KIND: ProofKind = ProofKind::Porep;

/// The most partitions that may wait: the four of the configuration, and three more. The
/// partition whose circuit the worker reads takes its place again, however much waits. A job
/// of two partitions that was taken out of the journal is queued, though another has taken
/// its room meanwhile.
const WAITING_MAX: usize = 4 + 1 + 2;

/// A small queue, and a journal.
fn config(folder: &Path) -> Config {
    let mut config = tiny::config(&folder.join("parameters"));
    config.jobs.journal = Some(folder.join("jobs.journal"));
    config.jobs.queued_partitions = 4;
    config.gpus.gpu_workers_per_device = 1;
    config.synthesis.partition_workers = 1;
    config.pipeline.synthesis_lookahead = 1;
    config
}

/// Requests are the number of their partitions, in words.
fn start(config: &Config, device: &Arc<Scripted>) -> Engine {
    let decoder = |request: &[u8]| {
        let text = std::str::from_utf8(request).ok();
        let partitions: Option<usize> = text.and_then(|text| text.parse().ok());
        let partitions = partitions
            .ok_or_else(|| Error::request("request", "expected a number", "send a number"))?;
        Ok(tiny::job(KIND, partitions))
    };
    let devices = vec![device.device()];
    Engine::start_with(config.clone(), pool(config), devices, Arc::new(decoder)).unwrap()
}

/// A device that does nothing until its gate is opened.
fn shut(config: &Config) -> Opened {
    Opened(Scripted::new(config, |_| Deed::Stall))
}

fn waiting(id: &str) -> JobOptions {
    JobOptions {
        waits: true,
        ..common::named(id)
    }
}

fn submit_waiting(engine: &Engine, id: &str) -> JobHandle {
    engine.submit_bytes(b"2", waiting(id)).unwrap()
}

fn state(engine: &Engine, id: &str) -> JobStatus {
    let jobs = engine.status().jobs.into_iter();
    let mut jobs = jobs.filter(|job| job.id.as_deref() == Some(id));
    jobs.next().unwrap()
}

fn num_in_journal(engine: &Engine) -> usize {
    let jobs = engine.status().jobs;
    jobs.iter().filter(|job| job.state == "journal").count()
}

/// Waits until so many jobs of the kind count as proved. They count after their handles
/// were told.
fn wait_for_proved(engine: &Engine, proved: usize) {
    wait_until("all are counted", || {
        let totals = engine.status().totals;
        let of_kind = totals.iter().find(|of| of.kind == KIND.name());
        of_kind.unwrap().proved == proved as u64
    });
}

/// The place of a job among those that ended, the first is 0.
fn place(ended: &[EndedJob], id: &str) -> usize {
    let mut ended = ended.iter().rev();
    ended.position(|job| job.id.as_deref() == Some(id)).unwrap()
}

#[test]
fn a_job_that_can_wait_is_accepted_whatever_the_queue_holds() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let device = shut(&config);
    let engine = start(&config, &device);
    let ids: Vec<_> = (0..40).map(|job| format!("job-{job}")).collect();
    let jobs: Vec<_> = ids.iter().map(|id| submit_waiting(&engine, id)).collect();
    assert!(num_in_journal(&engine) > 30);
    let num_waiting = engine.status().partitions_waiting;
    assert!(num_waiting <= WAITING_MAX, "{num_waiting} wait");
    let four = engine.submit_job(tiny::job(KIND, 4), JobOptions::default());
    assert!(four.unwrap_err().is_busy());
    let bad = engine.submit_bytes(b"two", waiting("bad")).unwrap_err();
    assert!(bad.is_input() && engine.job("bad").is_none(), "{bad}");
    let again = submit_waiting(&engine, "job-39");
    assert_eq!(again.number(), jobs[39].number(), "it is known by its id");
    let last = state(&engine, "job-38");
    assert_eq!((last.state, last.kind), ("journal", KIND.name()));
    assert!(last.waits_for.unwrap().contains("journal"));
    assert!(jobs[38].cancel());
    jobs[39].set_priority(Priority::High);
    device.gate.open();
    for (id, job) in ids.iter().zip(&jobs) {
        let outcome = job.wait_for(MOMENTS).unwrap();
        assert_eq!(outcome.is_ok(), id != "job-38", "{id}: {outcome:?}");
    }
    wait_for_proved(&engine, 39);
    let ended = engine.status().ended;
    assert!(place(&ended, "job-39") < place(&ended, "job-37"));
    engine.shutdown();
}

#[test]
fn after_a_restart_jobs_are_taken_up_as_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let device = shut(&config);
    let engine = start(&config, &device);
    for job in 0..20 {
        submit_waiting(&engine, &format!("job-{job}"));
    }
    device.gate.open();
    drop(engine);
    let device = shut(&config);
    let engine = start(&config, &device);
    wait_until("one runs", || engine.status().partitions_running > 0);
    let num_waiting = engine.status().partitions_waiting;
    assert!(num_waiting <= WAITING_MAX, "{num_waiting} wait");
    let left = engine.status().jobs.len();
    assert!(num_in_journal(&engine) + 6 >= left, "{:?}", engine.status());
    device.gate.open();
    wait_for_proved(&engine, left);
    assert!(engine.status().jobs.is_empty());
    engine.shutdown();
}

#[test]
fn an_engine_that_drains_begins_urgent_work_only() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let device = Scripted::good(&config);
    let engine = start(&config, &device);
    engine.drain();
    assert!(engine.is_draining() && engine.status().draining);
    let refused = engine.submit_bytes(b"2", common::named("no")).unwrap_err();
    assert!(matches!(refused, Error::ShuttingDown), "{refused}");
    let later = submit_waiting(&engine, "later");
    let high = urgent(Priority::High);
    let now = engine.submit_bytes(b"2", high.clone()).unwrap();
    now.wait_for(MOMENTS).unwrap().unwrap();
    wait_until("it is idle", || engine.is_idle());
    let shown = state(&engine, "later");
    assert_eq!(shown.state, "journal");
    assert_eq!(shown.waits_for.unwrap(), "the engine is draining");
    engine.resume();
    later.wait_for(MOMENTS).unwrap().unwrap();
    // Jobs that were queued before are held, too. A shutdown does not wait for them.
    let gate = shut(&config);
    let other = tempfile::tempdir().unwrap();
    let mut config = config;
    config.jobs.journal = Some(other.path().join("jobs.journal"));
    let held_up = start(&config, &gate);
    let jobs = ["a", "b"].map(|id| submit_waiting(&held_up, id));
    wait_until("one runs", || gate.started() == 1);
    held_up.drain();
    let urgent = held_up.submit_bytes(b"1", high).unwrap();
    gate.gate.open();
    urgent.wait_for(MOMENTS).unwrap().unwrap();
    let left = held_up.shutdown_within(MOMENTS * 60);
    assert!(!left.is_empty() && left.len() <= jobs.len());
    let engine = start(&config, &device);
    for job in left {
        let again = engine.job(job.id().unwrap()).unwrap();
        again.wait_for(MOMENTS).unwrap().unwrap();
    }
}

#[test]
fn a_waiting_job_takes_the_place_of_its_new_priority() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.synthesis.partition_workers = 1;
    config.pipeline.synthesis_lookahead = 1;
    let (engine, device) = held_up(&mut config);
    let submit = |id: &str, priority| {
        let options = JobOptions {
            priority: Some(priority),
            ..common::named(id)
        };
        engine.submit_job(tiny::job(KIND, 1), options).unwrap()
    };
    let first = submit("first", Priority::Normal);
    wait_until("it is on the device", || device.started() == 1);
    let jobs: Vec<_> = (0..8)
        .map(|job| submit(&format!("job-{job}"), Priority::Low))
        .collect();
    jobs[7].set_priority(Priority::Critical);
    jobs[6].set_priority(Priority::High);
    assert_eq!(jobs[7].priority(), Priority::Critical);
    wait_until("the device has its next", || {
        engine.status().partitions_waiting <= 6
    });
    device.gate.open();
    for job in jobs.iter().chain([&first]) {
        job.wait_for(MOMENTS).unwrap().unwrap();
    }
    wait_for_proved(&engine, 9);
    let ended = engine.status().ended;
    for early in ["job-6", "job-7"] {
        assert!(place(&ended, early) < place(&ended, "job-5"), "{ended:?}");
    }
}

#[test]
fn assets_are_loaded_ahead_and_let_go_of() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    let (engine, device) = held_up(&mut config);
    let id = tiny::id(KIND);
    assert!(!engine.preload(id).unwrap().already_loaded);
    assert!(engine.preload(id).unwrap().already_loaded);
    let status = engine.status();
    let asset = &status.assets[0];
    assert_eq!((asset.circuit.as_str(), asset.uses), (&*id.to_string(), 0));
    assert!(asset.idle_s.is_some() && asset.parameter_bytes > 0 && asset.circuit_bytes > 0);
    assert_eq!(status.memory.used_bytes, status.memory.idle_bytes);
    let evicted = engine.evict(id).unwrap();
    assert!(evicted.was_loaded && evicted.freed_bytes == status.memory.used_bytes);
    assert_eq!(engine.status().memory.used_bytes, 0);
    assert!(!engine.evict(id).unwrap().was_loaded);

    let job = common::submit(&engine, tiny::job(KIND, 2));
    wait_until("it is on the device", || device.started() == 1);
    let error = engine.evict(id).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::InUse {
                partitions: 1..,
                ..
            }
        ),
        "{error}"
    );
    let devices = engine.status().devices;
    assert_eq!(devices[0].job, Some(job.number().to_string()));
    assert!(devices[0].partition.is_some() && devices[0].busy_s.is_some());
    device.gate.open();
    job.wait_for(MOMENTS).unwrap().unwrap();

    let empty = tempfile::tempdir().unwrap();
    config.srs.param_cache = empty.path().to_owned();
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let error = engine.preload(id).unwrap_err();
    assert!(matches!(error, Error::Params(_)), "{error}");
}

#[test]
fn times_and_signs_of_life_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::start(tiny::config(directory.path())).unwrap();
    assert!(engine.is_idle());
    let before = engine.checkpoints();
    let options = common::named("job");
    let job = engine.submit_job(tiny::job(KIND, 3), options).unwrap();
    job.wait_for(MOMENTS).unwrap().unwrap();
    assert!(engine.checkpoints() > before);
    wait_for_proved(&engine, 1);
    wait_until("it is idle", || engine.is_idle());
    let times = job.times();
    assert!(times.total >= times.queue_wait && times.srs_load > Duration::ZERO);
    assert!(times.synthesis > Duration::ZERO && times.device > Duration::ZERO);
    assert_eq!(job.times(), times, "they are kept with the end");
    let status = engine.status();
    let ended = &status.ended[0];
    assert_eq!(
        (ended.id.as_deref(), ended.outcome),
        (Some("job"), "proved")
    );
    assert_eq!(ended.times.total_s, times.total.as_secs_f64());
    let json = serde_json::to_value(&status).unwrap();
    assert!(json["ended"][0]["device_s"].is_number(), "{json}");
}

/// A device that computes within its time is alive; the number stays when it is not.
#[test]
fn a_device_that_is_given_up_is_no_sign_of_life() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = tiny::config(directory.path());
    config.gpus.stall = Duration::from_secs(3600);
    let (engine, device) = held_up(&mut config);
    let job = common::submit(&engine, tiny::job(KIND, 1));
    wait_until("it is on the device", || device.started() == 1);
    let parts = || engine.status().jobs[0].parts.clone();
    wait_until("it is shown there", || parts()[0].stage == Some("device"));
    let begun = engine.checkpoints();
    wait_until("it is a sign of life", || engine.checkpoints() > begun);
    assert!(!engine.is_idle());
    device.gate.open();
    job.wait_for(MOMENTS).unwrap().unwrap();
}

#[test]
fn the_last_failures_are_told_however_many_jobs_are_proved() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::start(tiny::config(directory.path())).unwrap();
    let false_job = Arc::new(tiny::TinyJob {
        kind: KIND,
        partitions: 1,
        false_partition: Some(0),
    });
    let failed = engine
        .submit_job(false_job, common::named("false"))
        .unwrap();
    failed.wait_for(MOMENTS).unwrap().unwrap_err();
    for _ in 0..60 {
        let job = common::submit(&engine, tiny::job(KIND, 1));
        job.wait_for(MOMENTS).unwrap().unwrap();
    }
    wait_for_proved(&engine, 60);
    let ended = engine.status().ended;
    assert_eq!(ended.len(), 51);
    let failed = ended.last().unwrap();
    assert_eq!(
        (failed.id.as_deref(), failed.outcome),
        (Some("false"), "failed")
    );
    assert!(failed.error.as_ref().unwrap().contains("constraint"));
}
