//! What waits for what on a device.

use super::*;

/// Of which the transforms take long beside the coming of a short piece.
const LARGE: Size = Size {
    log_domain: 14,
    num_inputs: 3,
    num_aux: 200,
};

/// Of which short pieces come to where the transforms' vectors were.
const MEDIUM: Size = Size {
    log_domain: 12,
    num_inputs: 3,
    num_aux: 200,
};

/// The least memory in which a circuit is proved with short pieces.
fn least_with_short_pieces(small: &Arc<Small>, options: &DeviceOptions) -> u64 {
    const TOO_LITTLE: u64 = 100_000;
    let asked = with_memory(TOO_LITTLE, options);
    let device = Bench::with_short_pieces(&asked).device;
    let error = DeviceCircuit::new(device, Arc::clone(small) as _).unwrap_err();
    assert_eq!(error.code(), Code::CircuitTooLarge, "{error}");
    let mut words = error.message().split_whitespace();
    words.find_map(|word| word.parse().ok()).unwrap()
}

fn with_memory(memory_bytes: u64, options: &DeviceOptions) -> DeviceOptions {
    DeviceOptions {
        memory_bytes: Some(memory_bytes),
        ..*options
    }
}

/// Pieces come to where the transforms' vectors were, but not before the transforms
/// have passed.
#[test]
fn pieces_wait_for_the_transforms() {
    let small = Arc::new(Small::new(LARGE, 77));
    let least = least_with_short_pieces(&small, &options(1));
    let bench = Bench::with_short_pieces(&with_memory(least, &options(1)));
    let circuit = bench.circuit(&small);
    assert!(circuit.plan().resident_points.h < small.points.h.len() as u64 / 96);
    for seed in 0..3 {
        let witness = small.witness(seed, 7);
        assert_eq!(prove(&circuit, &witness).unwrap().0, small.sums(&witness));
    }
}

/// Does it on one device after another, on each of which another stream is behind all
/// others.
fn with_every_stream_slow(options: &DeviceOptions, run: impl Fn(&Bench, &str)) {
    for stream in 1.. {
        let bench = Bench::with_slow_stream(options, stream);
        if stream > bench.controls.seen().streams {
            assert_ne!(stream, 1);
            return;
        }
        run(&bench, &format!("stream {stream} is slow, {options:?}"));
        bench.assert_at_rest();
    }
}

/// With as few points on the device as can be, and with all that may stay: what others
/// need of a stream they wait for.
#[test]
fn every_stream_may_be_the_slowest() {
    let small = Arc::new(Small::new(MEDIUM, 78));
    let witnesses = [0, 1].map(|seed| small.witness(seed, 7));
    let expected = witnesses.each_ref().map(|witness| small.sums(witness));
    for b_g2 in [BG2::Cpu, BG2::Device] {
        let asked = DeviceOptions { b_g2, ..options(2) };
        for memory_bytes in [least_with_short_pieces(&small, &asked), PLENTY] {
            with_every_stream_slow(&with_memory(memory_bytes, &asked), |bench, case| {
                let sums = prove_side_by_side(&bench.circuit(&small), &witnesses);
                assert_eq!(sums, expected, "{case}");
            });
        }
    }
}

/// Both are staged before the first of them runs.
fn prove_side_by_side(
    circuit: &Arc<DeviceCircuit>,
    witnesses: &[Arc<Packed>; 2],
) -> [DeviceSums; 2] {
    let staged = witnesses
        .each_ref()
        .map(|witness| circuit.stage(Arc::clone(witness) as _, &|| true).unwrap());
    staged.map(|staged| {
        let ran = staged.run(true, &|| true).unwrap();
        ran.finish(&|| true).unwrap().0
    })
}
