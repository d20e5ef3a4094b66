//! Failures of a device at any moment: each becomes a status, nothing stays held or
//! leaks, and the next proof is right.

use super::*;
use cuzk_memory::NEVER_STOP;
use supraseal_sys::device::device_count;
use supraseal_sys::double::Fault;

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_cuda_says_so() {
    assert_eq!(device_count().unwrap_err().code(), Code::NoCuda);
    let resources = Arc::new(GpuResources::new().unwrap());
    let error = DeviceProver::open(0, &options(1), resources).unwrap_err();
    assert_eq!(error.code(), Code::NoCuda);
    assert!(error.message().contains("cuda"), "{error}");
}

#[cfg(feature = "cuda")]
#[test]
fn an_ordinal_past_the_last_is_an_error() {
    // Without a driver, counting itself may fail, and opening then fails, too.
    let count = device_count().unwrap_or(0);
    let resources = Arc::new(GpuResources::new().unwrap());
    let error = DeviceProver::open(count, &options(1), resources).unwrap_err();
    let expected = [Code::NoDevice, Code::DriverTooOld];
    assert!(expected.contains(&error.code()), "{error}");
}

/// A limit is no demand: memory that is not free is not taken.
#[test]
fn a_limit_above_what_is_free_is_none() {
    let memory_bytes = Some(2_000_000);
    let options = DeviceOptions {
        memory_bytes,
        ..options(1)
    };
    for (there, taken) in [(1_000_000, 1_000_000), (2_500_000, 2_000_000)] {
        let bench = Bench::new(there, &options);
        assert_eq!(bench.controls.seen().bytes, taken);
    }
}

/// The memory that the driver and the stacks take is not given away, even if all of it
/// is free.
#[test]
fn memory_that_is_the_drivers_is_not_taken() {
    const THERE: u64 = 1_000_000;
    let open = |stacks| {
        let controls = Controls::new().unwrap();
        controls.take_stacks(stacks);
        let resources = Arc::new(GpuResources::new().unwrap());
        let device = double::open(THERE, &options(1), resources, &controls);
        let taken = controls.seen().bytes;
        device.map(|_| taken)
    };
    assert_eq!(open(THERE - 4_096).unwrap(), 4_096);
    for stacks in [THERE, THERE + 234_567] {
        let error = open(stacks).unwrap_err();
        assert_eq!(error.code(), Code::DeviceOutOfMemory);
        for number in [THERE, stacks] {
            assert!(error.message().contains(&number.to_string()), "{error}");
        }
    }
}

#[test]
fn a_circuit_that_cannot_fit_is_an_error_that_says_what_would_do() {
    let small = Arc::new(Small::new(SMALL, 30));
    let least = least_bytes(&small, &options(1));
    let memory_bytes = Some(least - 1);
    let bench = Bench::new(
        PLENTY,
        &DeviceOptions {
            memory_bytes,
            ..options(1)
        },
    );
    let source = Arc::clone(&small) as Arc<dyn CircuitSource>;
    let error = DeviceCircuit::new(Arc::clone(&bench.device), source).unwrap_err();
    assert_eq!(error.code(), Code::CircuitTooLarge);
    assert!(error.message().contains(&least.to_string()), "{error}");
}

/// Returns the codes that a fault may be reported as, and true if the device works
/// afterwards.
fn expected(fault: Fault) -> (&'static [Code], bool) {
    match fault {
        Fault::Nothing => (&[], true),
        Fault::OutOfMemory => (&[Code::DeviceOutOfMemory], true),
        Fault::Error => (&[Code::DeviceError], true),
        Fault::Exception => (&[Code::Exception], true),
        Fault::Int => (&[Code::UnknownException], true),
        Fault::Sticky | Fault::Kernel => (&[Code::DeviceLost], false),
        Fault::Stall => (&[Code::DeviceStalled, Code::DeviceLost], false),
    }
}

const FAULTS: [Fault; 7] = [
    Fault::OutOfMemory,
    Fault::Error,
    Fault::Sticky,
    Fault::Stall,
    Fault::Kernel,
    Fault::Exception,
    Fault::Int,
];

