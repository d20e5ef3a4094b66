//! What waits for what on a device.

use super::*;

/// Of which the transforms take long beside the coming of a short piece.
const LARGE: Size = Size {
    log_domain: 14,
    num_inputs: 3,
    num_aux: 200,
};

/// The least memory in which a circuit is proved with short pieces.
fn least_with_short_pieces(small: &Arc<Small>) -> u64 {
    const TOO_LITTLE: u64 = 100_000;
    let asked = DeviceOptions {
        memory_bytes: Some(TOO_LITTLE),
        ..options(1)
    };
    let device = Bench::with_short_pieces(&asked).device;
    let error = DeviceCircuit::new(device, Arc::clone(small) as _).unwrap_err();
    assert_eq!(error.code(), Code::CircuitTooLarge, "{error}");
    let mut words = error.message().split_whitespace();
    words.find_map(|word| word.parse().ok()).unwrap()
}

/// Pieces come to where the transforms' vectors were, but not before the transforms
/// have passed.
#[test]
fn pieces_wait_for_the_transforms() {
    let small = Arc::new(Small::new(LARGE, 77));
    let memory_bytes = Some(least_with_short_pieces(&small));
    let bench = Bench::with_short_pieces(&DeviceOptions {
        memory_bytes,
        ..options(1)
    });
    let circuit = bench.circuit(&small);
    assert!(circuit.plan().resident_points.h < small.points.h.len() as u64 / 96);
    for seed in 0..3 {
        let witness = small.witness(seed, 7);
        assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
    }
}
