//! Jobs from their submission to their end.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::LazyLock;

use cuzk_ffi::error::{CUZK_ARGUMENT, CUZK_ENDED, CUZK_OK, CUZK_PENDING};
use cuzk_ffi::job::CUZK_FOREVER;
use cuzk_filecoin::verify::verify;
use cuzk_filecoin::{ProofKind, decode};
use cuzk_groth16::params::ParamCache;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::calls::{Engine, failed};

const KIND: ProofKind = ProofKind::WindowPost;

/// The folder of the tests' parameters.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _in_the_cache = cuzk_testing::circuit_with_params(KIND, &cache);
    cache
});

fn engine() -> Engine {
    let cache = CACHE.as_path();
    // Debug quotes a path as TOML does.
    Engine::start(&format!("[srs]\nparam_cache = {cache:?}\nmultiples = []\n")).unwrap()
}

fn request() -> Vec<u8> {
    std::fs::read(cuzk_testing::data(&format!("{KIND}.json"))).unwrap()
}

fn is_readable(fd: BorrowedFd<'_>, timeout: PollTimeout) -> bool {
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout).unwrap() == 1
}

#[test]
fn a_job_is_proved_and_everyone_is_told() {
    let engine = engine();
    let job = engine
        .submit(&request(), r#"{"id": "a", "priority": "low"}"#)
        .unwrap();
    let fd = job.eventfd();
    assert_eq!(fd.as_raw_fd(), job.eventfd().as_raw_fd());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| assert_eq!(job.wait(CUZK_FOREVER), CUZK_OK));
        }
        assert!(is_readable(fd, PollTimeout::NONE));
    });
    assert_eq!((job.poll(), job.wait(0)), (CUZK_OK, CUZK_OK));
    assert_eq!(job.progress(), (1, 1));
    let (code, proof) = job.proof();
    assert_eq!((code, proof.len()), (CUZK_OK, 192));
    let key = ParamCache::new(&*CACHE).verifying_key(&cuzk_testing::files(KIND));
    let statement = decode(&cuzk_testing::bundled_request(KIND)).unwrap();
    assert!(
        verify(&*statement, proof, &key.unwrap())
            .unwrap()
            .is_valid()
    );

    // The same id is the same job, which has ended before its eventfd is made.
    let again = engine.submit(&request(), r#"{"id": "a"}"#).unwrap();
    assert!(is_readable(again.eventfd(), PollTimeout::ZERO));
    assert_eq!(again.proof(), (CUZK_OK, proof));
    let status = engine.status();
    assert_eq!(status["jobs"].as_array().map(Vec::len), Some(0), "{status}");
    assert_eq!(status["ended"][0]["id"], "a", "{status}");
    assert_eq!(engine.end(CUZK_FOREVER), 0);
    // Jobs outlive their engine.
    drop(engine);
    assert_eq!(job.proof(), (CUZK_OK, proof));
}

#[test]
fn a_job_that_is_cancelled_ends_with_its_error() {
    let engine = engine();
    let blocker = engine.submit(&request(), "").unwrap();
    let job = engine.submit(&request(), r#"{"priority": "low"}"#).unwrap();
    let fd = job.eventfd();
    job.cancel();
    assert_eq!(job.wait(CUZK_FOREVER), CUZK_ENDED);
    assert!(is_readable(fd, PollTimeout::NONE));
    let (_, text) = failed(job.poll());
    assert!(
        text.contains("cancelled") && text.ends_with("[CUZK-0025]"),
        "{text}"
    );
    assert_eq!(job.proof().0, CUZK_ENDED);
    job.cancel();
    assert_eq!(blocker.wait(CUZK_FOREVER), CUZK_OK);
}

#[test]
fn a_freed_engine_ends_its_jobs() {
    let engine = engine();
    let jobs: Vec<_> = (0..8)
        .map(|_| engine.submit(&request(), "").unwrap())
        .collect();
    let fds: Vec<_> = jobs.iter().map(|job| job.eventfd()).collect();
    let unproved = engine.end(0);
    drop(engine);
    let ended = jobs.iter().filter(|job| job.poll() == CUZK_ENDED).count();
    assert_eq!(ended, unproved);
    assert!(jobs.iter().all(|job| job.poll() != CUZK_PENDING));
    assert!(fds.into_iter().all(|fd| is_readable(fd, PollTimeout::ZERO)));
}

#[test]
fn an_ended_engine_refuses_jobs() {
    let engine = engine();
    assert_eq!(engine.end(0), 0);
    let (code, text) = engine.submit(&request(), "").err().unwrap();
    assert_eq!(code, CUZK_ENDED, "{text}");
    let (code, _) = engine.submit(&request(), "[").err().unwrap();
    assert_eq!(code, CUZK_ARGUMENT);
}
