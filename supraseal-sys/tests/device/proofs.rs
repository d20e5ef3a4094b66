//! The results of a device, wherever the points are.

use super::*;
use blstrs::{G1Projective, G2Projective};
use cuzk_memory::{Checkpoint, NEVER_STOP};
use group::Group;
use std::sync::atomic::AtomicI32;
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use cuzk_bounded::{BoundedJoin, bounded};
use supraseal_sys::test_hooks::HeldPool;

#[test]
fn the_sums_are_those_of_the_slow_way() {
    for b_g2 in [BG2::Cpu, BG2::Device, BG2::Auto] {
        let options = DeviceOptions { b_g2, ..options(1) };
        let bench = Bench::new(PLENTY, &options);
        for (seed, log_domain) in [(1, 4), (2, 7), (3, 9)] {
            let size = Size {
                log_domain,
                num_inputs: 1 + seed as u32 % 4,
                num_aux: (1 << log_domain) + 33,
            };
            let small = Arc::new(Small::new(size, seed));
            let circuit = bench.circuit(&small);
            // From no bits at all to bits only.
            for wide_every in [1, 2, 50, u32::MAX] {
                let witness = small.witness(seed, wide_every);
                let (sums, figures) = prove(&circuit, &witness).unwrap();
                assert_eq!(sums, small.sums(&witness), "{size:?}, 1 in {wide_every}");
                assert_eq!(figures.streamed_bytes, b_g1_bytes(&small));
            }
        }
        bench.assert_at_rest();
    }
}

/// A, B and h as they are on the device, with the MSMs made from them. Nothing is
/// streamed, or pieces are in the place of A and the scratch of the transforms.
#[test]
fn what_lies_between_is_that_of_the_slow_way() {
    for (seed, log_domain) in [(61, 4), (62, 7), (63, 9)] {
        let size = Size {
            log_domain,
            ..SMALL
        };
        let small = Arc::new(Small::new(size, seed));
        let witness = small.witness(seed, 5);
        for memory_bytes in [PLENTY, least_bytes(&small, &options(1))] {
            let options = DeviceOptions {
                memory_bytes: Some(memory_bytes),
                ..options(1)
            };
            let bench = Bench::new(PLENTY, &options);
            let staged = bench
                .circuit(&small)
                .stage(Arc::clone(&witness) as _, &NEVER_STOP);
            let (ran, between) = staged.unwrap().run_inspected(true, &NEVER_STOP).unwrap();
            assert_eq!(between, small.intermediates(&witness), "{size:?}");
            assert_eq!(ran.finish(&NEVER_STOP).unwrap().0, small.sums(&witness));
        }
    }
}

/// The less memory there is, the more is streamed. The MSMs are equal, down to the
/// least memory that is enough.
#[test]
fn points_that_do_not_fit_are_streamed() {
    for b_g2 in [BG2::Cpu, BG2::Device, BG2::Auto] {
        let asked = DeviceOptions { b_g2, ..options(2) };
        let small = Arc::new(Small::new(SMALL, 4));
        let witness = small.witness(5, 7);
        let expected = small.sums(&witness);
        let least = least_bytes(&small, &asked);
        let mut streamed = Vec::new();
        for more in [0, 10_000, 50_000, PLENTY / 2] {
            let memory_bytes = Some(least + more);
            let bench = Bench::new(
                PLENTY,
                &DeviceOptions {
                    memory_bytes,
                    ..asked
                },
            );
            let circuit = bench.circuit(&small);
            for _ in 0..2 {
                let (sums, figures) = prove(&circuit, &witness).unwrap();
                assert_eq!(sums, expected, "{:?}", circuit.plan());
                streamed.push(figures.streamed_bytes);
            }
        }
        let least_streamed = streamed[streamed.len() - 1];
        assert_eq!(least_streamed, b_g1_bytes(&small), "{streamed:?}");
        assert!(streamed[0] > least_streamed, "{streamed:?}");
    }
}

/// The MSM over B in G1 costs nothing if it is not requested.
#[test]
fn b_in_g1_is_left_out_unless_it_is_wanted() {
    for b_g2 in [BG2::Cpu, BG2::Device] {
        let asked = DeviceOptions { b_g2, ..options(1) };
        let small = Arc::new(Small::new(SMALL, 25));
        let witness = small.witness(26, 7);
        let b_g1 = G1Projective::identity();
        let expected = DeviceSums {
            b_g1,
            ..small.sums(&witness)
        };
        let circuit = Bench::new(PLENTY, &asked).circuit(&small);
        assert_eq!(circuit.plan().resident_points.b_g1, 0);
        for _ in 0..2 {
            let staged = circuit
                .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                .unwrap();
            let ran = staged.run(false, &NEVER_STOP).unwrap();
            let (sums, figures) = ran.finish(&NEVER_STOP).unwrap();
            assert_eq!(sums, expected);
            assert_eq!(figures.streamed_bytes, 0);
        }
    }
}

