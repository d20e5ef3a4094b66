//! Proofs that are jobs of one pool. A job that has its device must not begin a job that waits
//! for the same device.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bellperson::Circuit;
use blstrs::Scalar;
use cuzk_groth16::backend::CpuBackend;
use cuzk_groth16::{ProveError, Prover, ProvingDevice};
use cuzk_testing::circuits::{Mimc, Sha256Chain};
use cuzk_testing::pools::jobs_of_one_thread;
use cuzk_timeline::Stage;
use rayon::{ThreadPool, ThreadPoolBuilder};
use supraseal_sys::GpuResources;
use supraseal_sys::device::BG2;

use crate::differential::double;
use crate::oracle::in_memory;

/// For what takes moments, unless it never ends.
const MOMENTS: Duration = Duration::from_secs(60);

fn pool() -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(1).build().unwrap()
}

/// Returns a prover of a circuit on a device.
fn prover<C: Circuit<Scalar>>(blank: C, device: Arc<ProvingDevice>) -> Prover {
    let shared = in_memory(blank);
    let (circuit, params) = (shared.circuit(), shared.params());
    Prover::on(Arc::clone(circuit), Arc::clone(params), device).unwrap()
}

/// Makes two proofs or batches of `instances` in jobs of one thread. The second one comes when
/// the first one has nothing more to do before it has the device. `last` is the stage before.
fn prove_beside<C: Circuit<Scalar> + Clone + Send + Sync + 'static>(
    (blank, instances): (C, Vec<C>),
    last: Stage,
    prove: fn(&Prover, Vec<C>),
) {
    let resources = Arc::new(GpuResources::new().unwrap());
    let own = Arc::new(pool());
    let backend = CpuBackend::new(Arc::clone(&resources), Arc::clone(&own));
    let device = Arc::new(ProvingDevice::new(Arc::new(backend), own));
    let prover = prover(blank, Arc::clone(&device));
    // Then the circuit has its domain, and the parameters have their multiples.
    prover.prove(instances[0].clone()).unwrap();

    let (jobs, prover, count) = (pool(), Arc::new(prover), instances.len());
    let (send, ended) = channel();
    let job = || {
        let (prover, send) = (Arc::clone(&prover), send.clone());
        let instances = instances.clone();
        jobs.spawn(move || {
            prove(&prover, instances);
            send.send(()).ok();
        });
    };
    let held = resources.lock_gpu().unwrap();
    job();
    let (began, stages) = (Instant::now(), device.timeline());
    let is_made = |job| stages.of_job(job).iter().any(|span| span.stage == last);
    while !(1..=count as u64).all(is_made) {
        assert!(began.elapsed() < MOMENTS, "{last:?}");
        thread::sleep(Duration::from_millis(1));
    }
    job();
    drop(held);
    for _ in 0..2 {
        let result = ended.recv_timeout(MOMENTS);
        assert!(result.is_ok(), "a job waits for itself, or panicked");
    }
}

#[test]
fn jobs_of_a_pool_may_share_a_prover() {
    let blank = Mimc::blank(10);
    let instance = blank.with([1, 2]);
    prove_beside(
        (blank, vec![instance]),
        Stage::Evaluate,
        |prover, instances| {
            for instance in instances {
                prover.prove(instance).unwrap();
            }
        },
    );
}

/// The bits of these witnesses are added up together.
#[test]
fn jobs_of_a_pool_may_prove_batches() {
    let blank = Sha256Chain::blank(2);
    let instances = [1, 2].map(|byte| blank.with(byte));
    prove_beside(
        (blank, instances.into()),
        Stage::CircuitWitness,
        |prover, instances| {
            assert_eq!(prover.prove_batch(instances).unwrap().len(), 2);
        },
    );
}

/// Threads of the device would wait for themselves.
#[test]
fn a_job_of_the_devices_own_pool_is_refused() {
    let blank = Mimc::blank(10);
    let resources = Arc::new(GpuResources::new().unwrap());
    let own = Arc::new(pool());
    let backend = CpuBackend::new(resources, Arc::clone(&own));
    let device = ProvingDevice::new(Arc::new(backend), Arc::clone(&own));
    let prover = prover(blank.clone(), Arc::new(device));
    let instance = || blank.with([1, 2]);
    let refused = own.install(|| {
        let one = prover.prove(instance()).unwrap_err();
        let batch = prover.prove_batch(vec![instance()]).unwrap_err();
        [one, batch]
    });
    for error in refused {
        assert!(matches!(error, ProveError::OwnThread), "{error}");
    }
    assert!(prover.prove(instance()).is_ok());
}

/// The first proof opens the multiples for the host's part, while it has the device.
#[test]
fn jobs_of_a_pool_may_share_a_gpu() {
    let blank = Mimc::blank(10);
    let prover = prover(blank.clone(), Arc::new(double(BG2::Cpu, 4)));
    let prove = move |job| prover.prove(blank.with([job as u64, 1])).unwrap();
    assert_eq!(jobs_of_one_thread(3, prove).len(), 3);
}
