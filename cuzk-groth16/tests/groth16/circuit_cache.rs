//! A compiled circuit is made once and found again; whatever lies in its place
//! in the cache costs time at most.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use blstrs::Scalar;
use cuzk_bounded::{BoundedBarrier, BoundedJoin, BoundedReceiver};
use cuzk_filecoin::{CircuitId, Error, ProofKind, SectorSize, blank};
use cuzk_groth16::Circuit;
use cuzk_kernels::Isa;
use cuzk_memory::{Checkpoint, NEVER_STOP};
use cuzk_pce::program;
use cuzk_testing::circuit_file;
use rayon::ThreadPoolBuilder;

/// The smallest circuit there is.
const WINDOW: CircuitId = CircuitId {
    kind: ProofKind::WindowPost,
    sector_size: SectorSize::KiB2,
};

const WINNING: CircuitId = CircuitId {
    kind: ProofKind::WinningPost,
    ..WINDOW
};

fn compile(id: CircuitId) -> Circuit {
    Circuit::new(id.to_string(), blank::compile(id).unwrap())
}

fn cache_path(id: CircuitId, cache: &Path) -> PathBuf {
    cuzk_testing::circuit_path(id.kind, cache)
}

fn cached(id: CircuitId, cache: &Path) -> Result<Circuit, Error> {
    cached_while(id, cache, &NEVER_STOP)
}

fn cached_while(
    id: CircuitId,
    cache: &Path,
    checkpoint: &Checkpoint<'_>,
) -> Result<Circuit, Error> {
    let compile = || blank::compile_while(id, checkpoint);
    Circuit::cached(&id.to_string(), &cache_path(id, cache), compile)
}

#[test]
fn the_first_start_compiles_and_the_next_one_maps() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("not/there/yet");
    let path = cache_path(WINDOW, &folder);
    let compiled = cached(WINDOW, &folder).unwrap();
    let made = fs::metadata(&path).unwrap().modified().unwrap();
    let mapped = cached(WINDOW, &folder).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), made);
    assert_eq!(mapped.fingerprint(), compiled.fingerprint());
    assert_eq!(
        mapped.program().recompute_fingerprint(),
        compile(WINDOW).fingerprint()
    );
    assert_eq!(mapped.densities(), compiled.densities());
}

/// Lets so many checks pass, and counts them down.
fn patience(checks: &AtomicUsize) -> Checkpoint<'_> {
    Checkpoint::asking(|| {
        let less = |left: usize| left.checked_sub(1);
        let left = checks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.is_err()
    })
}

#[test]
fn compiling_stops_and_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    for passes in [0, 2] {
        let checks = AtomicUsize::new(passes);
        let patience = patience(&checks);
        let error = cached_while(WINNING, cache.path(), &patience).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{error}");
        assert_eq!(checks.load(Ordering::Relaxed), 0);
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }
    cached_while(WINNING, cache.path(), &NEVER_STOP).unwrap();
    // An existing file is mapped, whoever asks.
    let none = AtomicUsize::new(0);
    cached_while(WINNING, cache.path(), &patience(&none)).unwrap();
}

#[test]
fn many_builders_end_with_one_good_file() {
    let cache = tempfile::tempdir().unwrap();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait_bounded();
                cached(WINDOW, cache.path()).unwrap();
            });
        }
    });
    let path = cache_path(WINDOW, cache.path());
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    Circuit::open(&WINDOW.to_string(), &path).unwrap();
}

/// The threads of a pool stand still for urgent work, which may need the same domain.
#[test]
fn a_domain_waits_for_no_thread_of_the_pool() {
    let circuit = Arc::new(compile(WINDOW));
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (release, released) = mpsc::channel::<()>();
    pool.spawn(move || assert!(released.recv_bounded().is_err()));
    let (tell, told) = mpsc::channel();
    let domain = Arc::clone(&circuit);
    let making = thread::spawn(move || {
        tell.send(domain.domain(Isa::best(), &pool).is_ok())
            .unwrap();
    });
    let made = told.recv_timeout(Duration::from_secs(60));
    drop(release);
    making.join_bounded().unwrap();
    assert_eq!(made, Ok(true));
}

#[test]
fn what_cannot_be_used_is_replaced() {
    let cache = tempfile::tempdir().unwrap();
    let path = cache_path(WINDOW, cache.path());
    let fingerprint = cached(WINDOW, cache.path()).unwrap().fingerprint();
    let good = fs::read(&path).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    for bad in [
        &b""[..],
        b"not a circuit",
        &good[..good.len() - 1],
        &damaged,
    ] {
        fs::write(&path, bad).unwrap();
        assert!(Circuit::open(&WINDOW.to_string(), &path).is_err());
        let circuit = cached(WINDOW, cache.path()).unwrap();
        assert_eq!(circuit.fingerprint(), fingerprint);
        assert_eq!(fs::read(&path).unwrap(), good);
    }
}