/// A bit takes one bit of the upload, not a scalar.
#[test]
fn a_witness_goes_up_packed() {
    let size = Size {
        log_domain: 9,
        num_inputs: 2,
        num_aux: 20_000,
    };
    let small = Arc::new(Small::new(size, 6));
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    let witness = small.witness(7, u32::MAX);
    prove(&circuit, &witness).unwrap();
    let before = bench.controls.seen().uploaded_bytes;
    let (_, figures) = prove(&circuit, &witness).unwrap();
    let uploaded = bench.controls.seen().uploaded_bytes - before - figures.streamed_bytes;
    assert_eq!(uploaded, figures.uploaded_bytes);
    assert!(uploaded < 20_000 / 8 * 3 + 2048, "{uploaded}");
    // The plan states the most: with wide values only.
    let (_, figures) = prove(&circuit, &small.witness(7, 1)).unwrap();
    assert_eq!(figures.uploaded_bytes, circuit.plan().witness_bytes);
}

/// Two circuits take turns on one device. Each finds its own arrays there.
#[test]
fn circuits_take_turns() {
    let bench = Bench::new(PLENTY, &options(2));
    let smalls = [8, 9].map(|seed| Arc::new(Small::new(SMALL, seed)));
    let circuits = smalls.each_ref().map(|small| bench.circuit(small));
    std::thread::scope(|scope| {
        for caller in 0..4u64 {
            let (smalls, circuits) = (&smalls, &circuits);
            scope.spawn(move || {
                for round in 0..4 {
                    let which = (caller + round) as usize % 2;
                    let witness = smalls[which].witness(caller, 9);
                    let (sums, _) = prove(&circuits[which], &witness).unwrap();
                    assert_eq!(sums, smalls[which].sums(&witness));
                }
            });
        }
    });
    bench.assert_at_rest();
}

/// A circuit that is gone is not confused with another one at its address.
#[test]
fn a_circuit_is_not_taken_for_one_that_is_gone() {
    let bench = Bench::new(PLENTY, &options(1));
    for seed in 10..14 {
        let small = Arc::new(Small::new(SMALL, seed));
        let witness = small.witness(seed, 5);
        let (sums, _) = prove(&bench.circuit(&small), &witness).unwrap();
        assert_eq!(sums, small.sums(&witness));
    }
}

/// A proof that is dropped after any step releases all it has, in any order, and the
/// device goes on.
#[test]
fn a_proof_may_be_dropped_after_any_step() {
    let small = Arc::new(Small::new(SMALL, 14));
    let witness = small.witness(15, 5);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    for _ in 0..3 {
        drop(
            circuit
                .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                .unwrap(),
        );
        drop(
            circuit
                .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                .unwrap()
                .run(true, &NEVER_STOP)
                .unwrap(),
        );
        bench.assert_at_rest();
    }
    // The worker is free after the device region, before the proof is finished.
    let ran = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap()
        .run(true, &NEVER_STOP)
        .unwrap();
    let (other, _) = prove(&circuit, &witness).unwrap();
    // Proofs keep the objects that they need alive.
    drop((circuit, bench));
    assert_eq!(ran.finish(&NEVER_STOP).unwrap().0, other);
}

/// A caller that makes the MSM in G2 itself gets the other four. b_g2_msm does not run,
/// so nothing raises the throttle. A device that makes the MSM makes it still.
#[test]
fn the_msm_in_g2_can_be_left_to_the_caller() {
    let small = Arc::new(Small::new(SMALL, 16));
    let witness = small.witness(17, 5);
    for b_g2 in [BG2::Cpu, BG2::Device] {
        let bench = Bench::new(PLENTY, &DeviceOptions { b_g2, ..options(1) });
        let circuit = bench.circuit(&small);
        let staged = circuit.stage(Arc::clone(&witness) as _, &NEVER_STOP);
        let ran = staged.unwrap().leaving_b_g2().run(true, &NEVER_STOP);
        bench.assert_at_rest();
        let (sums, figures) = ran.unwrap().finish(&NEVER_STOP).unwrap();
        let mut expected = small.sums(&witness);
        if b_g2 == BG2::Cpu {
            expected.b_g2 = G2Projective::identity();
        }
        assert_eq!(sums, expected);
        assert_eq!(figures.b_g2_ms, 0.0);
    }
}

/// While b_g2_msm is held up, a device region ends and its lock is free. The throttle
/// is raised once for each waiting proof. Another proof's region passes. A dropped
/// proof has ended when its threads have.
#[test]
fn the_lock_is_free_while_b_g2_msm_is_waited_for() {
    let small = Arc::new(Small::new(SMALL, 16));
    let witness = small.witness(17, 5);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    prove(&circuit, &witness).unwrap();
    let throttle = || bench.resources.throttle().load(Ordering::Acquire);
    let ran = std::thread::scope(|scope| {
        // Dropped after the pool is released, however this ends.
        let mut ran = Vec::new();
        let held = HeldPool::new().unwrap();
        let (send, receive) = mpsc::channel();
        let run = || {
            let staged = circuit
                .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                .unwrap();
            staged.run(true, &NEVER_STOP).unwrap()
        };
        scope.spawn(move || {
            for _ in 0..3 {
                send.send(run()).unwrap();
            }
        });
        for waiting in 1..=3 {
            let next = receive.recv_timeout(Duration::from_secs(30));
            ran.push(next.expect("a device region that waits for b_g2_msm"));
            drop(bench.resources.lock_gpu().unwrap());
            // The next proof may have begun its MSM already.
            wait_for("raised once for each that waits", || throttle() >= waiting);
        }
        let dropped = ran.pop();
        let dropping = scope.spawn(move || drop(dropped));
        assert_eq!(throttle(), 3);
        drop(held);
        dropping.join_bounded().unwrap();
        ran
    });
    for ran in ran {
        assert_eq!(
            ran.finish(&NEVER_STOP).unwrap().0,
            small.sums(&witness),
            "with b_g2_msm held up"
        );
    }
    bench.assert_at_rest();
}

