//! A checkpoint stops a proof at any point, and leaves the device ready for the next
//! proof.

use super::*;
use cuzk_memory::{Checkpoint, NEVER_STOP};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use cuzk_bounded::BoundedJoin;
use supraseal_sys::test_hooks::{HeldPool, copy};

fn bench_in(memory_bytes: Option<u64>, b_g2: BG2) -> Bench {
    let options = DeviceOptions {
        memory_bytes,
        b_g2,
        ..options(2)
    };
    Bench::new(PLENTY, &options)
}

/// Returns the number of questions to a whole proof's checkpoint.
fn calls(circuit: &Arc<DeviceCircuit>, witness: &Arc<Packed>) -> usize {
    let calls = AtomicUsize::new(0);
    let counting = Checkpoint::asking(|| {
        calls.fetch_add(1, Ordering::Relaxed);
        false
    });
    prove_with(circuit, witness, &counting).unwrap();
    calls.load(Ordering::Relaxed)
}

fn stop_at(call: usize) -> Checkpoint<'static> {
    let calls = AtomicUsize::new(0);
    Checkpoint::asking(move || calls.fetch_add(1, Ordering::Relaxed) >= call)
}

/// Resident and streamed, with the MSM in G2 on either side.
#[test]
fn a_proof_stops_at_every_checkpoint() {
    let small = Arc::new(Small::new(SMALL, 70));
    let witness = small.witness(71, 4);
    let sums = small.sums(&witness);
    let least = least_bytes(&small, &options(2));
    for (memory_bytes, b_g2) in [
        (None, BG2::Cpu),
        (None, BG2::Device),
        (Some(least), BG2::Cpu),
    ] {
        let bench = bench_in(memory_bytes, b_g2);
        let circuit = bench.circuit(&small);
        assert_eq!(prove(&circuit, &witness).unwrap().0, sums);
        let allocations = bench.controls.seen().allocations;
        let calls = calls(&circuit, &witness);
        assert!(calls > 1);
        for call in 0..calls {
            // A faster run asks fewer questions than the one that was counted.
            if let Err(error) = prove_with(&circuit, &witness, &stop_at(call)) {
                assert_eq!(error.code(), Code::Stopped, "{error}");
            }
            bench.assert_at_rest();
            assert_eq!(prove(&circuit, &witness).unwrap().0, sums);
        }
        let stopped = prove_with(&circuit, &witness, &stop_at(0)).unwrap_err();
        assert_eq!(stopped.code(), Code::Stopped);
        assert_eq!(bench.controls.seen().allocations, allocations);
        assert_eq!(bench.controls.seen().drains, 0);
    }
}

/// However much a proof enqueues.
#[test]
fn a_proof_asks_between_its_launches() {
    let small = Arc::new(Small::new(LONG, 88));
    let bench = Bench::with_short_pieces(&options(1));
    let circuit = bench.circuit(&small);
    assert_eq!(circuit.plan().resident_points.l, 2_560);
    let staged = circuit
        .stage(small.witness(89, 2) as _, &NEVER_STOP)
        .unwrap();
    let calls = || bench.controls.seen().calls;
    let first = calls();
    let asked = Mutex::new(vec![first]);
    let watching = Checkpoint::asking(|| {
        asked.lock().unwrap().push(calls());
        false
    });
    drop(staged.run(true, &watching).unwrap());
    let asked = asked.lock().unwrap();
    assert!(calls() - first > 200, "{}", calls() - first);
    let most = asked.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    assert!(most < 15, "{most} calls without a question");
}

/// Kernels that have not begun do nothing.
#[test]
fn kernels_are_cut_short() {
    let size = Size {
        log_domain: 13,
        num_inputs: 3,
        num_aux: 6_000,
    };
    let small = Arc::new(Small::new(size, 72));
    let witness = small.witness(73, 3);
    let bench = bench_in(None, BG2::Device);
    let circuit = bench.circuit(&small);
    let run = |checkpoint: &Checkpoint<'_>| {
        let staged = circuit
            .stage(Arc::clone(&witness) as _, &NEVER_STOP)
            .unwrap();
        let started = Instant::now();
        let ran = staged.run(false, checkpoint);
        (started.elapsed(), ran)
    };
    let whole = (0..3).map(|_| run(&NEVER_STOP).0).min().unwrap();
    let stopped = (0..3)
        .map(|_| {
            // Some milliseconds after everything was enqueued.
            let (time, ran) = run(&stop_at(30));
            assert_eq!(ran.unwrap_err().code(), Code::Stopped);
            time
        })
        .min()
        .unwrap();
    assert!(stopped * 2 < whole, "{stopped:?} of {whole:?}");
}

