//! The circuits that stay on a device, and those that are evicted.

use super::*;
use cuzk_memory::NEVER_STOP;
use supraseal_sys::double::Fault;

const FRAME_AND_MORE: u64 = 1 << 20;

/// A circuit with a witness and its MSMs.
struct Known {
    circuit: Arc<DeviceCircuit>,
    witness: Arc<Packed>,
    sums: DeviceSums,
}

impl Known {
    fn new(bench: &Bench, size: Size, seed: u64) -> Self {
        let small = Arc::new(Small::new(size, seed));
        let witness = small.witness(seed, 7);
        Self {
            circuit: bench.circuit(&small),
            sums: small.sums(&witness),
            witness,
        }
    }

    fn block_bytes(&self) -> u64 {
        let plan = self.circuit.plan();
        plan.circuit_bytes + plan.resident_bytes
    }

    /// Returns true if a proof of it uploads more than its witness.
    fn comes_anew(&self, bench: &Bench) -> bool {
        let before = bench.controls.seen().uploaded_bytes;
        let staged = self
            .circuit
            .stage(Arc::clone(&self.witness) as _, &NEVER_STOP)
            .unwrap();
        let (sums, figures) = staged
            .run(true, &NEVER_STOP)
            .unwrap()
            .finish(&NEVER_STOP)
            .unwrap();
        assert_eq!(sums, self.sums);
        let uploaded = bench.controls.seen().uploaded_bytes - before;
        uploaded > figures.uploaded_bytes + figures.streamed_bytes
    }
}

fn bench(memory_bytes: u64) -> Bench {
    Bench::new(memory_bytes, &options(1))
}

/// Returns memory for the blocks of exactly `count` circuits of this size.
fn room_for(count: u64, size: Size) -> u64 {
    let bench = bench(PLENTY);
    let known = Known::new(&bench, size, 0);
    let frame = known.circuit.plan().total_bytes - known.block_bytes();
    frame + count * known.block_bytes() + known.block_bytes() / 2
}

#[test]
fn circuits_that_fit_together_come_once() {
    let bench = bench(PLENTY);
    let sizes = [4, 9, 7].map(|log_domain| Size {
        log_domain,
        ..SMALL
    });
    let known = sizes.map(|size| Known::new(&bench, size, 40));
    for known in &known {
        assert!(known.comes_anew(&bench));
    }
    for round in 0..6 {
        assert!(!known[round * 2 % 3].comes_anew(&bench));
    }
}

#[test]
fn the_least_recently_used_goes() {
    let bench = bench(room_for(2, SMALL));
    // All have the same size to the byte.
    let [a, b, c] = [0; 3].map(|seed| Known::new(&bench, SMALL, seed));
    for (which, comes) in [
        (&a, true),
        (&b, true),
        (&a, false),
        // b is evicted.
        (&c, true),
        (&a, false),
        (&c, false),
        // a is evicted.
        (&b, true),
        (&c, false),
        (&a, true),
    ] {
        assert_eq!(which.comes_anew(&bench), comes);
    }
}

#[test]
fn circuits_that_do_not_fit_together_take_turns() {
    let bench = bench(room_for(1, SMALL));
    let [a, b] = [44, 45].map(|seed| Known::new(&bench, SMALL, seed));
    for _ in 0..3 {
        assert!(a.comes_anew(&bench));
        assert!(b.comes_anew(&bench));
        assert!(!b.comes_anew(&bench));
    }
}

/// While points are decoded, the next ones are on their way: a device that stands still
/// then has two pieces of them.
#[test]
fn pieces_that_come_to_stay_overlap() {
    let small = Arc::new(Small::new(SMALL, 59));
    let witness = small.witness(60, 7);
    let pieces = (small.points.h.len() + small.points.l.len()) as u64;
    let points = pieces + small.points.a.len() as u64;
    // Returns the pieces that are uploaded if the device stands still at one call after
    // another.
    let comes = |call| {
        let bench = bench(PLENTY);
        let circuit = bench.circuit(&small);
        bench.controls.fail(call, Fault::Stall);
        let staged = circuit.stage(Arc::clone(&witness) as _, &NEVER_STOP);
        let is_whole = staged.is_ok();
        drop(staged);
        (bench.controls.seen().uploaded_bytes, is_whole)
    };
    let witness_bytes = {
        let bench = bench(PLENTY);
        prove(&bench.circuit(&small), &witness)
            .unwrap()
            .1
            .uploaded_bytes
    };
    let arrays = comes(0).0 - witness_bytes - points;
    let mut has_come = Vec::new();
    for call in 1.. {
        let (uploaded, is_whole) = comes(call);
        if is_whole {
            break;
        }
        if uploaded > arrays {
            has_come.push(uploaded - arrays);
        }
    }
    assert_eq!(has_come.iter().min(), Some(&pieces));
}

