//! The order of work on a device.

use super::*;
use cuzk_memory::NEVER_STOP;

/// A circuit whose short pieces are written to the place of the transforms' vectors.
const LARGE: Size = Size {
    log_domain: 14,
    num_inputs: 3,
    num_aux: 200,
};

/// A circuit of which many short pieces are streamed.
const MEDIUM: Size = Size {
    log_domain: 12,
    num_inputs: 3,
    num_aux: 200,
};

/// Returns the least memory in which a circuit is proved with short pieces.
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

/// Calls `run` on one device after another. On each of them another stream is behind
/// all others.
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

/// Pieces are written to the place of the transforms' vectors, but not before the
/// transforms have passed.
#[test]
fn pieces_wait_for_the_transforms() {
    let small = Arc::new(Small::new(LARGE, 77));
    let least = least_with_short_pieces(&small, &options(1));
    let witness = small.witness(0, 7);
    let expected = small.sums(&witness);
    with_every_stream_slow(&with_memory(least, &options(1)), |bench, case| {
        let circuit = bench.circuit(&small);
        assert!(circuit.plan().resident_points.h < small.points.h.len() as u64 / 96);
        assert_eq!(prove(&circuit, &witness).unwrap().0, expected, "{case}");
    });
}

/// Streams wait for the results that they need of other streams. Tested with as few
/// points on the device as possible, and with all that may stay.
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

/// Both proofs are staged before the first of them runs.
fn prove_side_by_side(
    circuit: &Arc<DeviceCircuit>,
    witnesses: &[Arc<Packed>; 2],
) -> [DeviceSums; 2] {
    let staged = witnesses.each_ref().map(|witness| {
        circuit
            .stage(Arc::clone(witness) as _, &NEVER_STOP)
            .unwrap()
    });
    staged.map(|staged| {
        let ran = staged.run(true, &NEVER_STOP).unwrap();
        ran.finish(&NEVER_STOP).unwrap().0
    })
}

/// Streams that share a hardware queue wait for each other, and CUDA has eight queues
/// unless it is configured otherwise.
#[test]
fn streams_are_as_few_for_many_workers() {
    const QUEUES: u64 = 8;
    let streams = |workers| {
        Bench::new(PLENTY, &options(workers))
            .controls
            .seen()
            .streams
    };
    assert_eq!(streams(1), streams(16));
    // Including the stream that CUDA's errors are asked of.
    assert!(streams(16) < QUEUES);
}

/// When a proof is dropped, its witness may be on its way to the place of another
/// circuit's block. So the worker is free for that circuit only when the witness has
/// arrived.
#[test]
fn a_dropped_proof_keeps_its_worker_until_its_witness_has_come() {
    let small = |seed| Arc::new(Small::new(SMALL, seed));
    let (dropped, next) = (small(79), small(80));
    let (lost, witness) = (dropped.witness(81, 1), next.witness(82, 7));
    // The witnesses' stream is made last.
    let streams = Bench::with_short_pieces(&options(1))
        .controls
        .seen()
        .streams;
    let bench = Bench::with_slow_stream(&options(1), streams);
    let (dropped, next) = (bench.circuit(&dropped), bench.circuit(&next));
    let staged = dropped.stage(lost, &NEVER_STOP).unwrap();
    assert_ne!(bench.controls.seen().under_way, 0);
    drop(staged);
    assert_eq!(bench.controls.seen().under_way, 0);
    assert_eq!(prove(&next, &witness).unwrap().0, small(80).sums(&witness));
    bench.assert_at_rest();
}
