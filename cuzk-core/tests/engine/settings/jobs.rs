//! The rows of `[jobs]`.

use std::sync::{Arc, Mutex};

use cuzk_core::Engine;
use cuzk_core::job::JobOptions;
use cuzk_core::scheduler::priority::Priority;
use std::time::Duration;

use super::{Case, Held, KIND, Row, shown};
use crate::common::BoundedJob as _;
use crate::common::device::{Doorway, Scripted, engine_on, pool};
use crate::common::tiny::{self, Hooked};
use crate::common::{named, urgent};

/// Longer than a test, and less than a day.
const MIDDLE: Duration = Duration::from_secs(3600);

pub(super) fn rows() -> Vec<Row> {
    let orders = ["normal low", "low normal"];
    let patience = ["60", "86400"];
    vec![
        Row::does(
            "jobs.queued_partitions",
            ["4", "5"],
            five_partitions,
            ["refused", "accepted"],
        ),
        Row::happens(
            "jobs.results_kept",
            ["1", "5"],
            three_results,
            first_is_gone,
        ),
        Row::happens(
            "jobs.results_kept_s",
            ["1", "3600"],
            three_results,
            first_is_gone,
        ),
        Row::does("jobs.normal_patience_s", patience, order_with_low, orders),
        Row::does(
            "jobs.low_patience_s",
            patience,
            order_with_normal,
            [orders[1], orders[0]],
        ),
        Row::does(
            "jobs.journal",
            ["\"FOLDER/jobs.redb\"", "\"\""],
            journal,
            ["there", "absent"],
        ),
    ]
}

fn five_partitions(case: &Case) -> String {
    let config = case.with_tiny();
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let job = engine.submit_job(tiny::job(KIND, 5), JobOptions::default());
    shown(job.is_ok(), ["accepted", "refused"])
}

/// An engine that has proved three jobs with ids.
fn three_results(case: &Case) -> Held {
    let config = case.with_tiny();
    let devices = vec![Scripted::good(&config).device()];
    let decoder = Arc::new(|_: &[u8]| Ok(tiny::job(KIND, 1)));
    let engine = Engine::start_with(config.clone(), pool(&config), devices, decoder).unwrap();
    for id in ["a", "b", "c"] {
        let job = engine.submit_bytes(b"", named(id)).unwrap();
        job.wait_bounded().unwrap();
    }
    Held {
        device: None,
        engine,
    }
}

fn first_is_gone(held: &Held) -> bool {
    held.engine.job("a").is_none()
}

/// The order in which a low job and a normal one begin that were submitted in this order.
fn order(case: &Case, change: impl FnOnce(&mut cuzk_core::Config)) -> String {
    let mut config = case.with_tiny();
    change(&mut config);
    config.synthesis.partition_workers = 1;
    config.pipeline.max_batch = 1;
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let doorway = Arc::new(Doorway::default());
    let first = engine.submit_job(tiny::held(KIND, &doorway), urgent(Priority::High));
    doorway.wait_bounded();
    let begun = Arc::new(Mutex::new(Vec::new()));
    let jobs = [Priority::Low, Priority::Normal].map(|priority| {
        let begun = Arc::clone(&begun);
        let job = Hooked {
            in_witness: Box::new(move |_| begun.lock().unwrap().push(priority.name())),
            ..Hooked::from(tiny::job(KIND, 1))
        };
        engine.submit_job(Arc::new(job), urgent(priority)).unwrap()
    });
    doorway.open();
    for job in jobs.into_iter().chain([first.unwrap()]) {
        job.wait_bounded().unwrap();
    }
    let begun = begun.lock().unwrap();
    begun.join(" ")
}

fn order_with_low(case: &Case) -> String {
    order(case, |config| config.jobs.patience.low = MIDDLE)
}

fn order_with_normal(case: &Case) -> String {
    order(case, |config| config.jobs.patience.normal = MIDDLE)
}

fn journal(case: &Case) -> String {
    let config = case.with_tiny();
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    engine.shutdown();
    let is_there = case.folder.path().join("jobs.redb").exists();
    shown(is_there, ["there", "absent"])
}
