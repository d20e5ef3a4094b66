//! The engine under more than one job, on good devices and on bad ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails in a test fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod jobs;

use std::sync::Arc;

use cuzk_core::backend::{CpuBackend, Device};
use cuzk_core::kinds::ProofKind;
use cuzk_core::timeline::Stage;
use cuzk_core::{Engine, Error, ProofRequest};
use supraseal_sys::GpuResources;

fn request() -> ProofRequest {
    common::bundled_request(ProofKind::WindowPost)
}

fn engine() -> Engine {
    common::circuit_with_params(ProofKind::WindowPost);
    Engine::start(common::config()).unwrap()
}

#[test]
fn many_jobs_end_with_proofs_and_a_whole_timeline() {
    let engine = engine();
    let jobs: Vec<_> = (0..5).map(|_| engine.submit(&request()).unwrap()).collect();
    for job in &jobs {
        let proof = job.wait().unwrap();
        assert_eq!(proof.as_bytes().len(), 192);
        assert_eq!(job.progress().partitions_done, 1);
        let stages: Vec<_> = engine
            .timeline()
            .of_job(job.number())
            .iter()
            .map(|span| span.stage)
            .collect();
        for stage in [
            Stage::DecodeWait,
            Stage::Decode,
            Stage::QueueWait,
            Stage::Circuit,
            Stage::Params,
            Stage::Witness,
            Stage::Evaluate,
            Stage::ReadyWait,
            Stage::LockWait,
            Stage::Quotient,
            Stage::Msm,
            Stage::Device,
            Stage::FinishWait,
            Stage::BG2,
            Stage::Assemble,
            Stage::Verify,
            Stage::Finish,
        ] {
            assert!(stages.contains(&stage), "{stage} is not in {stages:?}");
        }
    }
    let proofs: Vec<_> = jobs.iter().map(|job| job.wait().unwrap()).collect();
    assert_ne!(proofs[0], proofs[1], "each proof has randomness of its own");
}

#[test]
fn shutting_down_finishes_what_was_accepted() {
    let engine = engine();
    let jobs: Vec<_> = (0..3).map(|_| engine.submit(&request()).unwrap()).collect();
    engine.shutdown();
    for job in jobs {
        assert!(job.poll().unwrap().is_ok());
    }
}

#[test]
fn dropping_ends_every_job_one_way_or_the_other() {
    let engine = engine();
    let jobs: Vec<_> = (0..20)
        .map(|_| engine.submit(&request()).unwrap())
        .collect();
    drop(engine);
    let outcomes: Vec<_> = jobs.iter().map(|job| job.poll().unwrap()).collect();
    let ended_early = |outcome: &cuzk_core::job::Outcome| matches!(outcome, Err(error) if matches!(**error, Error::ShuttingDown));
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.is_ok() || ended_early(outcome))
    );
    assert!(
        outcomes.iter().any(ended_early),
        "twenty proofs do not fit into the time of a drop"
    );
}

#[test]
fn a_full_queue_says_so_and_takes_nothing_in() {
    let engine = engine();
    let request = request();
    let mut jobs = Vec::new();
    let error = loop {
        match engine.submit(&request) {
            Ok(job) => jobs.push(job),
            Err(error) => break error,
        }
        assert!(jobs.len() < 5000, "the queue has no end");
    };
    let Error::Busy { capacity } = error else {
        panic!("{error}")
    };
    assert!(jobs.len() >= capacity);
    drop(engine);
    assert!(jobs.iter().all(|job| job.poll().is_some()));
}

#[test]
fn a_partition_larger_than_the_budget_is_an_error_at_once() {
    common::circuit_with_params(ProofKind::WindowPost);
    let mut config = common::config();
    config.memory.total_budget_bytes = 100 << 20;
    config.memory.safety_margin_bytes = 1 << 20;
    let engine = Engine::start(config).unwrap();
    let error = engine.submit(&request()).unwrap().wait().unwrap_err();
    assert!(matches!(*error, Error::OverBudget(_)), "{error}");
    assert!(error.is_input());
}

#[test]
fn evaluation_stands_aside_while_the_throttle_is_raised() {
    common::circuit_with_params(ProofKind::WindowPost);
    let evaluate = |throttle: bool| {
        let mut config = common::config();
        config.pipeline.throttle = throttle;
        let pool = Arc::new(config.synthesis.pool().unwrap());
        let resources = Arc::new(GpuResources::new().unwrap());
        let backend = Arc::new(CpuBackend::new(Arc::clone(&resources), Arc::clone(&pool)));
        let device = Device {
            resources: Arc::clone(&resources),
            backend,
        };
        let engine = Engine::start_on(config, pool, vec![device]).unwrap();
        // As a b_g2_msm of another partition that does not end would.
        let _raised = resources.raise_throttle();
        let job = engine.submit(&request()).unwrap();
        job.wait().unwrap();
        let spans = engine.timeline().of_job(job.number());
        spans
            .iter()
            .find(|span| span.stage == Stage::Evaluate)
            .unwrap()
            .length()
    };
    assert!(evaluate(true) >= cuzk_pce::WAIT_MAX);
    assert!(evaluate(false) < cuzk_pce::WAIT_MAX);
}