/// A large circuit's frame may reach the place of a small one's block.
#[test]
fn a_frame_drives_out_what_is_in_it() {
    let large = Size {
        log_domain: 9,
        ..SMALL
    };
    let bench = bench(room_for(1, large) + FRAME_AND_MORE / 16);
    let smalls: Vec<_> = (46..56)
        .map(|seed| Known::new(&bench, SMALL, seed))
        .collect();
    for small in &smalls {
        assert!(small.comes_anew(&bench));
    }
    let large = Known::new(&bench, large, 57);
    assert!(large.comes_anew(&bench));
    assert!(!large.comes_anew(&bench));
    for small in smalls.iter().rev() {
        small.comes_anew(&bench);
        assert!(!small.comes_anew(&bench));
    }
    large.comes_anew(&bench);
    assert!(!large.comes_anew(&bench));
}

#[test]
fn a_circuit_that_ends_leaves_its_room() {
    let bench = bench(room_for(2, SMALL));
    let a = Known::new(&bench, SMALL, 58);
    assert!(a.comes_anew(&bench));
    for seed in 59..63 {
        assert!(Known::new(&bench, SMALL, seed).comes_anew(&bench));
    }
    assert!(!a.comes_anew(&bench));
}

/// A circuit whose upload was not completed is uploaded anew, and one that was there
/// before stays.
#[test]
fn a_circuit_that_fails_to_come_comes_anew() {
    let bench = bench(PLENTY);
    let [a, b] = [63, 64].map(|seed| Known::new(&bench, SMALL, seed));
    assert!(a.comes_anew(&bench));
    for call in (1..60).step_by(3) {
        bench.controls.fail(call, Fault::Error);
        let result = b.circuit.stage(Arc::clone(&b.witness) as _, &NEVER_STOP);
        bench.controls.fail(0, Fault::Nothing);
        match result {
            Ok(staged) => drop(staged),
            Err(error) => assert_eq!(error.code(), Code::DeviceError),
        }
        assert!(!a.comes_anew(&bench));
    }
    b.comes_anew(&bench);
    assert!(!b.comes_anew(&bench));
    bench.assert_at_rest();
}

/// Several callers of several circuits, with room for some of them.
#[test]
fn many_callers_find_their_circuit() {
    let bench = Bench::new(room_for(2, SMALL), &options(2));
    let known: Vec<_> = (65..68)
        .map(|seed| Known::new(&bench, SMALL, seed))
        .collect();
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let (known, bench) = (&known, &bench);
            scope.spawn(move || {
                for round in 0..6 {
                    known[(caller + round) % 3].comes_anew(bench);
                }
            });
        }
    });
    bench.assert_at_rest();
}

/// A circuit whose upload fails, also for want of pinned memory, leaves the circuits
/// that are there unchanged.
#[test]
fn a_circuit_that_could_not_come_leaves_the_others() {
    let smalls = [4, 6].map(|log_domain| {
        let size = Size {
            log_domain,
            num_inputs: 2,
            num_aux: 15 << (log_domain - 2),
        };
        let small = Arc::new(Small::new(size, 46));
        let witness = small.witness(46, 7);
        (small.sums(&witness), small, witness)
    });
    for call in 1.. {
        let bench = bench(PLENTY);
        let [there, larger] = smalls.each_ref().map(|(sums, small, witness)| Known {
            circuit: bench.circuit(small),
            witness: Arc::clone(witness),
            sums: *sums,
        });
        assert!(larger.circuit.plan().pinned_bytes > there.circuit.plan().pinned_bytes);
        assert!(there.comes_anew(&bench));
        bench.controls.fail(call, Fault::OutOfMemory);
        let calls = bench.controls.seen().calls;
        let staged = larger
            .circuit
            .stage(Arc::clone(&larger.witness) as _, &NEVER_STOP);
        let reached = bench.controls.seen().calls - calls >= call;
        bench.controls.fail(0, Fault::Nothing);
        if !reached {
            drop(staged.unwrap());
            assert!(call > 10);
            break;
        }
        assert_eq!(staged.unwrap_err().code(), Code::DeviceOutOfMemory);
        there.comes_anew(&bench);
        larger.comes_anew(&bench);
        bench.assert_at_rest();
    }
}