/// The throttle counts proofs, from the first of their points to the last: none of them
/// twice.
#[test]
fn a_sum_in_g2_raises_the_throttle_once() {
    let small = Arc::new(Small::new(
        Size {
            log_domain: 12,
            num_inputs: 3,
            num_aux: 3000,
        },
        61,
    ));
    // Only wide values, so that b_g2_msm itself has work.
    let witness = small.witness(62, 1);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    let throttle = || bench.resources.throttle().load(Ordering::Acquire);
    let staged = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap();
    let most = AtomicI32::new(0);
    let watch = Checkpoint::asking(|| {
        most.fetch_max(throttle(), Ordering::AcqRel);
        false
    });
    let held = HeldPool::new().unwrap();
    let ran = staged.run(false, &watch).unwrap();
    wait_for("raised once", || throttle() == 1);
    drop(held);
    std::thread::scope(|scope| {
        let finished = scope.spawn(move || ran.finish(&NEVER_STOP).map(drop));
        bounded(|| {
            while !finished.is_finished() {
                watch.check().unwrap();
            }
        });
        finished.join_bounded().unwrap().unwrap();
    });
    assert_eq!(most.load(Ordering::Acquire), 1);
    bench.assert_at_rest();
}

/// Two devices of a machine were opened beside each other. A reader of the first one's
/// throttle sees the second one's MSM in G2.
#[test]
fn devices_beside_each_other_share_a_throttle() {
    let small = Arc::new(Small::new(SMALL, 63));
    let witness = small.witness(64, 5);
    let first = Bench::new(PLENTY, &options(1));
    let second = Bench::with(first.resources.beside().unwrap(), PLENTY, &options(1));
    let throttle = || first.resources.throttle().load(Ordering::Acquire);
    let circuit = second.circuit(&small);
    prove(&circuit, &witness).unwrap();
    let held = HeldPool::new().unwrap();
    let staged = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap();
    let ran = staged.run(true, &NEVER_STOP).unwrap();
    wait_for("raised once", || throttle() == 1);
    drop(first.resources.lock_gpu().unwrap());
    drop(held);
    assert_eq!(ran.finish(&NEVER_STOP).unwrap().0, small.sums(&witness));
    first.assert_at_rest();
    second.assert_at_rest();
}

/// One proof holds the lock at a time, and its figures tell so.
#[test]
fn device_regions_do_not_overlap() {
    let small = Arc::new(Small::new(SMALL, 65));
    let witness = small.witness(66, 5);
    let bench = Bench::new(PLENTY, &options(3));
    let circuit = bench.circuit(&small);
    let regions = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let asked = Instant::now();
                    let (_, figures) = prove(&circuit, &witness).unwrap();
                    let ended = figures.locked_at + figures.region;
                    assert!(asked <= figures.locked_at && ended <= Instant::now());
                    assert!(figures.region > Duration::ZERO);
                    regions.lock().unwrap().push((figures.locked_at, ended));
                }
            });
        }
    });
    let mut regions = regions.into_inner().unwrap();
    regions.sort();
    for pair in regions.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
}

/// A step that is out of order is refused, and changes nothing.
#[test]
fn steps_out_of_order_are_errors() {
    let small = Arc::new(Small::new(SMALL, 67));
    let witness = small.witness(68, 5);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    let refused = |result: Result<(), Status>, state: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::InvalidState, "{error}");
        assert!(error.message().contains(state), "{error}");
    };
    let staged = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap();
    refused(double::finish_early(&staged), "is staged");
    let ran = staged.run(true, &NEVER_STOP).unwrap();
    refused(double::run_again(&ran), "is run");
    let [first, second] = double::finish_twice(&ran);
    first.unwrap();
    refused(second, "is finished");
    refused(double::run_again(&ran), "is finished");
    drop(ran);
    bench.assert_at_rest();
    assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
}

#[test]
fn inputs_of_other_lengths_are_errors() {
    let small = Arc::new(Small::new(SMALL, 18));
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    let others = [
        Size {
            num_inputs: 4,
            ..SMALL
        },
        Size {
            num_aux: 100,
            ..SMALL
        },
    ];
    for other in others {
        let witness = Small::new(other, 19).witness(20, 5);
        let error = circuit.stage(witness, &NEVER_STOP).unwrap_err();
        assert_eq!(error.code(), Code::LengthMismatch, "{error}");
    }
    bench.assert_at_rest();
}