/// Points may be read from a file on their way, which takes the most time of all.
#[test]
fn the_copy_of_a_piece_stops_between_its_tasks() {
    const TASK: usize = 1 << 20;
    const TASKS: usize = 7;
    let from: Vec<u8> = (0..TASKS * TASK - 5).map(|index| index as u8 | 1).collect();
    let mut to = vec![0; from.len()];
    // The calling thread has all tasks.
    let held = HeldPool::new().unwrap();
    let asked = AtomicUsize::new(0);
    let fourth = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) >= 3);
    let stopped = copy(&mut to, &from, &fourth).unwrap_err();
    assert_eq!(stopped.code(), Code::Stopped);
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    assert_eq!(to.iter().position(|&byte| byte == 0), Some(3 * TASK));
    copy(&mut to, &from, &NEVER_STOP).unwrap();
    drop(held);
    assert!(to == from);
    to.fill(0);
    copy(&mut to, &from, &NEVER_STOP).unwrap();
    assert!(to == from);
}

/// One worker's proofs are stopped all the time; the other's proofs are right.
#[test]
fn a_stop_is_one_proofs() {
    let small = Arc::new(Small::new(SMALL, 74));
    let witness = small.witness(75, 5);
    let sums = small.sums(&witness);
    let bench = bench_in(None, BG2::Cpu);
    let circuit = bench.circuit(&small);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for call in 0..30 {
                drop(prove_with(&circuit, &witness, &stop_at(call % 6)));
            }
        });
        for _ in 0..20 {
            assert_eq!(prove(&circuit, &witness).unwrap().0, sums);
        }
    });
    bench.assert_at_rest();
}

/// A panic in a checkpoint does not unwind through C++.
#[test]
fn a_checkpoint_that_panics_stops() {
    let small = Arc::new(Small::new(SMALL, 76));
    let witness = small.witness(77, 5);
    let bench = bench_in(None, BG2::Cpu);
    let circuit = bench.circuit(&small);
    let panics = Checkpoint::asking(|| panic!("as a test asks"));
    let error = prove_with(&circuit, &witness, &panics).unwrap_err();
    assert_eq!(error.code(), Code::Stopped);
    assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
}

/// A thread that waits until it is told to stop.
#[derive(Default)]
struct Waits {
    asked: AtomicUsize,
    stops: AtomicBool,
}

impl Waits {
    fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint::asking(|| {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.stops.load(Ordering::Relaxed)
        })
    }

    /// The checkpoint is only asked while the thread waits.
    fn until_it_waits(&self) {
        wait_for("it waits", || self.asked.load(Ordering::Relaxed) > 0);
    }

    /// Ends the wait of this thread, although the thing that it waits for is not there.
    fn stop<T: std::fmt::Debug>(&self, waiting: ScopedJoinHandle<'_, Result<T, Status>>) {
        self.stops.store(true, Ordering::Relaxed);
        wait_for("it stopped", || waiting.is_finished());
        let error = waiting.join_bounded().unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Stopped, "{error}");
    }
}

/// Another proof has the only worker. Of two proofs that wait for it the first stops,
/// and leaves its place to the second.
#[test]
fn a_wait_for_a_worker_stops() {
    let small = Arc::new(Small::new(SMALL, 78));
    let witness = small.witness(79, 5);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    let staged = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap();
    let [first, second] = [(); 2].map(|()| Waits::default());
    std::thread::scope(|scope| {
        // Dropped before the threads are joined, however this ends.
        let staged = staged;
        let stopped = scope.spawn(|| prove_with(&circuit, &witness, &first.checkpoint()));
        first.until_it_waits();
        let served = scope.spawn(|| prove_with(&circuit, &witness, &second.checkpoint()));
        second.until_it_waits();
        first.stop(stopped);
        assert!(!served.is_finished());
        drop(staged);
        assert_eq!(
            served.join_bounded().unwrap().unwrap().0,
            small.sums(&witness)
        );
    });
    bench.assert_at_rest();
}

