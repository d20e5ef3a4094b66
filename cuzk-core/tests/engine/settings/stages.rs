//! The rows of `[pipeline]`.

use cuzk_core::Engine;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Stage;
use cuzk_filecoin::ProofKind;

use super::{Case, Held, KIND, Row, shown};
use crate::common::BoundedJob as _;
use crate::common::bits;
use crate::common::device::{Deed, Opened, Scripted, cores, engine_on, pool};
use crate::common::{self, submit, tiny, urgent};

pub(super) fn rows() -> Vec<Row> {
    let manners = ["stands aside", "goes on"];
    vec![
        Row::happens(
            "pipeline.synthesis_lookahead",
            ["3", "1"],
            beside_a_silent_device,
            |held| held.engine.status().partitions_running >= 5,
        ),
        Row::does("pipeline.max_batch", ["1", "2"], passes, ["[]", "[2, 2]"]),
        Row::does("pipeline.throttle", ["true", "false"], throttle, manners),
        Row::does(
            "pipeline.throttle_manner",
            ["\"sleep\"", "\"yield\""],
            manner,
            manners,
        ),
    ]
}

/// A partition is on the device, and one waits to be before it, beside the lookahead.
fn beside_a_silent_device(case: &Case) -> Held {
    let mut config = case.with_tiny();
    config.gpus.gpu_workers_per_device = 1;
    config.synthesis.partition_workers = 1;
    let device = Scripted::new(&config, |_| Deed::Stall);
    let engine = engine_on(&config, &[&device]);
    drop(submit(&engine, tiny::job(KIND, 8)));
    Held {
        device: Some(Opened(device)),
        engine,
    }
}

/// How many partitions of five each pass over the points served.
fn passes(case: &Case) -> String {
    bits::generate(KIND, &case.params());
    let engine = Engine::start(case.config.clone()).unwrap();
    submit(&engine, bits::job(KIND, 5, 1))
        .wait_bounded()
        .unwrap();
    let spans = engine.timeline().spans().into_iter();
    let passes = spans.filter(|span| span.stage == Stage::Columns);
    let served: Vec<_> = passes.map(|span| span.served.unwrap()).collect();
    format!("{served:?}")
}

fn throttle(case: &Case) -> String {
    beside_a_raised_throttle(case.config.clone())
}

fn manner(case: &Case) -> String {
    let mut config = case.config.clone();
    config.pipeline.throttle = true;
    beside_a_raised_throttle(config)
}

/// Tells what evaluation does while the throttle is raised.
fn beside_a_raised_throttle(mut config: cuzk_core::Config) -> String {
    let kind = ProofKind::WinningPost;
    let circuit = common::circuit_with_params(kind);
    config.srs.param_cache = common::param_cache();
    let wait_max = cuzk_memory::wait_max(circuit.program().rows());
    let request = cuzk_testing::bundled_request(kind);
    let pool = pool(&config);
    let device = cores(&pool);
    let resources = std::sync::Arc::clone(&device.resources);
    let engine = Engine::start_on(config, pool, vec![device]).unwrap();
    // As the MSM in G2 of another partition that does not end would.
    let _raised = resources.raise_throttle();
    // A critical job does not stand aside.
    let job = engine.submit_with(&request, urgent(Priority::Normal));
    let job = job.unwrap();
    job.wait_bounded().unwrap();
    let spans = engine.timeline().of_job(job.number());
    let span = spans.iter().find(|span| span.stage == Stage::Evaluate);
    let stood_aside = span.unwrap().stood_aside;
    let stands_aside = stood_aside.is_some_and(|time| time >= wait_max);
    shown(stands_aside, ["stands aside", "goes on"])
}
