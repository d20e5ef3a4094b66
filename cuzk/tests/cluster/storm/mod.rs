//! Jobs of all kinds while machines die, hang, lie and come back at random.
//!
//! `CUZK_TEST_FAULT_JOBS` is the number of jobs, and `CUZK_TEST_FAULT_SEED` is the seed, which
//! is printed. The seed decides what is done to whom. The times of the processes are real, so
//! two runs with one seed differ.

mod faults;
mod jobs;
mod noise;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use cuzk_bounded::BoundedJoin;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::doubles::{Double, Kind};
use crate::hands::{Worker, daemon, proved_here, until};
use crate::server::Server;
use faults::Machines;
use jobs::Job;

/// The calls that wait at a time.
const CALLS: usize = 8;

/// Returns a number of the environment.
fn number(name: &str, default: u64) -> u64 {
    let number = std::env::var(name).ok();
    number.map_or(default, |number| number.parse().unwrap())
}

/// Has all jobs proved by clients that try again after a lost connection. Returns the proofs of
/// true statements by job.
async fn prove_all(address: &str, jobs: &Arc<Vec<Job>>) -> BTreeMap<String, Vec<u8>> {
    let next = Arc::new(AtomicUsize::new(0));
    let client = || {
        let (jobs, next) = (Arc::clone(jobs), Arc::clone(&next));
        let address = address.to_owned();
        async move {
            let mut proofs = Vec::new();
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let end = job.end(&address).await;
                let proof = job.check(end).await;
                let id = job.request.request_id.clone();
                proofs.extend(proof.map(|proof| (id, proof)));
            }
            proofs
        }
    };
    let clients: Vec<_> = (0..CALLS).map(|_| tokio::spawn(client())).collect();
    let mut proofs = BTreeMap::new();
    for client in clients {
        proofs.extend(client.await.unwrap());
    }
    proofs
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a nats-server, see .ci/nats-server"]
async fn each_job_ends_once_while_machines_die_hang_and_lie() {
    let seed = number("CUZK_TEST_FAULT_SEED", 1);
    let count = usize::try_from(number("CUZK_TEST_FAULT_JOBS", 4)).unwrap();
    println!("seed {seed}: {count} jobs");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let jobs = Arc::new(jobs::mixed(count, &mut rng));
    let server = Server::start();
    let url = server.url();
    let mut daemon = daemon(&url, &[]);
    drop(daemon.client().await);
    let address = daemon.address();
    let workers = ["one", "two", "three", "four"].map(|name| Worker::start(&url, name));
    let liar = Double::start(&url, "liar", Kind::Liar).await;
    let other = Double::start(&url, "other", Kind::OtherVersion).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let noise = tokio::spawn(noise::repeat(url.clone(), seed, Arc::clone(&is_over)));
    let machines = Machines::new(server, daemon, workers.into());
    let (of_thread, handle) = (Arc::clone(&is_over), tokio::runtime::Handle::current());
    let storm = std::thread::spawn(move || machines.storm(rng, &of_thread, &handle));
    let started = Instant::now();
    let proofs = prove_all(&address, &jobs).await;
    let took_s = started.elapsed().as_secs();
    is_over.store(true, Ordering::Relaxed);
    let noise = noise.await.unwrap();
    let join = || storm.join_bounded().unwrap();
    let mut machines = tokio::task::block_in_place(join);
    let faults = machines
        .faults
        .iter()
        .map(|(fault, times)| format!("{times} {fault}"));
    let faults = faults.collect::<Vec<_>>().join("; ");
    println!(
        "{count} jobs in {took_s} s; {faults}; {} messages repeated, {} of them out of order; {} \
         partitions given to the liar",
        noise.copies,
        noise.overtaken,
        liar.begun()
    );
    assert_eq!(other.begun(), 0, "versions never meet");
    liar.end().await;
    other.end().await;
    proved_again_by_nobody(&mut machines, &jobs, &proofs).await;
}

/// Starts the daemon anew and asks for all jobs again. The journal has their proofs.
async fn proved_again_by_nobody(
    machines: &mut Machines,
    jobs: &[Job],
    proofs: &BTreeMap<String, Vec<u8>>,
) {
    // Repeated work may still run, which nobody needs.
    noise::await_empty(&machines.server.url()).await;
    let true_jobs: Vec<Job> = jobs.iter().filter(|job| !job.is_false).cloned().collect();
    machines.daemon.kill();
    let begun = machines.begun();
    machines.daemon.start_again();
    drop(machines.daemon.client().await);
    let again = prove_all(&machines.daemon.address(), &Arc::new(true_jobs)).await;
    assert_eq!(&again, proofs, "an end is the same for all who ask");
    assert_eq!(machines.begun(), begun, "nothing is proved again");
    assert_eq!(proved_here(&machines.daemon), 0);
    until("nothing is open", || {
        crate::hands::cluster(&machines.daemon)["open_partitions"] == 0
    });
}
