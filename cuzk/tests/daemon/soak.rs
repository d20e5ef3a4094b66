//! Many jobs: the daemon keeps neither memory nor descriptors of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuzk_server::wire::v1::{self, await_proof_response::Status as JobStatus};

use crate::fixture::{Daemon, PATIENCE, connect, prove, request};

/// Clients that call at a time.
const CLIENTS: usize = 4;

/// Jobs that a client has on one connection.
const JOBS_A_CONNECTION: u64 = 10;

/// The time between two looks at the resident memory.
const LOOK: Duration = Duration::from_millis(50);

/// The number of WindowPoSts. The nightly run has more.
fn posts() -> u64 {
    let posts = std::env::var("CUZK_TEST_SOAK").ok();
    posts.map_or(40, |posts| posts.parse().unwrap())
}

/// The ways in which a client leaves a job.
#[derive(Clone, Copy)]
enum Manner {
    /// It waits for the proof.
    Wait,
    /// It goes away.
    Leave,
    /// It cancels the job.
    Cancel,
}

/// Returns the kind of a job and what becomes of it, by its number.
fn job(number: u64) -> (&'static str, Manner) {
    let kind = match number % 100 {
        17 => "winning-post",
        27 => "snap-deals",
        37 => "porep",
        _ => "window-post",
    };
    let manner = match number % 20 {
        5 => Manner::Leave,
        11 => Manner::Cancel,
        _ => Manner::Wait,
    };
    (kind, manner)
}

/// Has jobs `from` to `until` proved. Every client takes the next one.
async fn jobs(address: &str, next: Arc<AtomicU64>, until: u64) {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(client(address.to_owned(), Arc::clone(&next), until)))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

async fn client(address: String, next: Arc<AtomicU64>, until: u64) {
    loop {
        let mut client = connect(&address).await.unwrap();
        for _ in 0..JOBS_A_CONNECTION {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= until {
                return;
            }
            let (kind, manner) = job(number);
            let input = v1::SubmitProofRequest {
                request_id: format!("{kind}-{number}"),
                ..request(kind)
            };
            match manner {
                Manner::Wait => {
                    let response = prove(&mut client, input).await.unwrap();
                    assert_eq!(response.status(), JobStatus::Completed, "{response:?}");
                }
                Manner::Leave => {
                    let patience = Duration::from_millis(number % 50);
                    let call = prove(&mut client, input);
                    tokio::time::timeout(patience, call).await.ok();
                }
                Manner::Cancel => {
                    let submitted = client.submit_proof(input).await.unwrap();
                    let job_id = submitted.into_inner().job_id;
                    let cancel = v1::CancelProofRequest { job_id };
                    client.cancel_proof(cancel).await.unwrap();
                }
            }
        }
    }
}

/// Waits until nothing is left to do, and no descriptors are open beyond `most`.
async fn settled(daemon: &Daemon, most: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut client = connect(&daemon.address()).await.unwrap();
        let status = client.get_status(v1::GetStatusRequest {}).await.unwrap();
        let queues = status.into_inner().queues;
        drop(client);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let descriptors = daemon.descriptors();
        if descriptors <= most && queues.iter().all(|q| q.pending + q.in_progress == 0) {
            return;
        }
        assert!(
            Instant::now() < until,
            "{descriptors} descriptors are open, at most {most} are needed: {queues:?}"
        );
    }
}

/// The resident memory while jobs are proved, in KiB. The highest has the blocks of partitions,
/// which come and go. The lowest has what stays: it grows with anything that is never freed.
struct Resident {
    lowest_kib: u64,
    highest_kib: u64,
}

impl Resident {
    /// Looks at the memory of a daemon until `jobs` are done, once at least.
    async fn during(daemon: &Daemon, jobs: impl Future<Output = ()>) -> Self {
        let now_kib = daemon.resident_kib();
        let mut seen = Self {
            lowest_kib: now_kib,
            highest_kib: now_kib,
        };
        tokio::pin!(jobs);
        loop {
            tokio::select! {
                () = &mut jobs => return seen,
                () = tokio::time::sleep(LOOK) => {}
            }
            let now_kib = daemon.resident_kib();
            seen.lowest_kib = seen.lowest_kib.min(now_kib);
            seen.highest_kib = seen.highest_kib.max(now_kib);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_descriptors_stay() {
    // So many results are kept before the first look at the memory.
    let config = "[jobs]\nresults_kept = 40\n";
    let mut daemon = Daemon::start(config);
    daemon.client().await;
    let posts = posts();
    let address = daemon.address();
    let next = Arc::new(AtomicU64::new(0));
    // Each client takes one number in vain, so the numbers begin anew.
    let from_to = |from: u64, until: u64| {
        next.store(from, Ordering::Relaxed);
        jobs(&address, Arc::clone(&next), until)
    };
    let warm = (posts / 2).max(50);
    // One job in twenty is cancelled, and some are of other kinds.
    let half = posts * 11 / 20;
    from_to(0, warm).await;
    settled(&daemon, usize::MAX).await;
    let descriptors = daemon.descriptors();
    let middle = warm + half;
    let first = Resident::during(&daemon, from_to(warm, middle)).await;
    let second = Resident::during(&daemon, from_to(middle, middle + half)).await;
    settled(&daemon, descriptors).await;
    let said = format!(
        "resident memory: {} to {} KiB in jobs {warm} to {middle}, {} to {} KiB in as many after them",
        first.lowest_kib, first.highest_kib, second.lowest_kib, second.highest_kib
    );
    println!("{said}");
    // A short run ends before all that is bounded is full.
    let most_percent = if posts >= 2000 { 102 } else { 125 };
    assert!(
        second.lowest_kib * 100 <= first.lowest_kib * most_percent,
        "{said}"
    );
}