/// The file announces the sizes that its rows have. A file of the version before announces
/// none, and its rows have the same.
#[test]
fn a_file_announces_the_sizes_of_its_rows() {
    let cache = tempfile::tempdir().unwrap();
    for id in [WINDOW, WINNING] {
        let (name, path) = (id.to_string(), cache_path(id, cache.path()));
        let compiled = compile(id);
        compiled.write(&path).unwrap();
        let mapped = Circuit::open(&name, &path).unwrap();
        let counted = mapped.sizes();
        assert_eq!(mapped.announced_sizes(), Some(counted));
        assert_eq!(compiled.announced_sizes(), None);
        assert_eq!(counted, compiled.sizes());
        assert_eq!(counted.query_lengths(), compiled.query_lengths());
        assert_eq!(counted.domain_len(), compiled.domain_len());
        assert_eq!(counted.wide(), compiled.wide());

        let earlier = circuit_file::of_earlier_version(&fs::read(&path).unwrap());
        fs::write(&path, &earlier).unwrap();
        let mapped = cached(id, cache.path()).unwrap();
        assert_eq!((mapped.announced_sizes(), mapped.sizes()), (None, counted));
        assert_eq!(mapped.fingerprint(), compiled.fingerprint());
        assert_eq!(fs::read(&path).unwrap(), earlier, "it is used as it is");
    }
}

/// A proof is charged by what the rows have. [`program::read`] refuses the file.
#[test]
fn a_file_that_announces_other_variables_than_it_has_is_not_believed() {
    let cache = tempfile::tempdir().unwrap();
    let path = cache_path(WINDOW, cache.path());
    let compiled = cached(WINDOW, cache.path()).unwrap();
    let good = fs::read(&path).unwrap();
    fs::write(&path, circuit_file::that_lies(&good)).unwrap();
    let mapped = Circuit::open(&WINDOW.to_string(), &path).unwrap();
    let announced = mapped.announced_sizes().unwrap().variables.a_aux;
    let counted = compiled.sizes().variables.a_aux;
    assert_eq!(announced, counted - 1);
    assert_eq!(mapped.sizes(), compiled.sizes());
    let error = program::read::<Scalar>(&path, None)
        .unwrap_err()
        .to_string();
    let told = format!("announces {announced} auxiliary variables in A");
    assert!(error.contains(&told), "{error}");
    assert!(error.contains(&path.display().to_string()), "{error}");
}

#[test]
fn a_file_of_another_circuit_is_named_and_replaced() {
    let cache = tempfile::tempdir().unwrap();
    let path = cache_path(WINDOW, cache.path());
    let other = compile(WINNING);
    other.write(&path).unwrap();
    let error = Circuit::open(&WINDOW.to_string(), &path).unwrap_err();
    assert!(matches!(
        &error,
        cuzk_groth16::Error::OtherCircuit { expected, .. } if *expected == WINDOW.to_string()
    ));
    assert!(error.to_string().contains("winning-post-2KiB"), "{error}");
    let circuit = cached(WINDOW, cache.path()).unwrap();
    assert_ne!(circuit.fingerprint(), other.fingerprint());
    Circuit::open(&WINDOW.to_string(), &path).unwrap();
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let cache = tempfile::tempdir().unwrap();
    let file = cache.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let circuit = cached(WINDOW, &file).unwrap();
    assert_eq!(circuit.name(), WINDOW.to_string());
}

/// A thread that is told to stop unfolds no rows, and leaves nothing. The next one begins
/// anew, and all that follow get the same rows.
#[test]
fn plain_rows_that_were_stopped_are_unfolded_anew() {
    let circuit = compile(WINDOW);
    let asked = AtomicUsize::new(0);
    let second = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) > 0);
    for _ in 0..2 {
        let stopped = circuit.plain_rows(&second);
        assert!(matches!(stopped, Err(cuzk_groth16::Error::Stopped)));
    }
    assert!(asked.load(Ordering::Relaxed) > 1, "it began");
    let rows = circuit.plain_rows(&NEVER_STOP).unwrap();
    assert_eq!(*rows, circuit.program().to_r1cs().unwrap());
    let again = circuit.plain_rows(&NEVER_STOP).unwrap();
    assert!(Arc::ptr_eq(&rows, &again));
}
