//! Partitions that wait, and whose bits are added up together.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuzk_core::config::Devices;
use cuzk_core::job::JobHandle;
use cuzk_core::scheduler::priority::Priority;
use cuzk_core::timeline::Stage;
use cuzk_core::{Config, Engine, Error};
use cuzk_filecoin::{ProofKind, Statement};
use cuzk_groth16::params::GenerateOptions;

use crate::common::BoundedJob as _;
use crate::common::bits::{self, BitsJob};
use crate::common::device::Doorway;
use crate::common::tiny::{self, Hooked};
use crate::common::urgent;

/// The circuit of many bits.
const KIND: ProofKind = ProofKind::Porep;

/// A circuit of few bits, of which a job keeps the worker meanwhile.
const OTHER: ProofKind = ProofKind::SnapDeals;

struct Case {
    engine: Engine,
    _folder: tempfile::TempDir,
}

fn config(folder: &Path, max_batch: usize) -> Config {
    bits::generate(KIND, folder);
    tiny::generate(OTHER, folder, GenerateOptions::default());
    let mut config = Config::default();
    config.srs.param_cache = folder.to_owned();
    config.srs.multiples = Vec::new();
    config.gpus.devices = Devices::Cpu;
    config.pipeline.max_batch = max_batch;
    config
}

impl Case {
    fn new(max_batch: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            engine: Engine::start(config(folder.path(), max_batch)).unwrap(),
            _folder: folder,
        }
    }

    fn submit(&self, job: Arc<dyn Statement>, priority: Priority) -> JobHandle {
        self.engine.submit_job(job, urgent(priority)).unwrap()
    }

    /// Submits jobs of one priority while the worker is kept, so that all of them wait. Does not
    /// wait for the job that kept it: its proof needs the threads on which a hook may stand.
    fn submit_together(&self, jobs: Vec<Arc<dyn Statement>>, priority: Priority) -> Vec<JobHandle> {
        let doorway = Arc::new(Doorway::default());
        self.submit(tiny::held(OTHER, &doorway), Priority::High);
        doorway.wait_bounded();
        let jobs = jobs.into_iter().map(|job| self.submit(job, priority));
        let jobs = jobs.collect();
        doorway.open();
        jobs
    }

    /// Returns the numbers of partitions that each pass served.
    fn served(&self) -> Vec<usize> {
        let spans = self.engine.timeline().spans().into_iter();
        let passes = spans.filter(|span| span.stage == Stage::Columns);
        passes.map(|span| span.served.unwrap()).collect()
    }
}

/// A job that does something whenever a witness of it is written.
fn hooked(job: Arc<dyn Statement>, hook: impl Fn() + Send + Sync + 'static) -> Arc<dyn Statement> {
    Arc::new(Hooked {
        in_witness: Box::new(move |_| hook()),
        ..Hooked::from(job)
    })
}

#[test]
fn partitions_that_wait_share_a_pass() {
    for (max_batch, expected) in [(1, &[][..]), (2, &[2, 2]), (3, &[3, 2]), (10, &[5])] {
        let case = Case::new(max_batch);
        let job = case.submit(bits::job(KIND, 5, 1), Priority::Normal);
        let proofs = job.wait_bounded().unwrap();
        assert_eq!(proofs.as_bytes().len(), 5 * 192);
        assert_eq!(case.served(), expected, "{max_batch}");
    }
}

#[test]
fn jobs_of_one_circuit_and_priority_share_a_pass() {
    let case = Case::new(10);
    let jobs = [(1, 1), (2, 7)].map(|(partitions, seed)| bits::job(KIND, partitions, seed));
    for job in case.submit_together(jobs.to_vec(), Priority::Normal) {
        job.wait_bounded().unwrap();
    }
    assert_eq!(case.served(), [3]);
}

/// Nor does critical work join any.
#[test]
fn urgent_work_shares_a_pass_with_its_own_job_only() {
    let case = Case::new(10);
    let jobs = [(1, 1), (2, 7)].map(|(partitions, seed)| bits::job(KIND, partitions, seed));
    for job in case.submit_together(jobs.to_vec(), Priority::High) {
        job.wait_bounded().unwrap();
    }
    assert_eq!(case.served(), [2]);
    let critical = case.submit(bits::job(KIND, 3, 1), Priority::Critical);
    critical.wait_bounded().unwrap();
    assert_eq!(case.served(), [2]);
}

/// A false statement, and a witness that panics.
#[test]
fn a_partition_that_fails_in_a_batch_fails_its_own_job_only() {
    let case = Case::new(10);
    let false_job = BitsJob {
        kind: KIND,
        partitions: 1,
        seed: 3,
        is_false: true,
    };
    let panicking = hooked(bits::job(KIND, 1, 5), || panic!("as a bad writer would"));
    let jobs: Vec<Arc<dyn Statement>> = vec![Arc::new(false_job), bits::job(KIND, 2, 7), panicking];
    let jobs = case.submit_together(jobs, Priority::Normal);
    let ends: Vec<_> = jobs.iter().map(JobHandle::wait).collect();
    let error = ends[0].as_ref().unwrap_err();
    assert!(matches!(**error, Error::Unsatisfied { .. }), "{error}");
    assert!(ends[1].is_ok());
    let error = ends[2].as_ref().unwrap_err();
    assert!(matches!(**error, Error::Internal { .. }), "{error}");
    assert_eq!(case.served(), [3]);
}

#[test]
fn a_job_that_is_cancelled_in_a_batch_leaves_the_others() {
    let case = Case::new(10);
    let doorway = Arc::new(Doorway::default());
    let passed = Arc::clone(&doorway);
    let cancelled = hooked(bits::job(KIND, 1, 1), move || passed.pass());
    let jobs = case.submit_together(vec![cancelled, bits::job(KIND, 2, 7)], Priority::Normal);
    doorway.wait_bounded();
    assert!(jobs[0].cancel());
    doorway.open();
    let error = jobs[0].wait_bounded().unwrap_err();
    assert!(matches!(*error, Error::Cancelled), "{error}");
    jobs[1].wait_bounded().unwrap();
    case.engine.shutdown();
}

#[test]
fn critical_work_does_not_wait_for_a_batch() {
    let case = Case::new(10);
    let (doorway, is_first) = (Arc::new(Doorway::default()), AtomicBool::new(true));
    let passed = Arc::clone(&doorway);
    let job = hooked(bits::job(KIND, 3, 1), move || {
        if is_first.swap(false, Ordering::SeqCst) {
            passed.pass();
        }
    });
    let job = case.submit(job, Priority::Normal);
    doorway.wait_bounded();
    let critical = case.submit(tiny::job(OTHER, 1), Priority::Critical);
    critical.wait_bounded().unwrap();
    assert!(job.poll().is_none());
    doorway.open();
    job.wait_bounded().unwrap();
    assert_eq!(case.served(), [3]);
}

/// And its partitions are in a later batch.
#[test]
fn more_urgent_work_ends_a_batch() {
    let case = Case::new(10);
    let (doorway, is_first) = (Arc::new(Doorway::default()), AtomicBool::new(true));
    let passed = Arc::clone(&doorway);
    let job = hooked(bits::job(KIND, 3, 1), move || {
        if is_first.swap(false, Ordering::SeqCst) {
            passed.pass();
        }
    });
    let job = case.submit(job, Priority::Normal);
    doorway.wait_bounded();
    let high = case.submit(tiny::job(OTHER, 1), Priority::High);
    doorway.open();
    high.wait_bounded().unwrap();
    job.wait_bounded().unwrap();
    assert_eq!(case.served(), [2]);
}