/// Each call that opening a device makes fails once, in each way.
#[test]
fn opening_fails_cleanly_at_every_call() {
    for fault in FAULTS {
        for call in 1.. {
            let controls = Controls::new().unwrap();
            controls.fail(call, fault);
            let resources = Arc::new(GpuResources::new().unwrap());
            let opened = double::open(PLENTY, &options(2), Arc::clone(&resources), &controls);
            let reached = controls.seen().calls >= call;
            if let Err(error) = &opened {
                let codes = expected(fault).0;
                assert!(
                    codes.contains(&error.code()),
                    "{fault:?} at {call}: {error}"
                );
            }
            drop(opened);
            if fault != Fault::Stall {
                assert_eq!(controls.seen().live_allocations, 0, "{fault:?} at {call}");
            } else if reached {
                // Freeing would wait for the device.
                assert_ne!(controls.seen().bytes, 0, "{fault:?} at {call}");
            }
            drop(resources.lock_gpu().unwrap());
            if !reached {
                break;
            }
        }
    }
}

/// Each call that a proof makes fails once. Of the failures that only differ in the
/// type of the exception, every seventh is tested. The call fails in the first proof,
/// which uploads the circuit, and in a later one, with resident and with streamed
/// points.
#[test]
fn proofs_fail_cleanly_at_every_call() {
    let size = Size {
        log_domain: 4,
        num_inputs: 2,
        num_aux: 80,
    };
    let small = Arc::new(Small::new(size, 31));
    let witness = small.witness(32, 4);
    let sums = small.sums(&witness);
    for streamed in [false, true] {
        for warm in [false, true] {
            for fault in FAULTS {
                let throws = [Fault::OutOfMemory, Fault::Exception, Fault::Int];
                let step = if throws.contains(&fault) { 7 } else { 1 };
                for call in (1..).step_by(step) {
                    if !fails_at(&small, &witness, &sums, (streamed, warm), fault, call) {
                        assert!(call > 10);
                        break;
                    }
                }
            }
        }
    }
}

/// Runs a proof that makes each call that a proof can make.
fn prove_inspected(
    circuit: &Arc<DeviceCircuit>,
    witness: &Arc<Packed>,
) -> Result<DeviceSums, Status> {
    let staged = circuit.stage(Arc::clone(witness) as _, &NEVER_STOP)?;
    let (ran, _) = staged.run_inspected(true, &NEVER_STOP)?;
    Ok(ran.finish(&NEVER_STOP)?.0)
}

/// Returns true if a proof makes that many calls.
fn fails_at(
    small: &Arc<Small>,
    witness: &Arc<Packed>,
    sums: &DeviceSums,
    (streamed, warm): (bool, bool),
    fault: Fault,
    call: u64,
) -> bool {
    let asked = options(2);
    let memory_bytes = streamed.then(|| least_bytes(small, &asked));
    let bench = Bench::new(
        1 << 24,
        &DeviceOptions {
            memory_bytes,
            ..asked
        },
    );
    let circuit = bench.circuit(small);
    if warm {
        assert_eq!(prove(&circuit, witness).unwrap().0, *sums);
    }
    let before = bench.controls.seen().calls;
    bench.controls.fail(call, fault);
    let result = prove_inspected(&circuit, witness);
    let reached = bench.controls.seen().calls - before >= call;
    bench.controls.fail(0, Fault::Nothing);
    let name = format!("{fault:?} at call {call}, streamed {streamed}, warm {warm}");
    let (codes, survives) = expected(fault);
    match &result {
        Ok(got) => assert_eq!(got, sums, "{name}"),
        Err(error) => assert!(codes.contains(&error.code()), "{name}: {error}"),
    }
    bench.assert_at_rest();
    // A fault that was not reported had no effect, or comes with the next proof.
    match prove(&circuit, witness) {
        Ok((got, _)) => assert_eq!(got, *sums, "{name}"),
        Err(error) => {
            assert!(!survives, "{name}: then {error}");
            let lost = [Code::DeviceLost, Code::DeviceStalled];
            assert!(lost.contains(&error.code()), "{name}: then {error}");
        }
    }
    bench.assert_at_rest();
    let controls = Arc::clone(&bench.controls);
    drop((circuit, bench));
    if fault != Fault::Stall {
        assert_eq!(controls.seen().live_allocations, 0, "{name}");
    }
    reached
}