/// Another thread has the device's lock.
#[test]
fn a_wait_for_the_lock_stops() {
    let small = Arc::new(Small::new(SMALL, 80));
    let witness = small.witness(81, 5);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    prove(&circuit, &witness).unwrap();
    for _ in 0..3 {
        let waits = Waits::default();
        std::thread::scope(|scope| {
            let _held = bench.resources.lock_gpu().unwrap();
            let staged = circuit
                .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                .unwrap();
            let stopped = scope.spawn(|| staged.run(true, &waits.checkpoint()));
            waits.until_it_waits();
            waits.stop(stopped);
            // The worker is free.
            drop(
                circuit
                    .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                    .unwrap(),
            );
        });
        bench.assert_at_rest();
        assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
    }
}

/// It waits behind a circuit that cannot be uploaded, because another thread has the
/// device's lock.
#[test]
fn a_wait_for_a_circuit_to_come_stops() {
    let bench = Bench::new(PLENTY, &options(2));
    let smalls = [82, 83].map(|seed| Arc::new(Small::new(SMALL, seed)));
    let witnesses = smalls.each_ref().map(|small| small.witness(84, 5));
    let circuits = smalls.each_ref().map(|small| bench.circuit(small));
    let waits: [_; 3] = std::array::from_fn(|_| Waits::default());
    let stage = |which: usize, waits: &Waits| {
        let witness = Arc::clone(&witnesses[which]);
        circuits[which].stage(witness as _, &waits.checkpoint())
    };
    std::thread::scope(|scope| {
        let _held = bench.resources.lock_gpu().unwrap();
        let brings = scope.spawn(|| stage(0, &waits[0]));
        waits[0].until_it_waits();
        let [same, other] = [(0, &waits[1]), (1, &waits[2])]
            .map(|(which, waits)| scope.spawn(move || stage(which, waits)));
        waits[1].until_it_waits();
        waits[2].until_it_waits();
        waits[2].stop(other);
        waits[1].stop(same);
        waits[0].stop(brings);
    });
    for ((circuit, witness), small) in circuits.iter().zip(&witnesses).zip(&smalls) {
        assert_eq!(prove(circuit, witness).unwrap().0, small.sums(witness));
    }
    bench.assert_at_rest();
}

/// A circuit that is stopped during its upload is uploaded anew, and the circuits that
/// are there stay.
#[test]
fn a_circuit_stops_at_every_checkpoint_of_its_coming() {
    let bench = Bench::new(PLENTY, &options(2));
    let smalls = [85, 86].map(|seed| Arc::new(Small::new(SMALL, seed)));
    let witnesses = smalls.each_ref().map(|small| small.witness(87, 5));
    let [there, comes] = smalls.each_ref().map(|small| bench.circuit(small));
    let uploaded = || bench.controls.seen().uploaded_bytes;
    prove(&there, &witnesses[0]).unwrap();
    let allocations = bench.controls.seen().allocations;
    for call in 0.. {
        let staged = comes.stage(Arc::clone(&witnesses[1]) as _, &stop_at(call));
        match staged {
            Ok(staged) => {
                assert!(call > 5, "{call}");
                drop(staged);
                break;
            }
            Err(error) => assert_eq!(error.code(), Code::Stopped, "{error}"),
        }
        bench.assert_at_rest();
        let before = uploaded();
        let (sums, figures) = prove(&there, &witnesses[0]).unwrap();
        assert_eq!(sums, smalls[0].sums(&witnesses[0]));
        let witness_and_pieces = figures.uploaded_bytes + figures.streamed_bytes;
        assert_eq!(uploaded() - before, witness_and_pieces);
    }
    let (sums, _) = prove(&comes, &witnesses[1]).unwrap();
    assert_eq!(sums, smalls[1].sums(&witnesses[1]));
    assert_eq!(bench.controls.seen().allocations, allocations);
}
