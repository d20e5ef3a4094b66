//! A proof is stopped by its checkpoint wherever it is, and leaves the device as
//! the next one needs it.

use super::*;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

fn bench_in(memory_bytes: Option<u64>, b_g2: BG2) -> Bench {
    let options = DeviceOptions {
        memory_bytes,
        b_g2,
        ..options(2)
    };
    Bench::new(PLENTY, &options)
}

/// How often a whole proof's checkpoint is asked.
fn calls(circuit: &Arc<DeviceCircuit>, witness: &Arc<Packed>) -> usize {
    let calls = AtomicUsize::new(0);
    let pass = || {
        calls.fetch_add(1, Ordering::Relaxed);
        true
    };
    prove_with(circuit, witness, &pass).unwrap();
    calls.into_inner()
}

fn stop_at(call: usize) -> impl Fn() -> bool {
    let calls = AtomicUsize::new(0);
    move || calls.fetch_add(1, Ordering::Relaxed) < call
}

/// Resident and streamed, with the sum in G2 on either side.
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
            // A faster run asks less often than the one that was counted.
            if let Err(error) = prove_with(&circuit, &witness, &stop_at(call)) {
                assert_eq!(error.code(), Code::Stopped, "{error}");
            }
            bench.assert_at_rest();
            assert_eq!(prove(&circuit, &witness).unwrap().0, sums);
        }
        let stopped = prove_with(&circuit, &witness, &|| false).unwrap_err();
        assert_eq!(stopped.code(), Code::Stopped);
        assert_eq!(bench.controls.seen().allocations, allocations);
        assert_eq!(bench.controls.seen().drains, 0);
    }
}

/// What of the kernels has not begun is left out.
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
    let run = |pass: &dyn Fn() -> bool| {
        let staged = circuit.stage(Arc::clone(&witness) as _).unwrap();
        let started = Instant::now();
        let ran = staged.run(false, pass);
        (started.elapsed(), ran)
    };
    let whole = (0..3).map(|_| run(&|| true).0).min().unwrap();
    let stopped = (0..3)
        .map(|_| {
            let (time, ran) = run(&stop_at(3));
            assert_eq!(ran.unwrap_err().code(), Code::Stopped);
            time
        })
        .min()
        .unwrap();
    assert!(stopped * 2 < whole, "{stopped:?} of {whole:?}");
}

/// One worker's proofs are stopped all the time; the other's are as they
/// should be.
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
    let error = prove_with(&circuit, &witness, &|| panic!("as a test asks")).unwrap_err();
    assert_eq!(error.code(), Code::Stopped);
    assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
}