/// A bad point is found where it is decoded: when it comes to stay, when it is
/// streamed, and in b_g2_msm.
#[test]
fn points_that_are_none_are_named() {
    let bad_points = |query: usize, point: usize| -> Small {
        let mut small = Small::new(SMALL, 33);
        let points = &mut small.points;
        let (bytes, each) = match query {
            0 => (&mut points.h, 96),
            1 => (&mut points.l, 96),
            2 => (&mut points.a, 96),
            3 => (&mut points.b_g1, 96),
            _ => (&mut points.b_g2, 192),
        };
        bytes[each * point + 5] ^= 1;
        small
    };
    let names = ["H", "L", "A", "B in G1", "B in G2"];
    let least = least_bytes(&Small::new(SMALL, 33), &options(1));
    for memory_bytes in [None, Some(least)] {
        for (query, name) in names.iter().enumerate() {
            for point in [0, 90] {
                let small = Arc::new(bad_points(query, point));
                let bench = Bench::new(
                    PLENTY,
                    &DeviceOptions {
                        memory_bytes,
                        ..options(1)
                    },
                );
                let circuit = bench.circuit(&small);
                // Only wide values, so that b_g2_msm reads each point.
                let witness = small.witness(34, 1);
                for _ in 0..2 {
                    let error = prove(&circuit, &witness).unwrap_err();
                    assert_eq!(error.code(), Code::InvalidPoint, "{error}");
                    let expected = format!("the query {name}: point {point} ");
                    assert!(error.message().contains(&expected), "{error}");
                    bench.assert_at_rest();
                }
            }
        }
    }
}

/// Of the bad points in several pieces that are decoded together, the first is named.
#[test]
fn the_first_of_several_bad_points_is_named() {
    for points in [[700, 701], [700, 764], [700, 828], [0, 63]] {
        let mut small = Small::new(LONG, 37);
        for point in points {
            small.points.l[96 * point + 5] ^= 1;
        }
        let small = Arc::new(small);
        let bench = Bench::with_short_pieces(&options(1));
        let circuit = bench.circuit(&small);
        assert_eq!(circuit.plan().resident_points.l, 2_560);
        let error = prove(&circuit, &small.witness(38, 2)).unwrap_err();
        let expected = format!("the query L: point {} ", points[0]);
        assert!(error.message().contains(&expected), "{error}");
        bench.assert_at_rest();
    }
}

/// A thread that enqueues more than a driver takes is blocked in the driver as long as
/// the device stands still. Nobody learns of it.
#[test]
fn a_device_that_stands_still_is_noticed_while_much_is_enqueued() {
    let small = Arc::new(Small::new(LONG, 39));
    let witness = small.witness(40, 2);
    let bench = Bench::with_short_pieces(&options(1));
    let circuit = bench.circuit(&small);
    assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
    let staged = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap();
    bench.controls.fail(1, Fault::Stall);
    let error = staged.run(true, &NEVER_STOP).unwrap_err();
    assert_eq!(error.code(), Code::DeviceStalled, "{error}");
    bench.assert_at_rest();
}

/// A device that did not end its work within the stall limit does not get the same time
/// again while the lock is held.
#[test]
fn a_stall_is_waited_for_once() {
    let small = Arc::new(Small::new(SMALL, 41));
    let witness = small.witness(42, 5);
    let bench = Bench::new(PLENTY, &options(1));
    let circuit = bench.circuit(&small);
    prove(&circuit, &witness).unwrap();
    let staged = circuit
        .stage(Arc::clone(&witness) as _, &NEVER_STOP)
        .unwrap();
    bench.controls.fail(1, Fault::Stall);
    let error = staged.run(true, &NEVER_STOP).unwrap_err();
    assert_eq!(error.code(), Code::DeviceStalled, "{error}");
    // The checkpoint limits the wait itself.
    let longest = bench.controls.seen().stalled_wait_ms_max;
    assert!((1..=1_000).contains(&longest), "{longest} ms");
}

/// While one proof fails the device permanently, other waiting proofs get an error,
/// too, and none hangs.
#[test]
fn a_lost_device_ends_every_wait() {
    for fault in [Fault::Sticky, Fault::Kernel, Fault::Stall] {
        let small = Arc::new(Small::new(SMALL, 35));
        let witness = small.witness(36, 5);
        let bench = Bench::new(PLENTY, &options(2));
        let circuit = bench.circuit(&small);
        prove(&circuit, &witness).unwrap();
        bench.controls.fail(25, fault);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        if let Err(error) = prove(&circuit, &witness) {
                            assert!(expected(fault).0.contains(&error.code()), "{error}");
                        }
                    }
                });
            }
        });
        let error = prove(&circuit, &witness).unwrap_err();
        assert_eq!(error.code(), Code::DeviceLost, "{fault:?}: {error}");
        bench.assert_at_rest();
    }
}
