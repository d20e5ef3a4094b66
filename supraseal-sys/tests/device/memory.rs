//! Device memory is a budget that is taken once.

use super::*;
use cuzk_memory::NEVER_STOP;
use supraseal_sys::device::{CircuitShape, Queries};

/// Returns the shape of a PoRep partition of a 32 GiB sector, in round numbers: 47 GiB
/// of points.
fn porep_32gib() -> CircuitShape {
    CircuitShape {
        log_domain: 27,
        rows: 130_000_000,
        num_inputs: 60,
        num_aux: 129_000_000,
        max_wide: 2_500_000,
        num_b_inputs: 60,
        num_coefficients: 4_000,
        num_parts: 60_000,
        num_items: 800_000,
        num_shapes: 30_000,
        num_unit_rows: 1_500_000,
        num_references: 600_000,
        num_points: Queries {
            h: (1 << 27) - 1,
            l: 129_000_000,
            a: 120_000_000,
            b_g1: 55_000_000,
            b_g2: 55_000_000,
        },
    }
}

fn plan(shape: &CircuitShape, options: DeviceOptions, bytes: u64) -> Result<DevicePlan, Status> {
    let memory_bytes = Some(bytes);
    DevicePlan::new(
        shape,
        &DeviceOptions {
            memory_bytes,
            ..options
        },
    )
}

fn check(plan: &DevicePlan, shape: &CircuitShape, options: DeviceOptions, bytes: u64) {
    assert!(plan.total_bytes <= bytes, "{plan:?}");
    let parts = plan.worker_bytes * u64::from(options.workers)
        + plan.circuit_bytes
        + plan.region_bytes
        + plan.resident_bytes;
    assert_eq!(plan.total_bytes, parts, "{plan:?}");
    let domain_bytes = 32u64 << shape.log_domain;
    assert!(plan.region_bytes >= 3 * domain_bytes, "{plan:?}");
    assert!(
        plan.worker_bytes >= u64::from(shape.max_wide) * 32,
        "{plan:?}"
    );
    let (resident, points) = (plan.resident_points, shape.num_points);
    for (resident, points) in [
        (resident.h, points.h),
        (resident.l, points.l),
        (resident.a, points.a),
        (resident.b_g1, points.b_g1),
        (resident.b_g2, points.b_g2),
    ] {
        assert!(resident <= points, "{plan:?}");
        // Pieces begin at whole words.
        assert!(resident == points || resident % 64 == 0, "{plan:?}");
    }
    let g1 = resident.h + resident.l + resident.a + resident.b_g1;
    let bytes_resident = g1 * 96 + resident.b_g2 * 192;
    assert!(plan.resident_bytes >= bytes_resident, "{plan:?}");
    assert!(plan.resident_bytes <= bytes_resident + 5 * 256, "{plan:?}");
    assert!(plan.b_g2_on_device || resident.b_g2 == 0, "{plan:?}");
    assert_eq!(resident.b_g1, 0, "{plan:?}");
    let pinned = plan.worker_bytes * u64::from(options.workers) + plan.piece_points * 2 * 96;
    assert_eq!(plan.pinned_bytes, pinned, "{plan:?}");
    assert!(plan.piece_points <= 1 << 22, "{plan:?}");
}

/// The seed's Phase 10 ran out of memory with three workers on 16 GB. The reason: one
/// worker's staged data was in the memory of another's kernels. Here the plan contains
/// three workers' parts and the device region together.
#[test]
fn three_workers_prove_32gib_on_16_gb() {
    let shape = porep_32gib();
    for workers in 1..=3 {
        let bytes = 16_000_000_000;
        let plan = plan(&shape, options(workers), bytes).unwrap();
        check(&plan, &shape, options(workers), bytes);
    }
}

#[test]
fn a_large_card_keeps_every_point() {
    let shape = porep_32gib();
    let plan = plan(&shape, options(3), 80_000_000_000).unwrap();
    check(&plan, &shape, options(3), 80_000_000_000);
    assert_eq!(plan.resident_points, all_that_stay(&shape, false));
}

fn all_that_stay(shape: &CircuitShape, b_g2_on_device: bool) -> Queries<u64> {
    let points = shape.num_points;
    let b_g2 = if b_g2_on_device { points.b_g2 } else { 0 };
    Queries {
        b_g1: 0,
        b_g2,
        ..points
    }
}

/// The MSM in G2 runs on the device if its points do not evict others.
#[test]
fn the_sum_in_g2_is_where_there_is_room() {
    let shape = porep_32gib();
    let auto = DeviceOptions {
        b_g2: BG2::Auto,
        ..options(2)
    };
    for (gigabytes, expected) in [(16, false), (24, false), (60, false), (80, true)] {
        let bytes = gigabytes * 1_000_000_000;
        let plan = plan(&shape, auto, bytes).unwrap();
        check(&plan, &shape, auto, bytes);
        assert_eq!(plan.b_g2_on_device, expected, "{gigabytes} GB: {plan:?}");
    }
}

/// If a circuit's points do not all fit, a small circuit fits beside it.
#[test]
fn a_large_circuit_leaves_room_for_a_small_one() {
    let (large, small) = (porep_32gib(), shape(17, 97, 10, 3));
    for gigabytes in [16, 24, 40] {
        let bytes = gigabytes * 1_000_000_000;
        let [large, small] = [large, small].map(|shape| plan(&shape, options(2), bytes).unwrap());
        let block = small.circuit_bytes + small.resident_bytes;
        assert!(large.total_bytes + block <= bytes, "{large:?} {small:?}");
    }
}

/// Over all sizes of memory, from too little to plenty, and over shapes of all sizes: a
/// plan stays within its memory. Otherwise its error names the needed memory, and that
/// much is enough.
#[test]
fn plans_hold_for_every_size() {
    for log_domain in 1..=27 {
        for workers in [1, 3, 16] {
            for b_g2 in [BG2::Cpu, BG2::Device, BG2::Auto] {
                let options = DeviceOptions {
                    b_g2,
                    ..options(workers)
                };
                for (aux, wide, inputs) in [(1, 0, 1), (40, 2, 3), (97, 97, 40)] {
                    sweep(&shape(log_domain, aux, wide, inputs), options);
                }
            }
        }
    }
}

/// Returns a shape with variables and wide values in per cent of the domain.
fn shape(log_domain: u32, aux: u64, wide: u64, inputs: u32) -> CircuitShape {
    let domain = 1u64 << log_domain;
    let num_inputs = inputs.min(domain as u32 - 1);
    let num_aux = (domain * aux / 100) as u32;
    let variables = u64::from(num_inputs + num_aux);
    CircuitShape {
        log_domain,
        rows: domain as u32 - num_inputs,
        num_inputs,
        num_aux,
        max_wide: (domain * wide / 100) as u32,
        num_b_inputs: num_inputs / 2,
        num_coefficients: 10,
        num_parts: 20,
        num_items: 50,
        num_shapes: 10,
        num_unit_rows: 30,
        num_references: 5,
        num_points: Queries {
            h: domain - 1,
            l: num_aux.into(),
            a: variables,
            b_g1: variables / 2 + u64::from(num_inputs / 2),
            b_g2: variables / 2 + u64::from(num_inputs / 2),
        },
    }
}

fn sweep(shape: &CircuitShape, options: DeviceOptions) {
    let error = plan(shape, options, 1).unwrap_err();
    assert_eq!(error.code(), Code::CircuitTooLarge, "{shape:?}");
    let least: u64 = error
        .message()
        .split_whitespace()
        .find_map(|word| word.parse().ok())
        .unwrap();
    assert!(plan(shape, options, least - 1).is_err(), "{shape:?}");
    let mut bytes = least;
    for step in 0..24 {
        let plan = plan(shape, options, bytes).unwrap();
        check(&plan, shape, options, bytes);
        bytes += bytes / 7 + step * 1009;
    }
    let plan = plan(shape, options, 1 << 40).unwrap();
    assert_eq!(plan.b_g2_on_device, options.b_g2 != BG2::Cpu);
    assert_eq!(
        plan.resident_points,
        all_that_stay(shape, plan.b_g2_on_device)
    );
}

#[test]
fn shapes_that_cannot_be_are_errors() {
    let good = porep_32gib();
    // The only case in which the number of inputs fits all other sizes.
    let too_many_inputs = CircuitShape {
        log_domain: 31,
        rows: 1,
        num_inputs: (1 << 30) + 1,
        num_aux: 1000,
        max_wide: 1000,
        num_points: Queries {
            h: (1 << 31) - 1,
            l: 1000,
            a: (1 << 30) + 1,
            b_g1: 60,
            b_g2: 60,
        },
        ..good
    };
    let bad: [&dyn Fn(&mut CircuitShape); 15] = [
        &|shape| shape.log_domain = 0,
        &|shape| shape.log_domain = 32,
        &|shape| shape.log_domain = u32::MAX,
        &|shape| shape.rows = 1 << 27,
        &|shape| shape.num_inputs = 0,
        &|shape| shape.num_inputs = u32::MAX,
        &|shape| *shape = too_many_inputs,
        &|shape| shape.num_aux = u32::MAX,
        &|shape| shape.max_wide = u32::MAX,
        &|shape| shape.num_b_inputs = 61,
        &|shape| shape.num_points.h = 1 << 27,
        &|shape| shape.num_points.l = 1,
        &|shape| shape.num_points.a = 1 << 40,
        &|shape| shape.num_points.a = 59,
        &|shape| shape.num_points.b_g2 = 1,
    ];
    for change in bad {
        let mut shape = good;
        change(&mut shape);
        let error = plan(&shape, options(1), u64::MAX / 2).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{shape:?}: {error}");
    }
    for workers in [0, u32::MAX] {
        let error = plan(&good, options(workers), u64::MAX / 2).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
}

/// Phase 10 as a run: three workers, and a card with exactly the memory of the plan, in
/// which almost all points are streamed.
#[test]
fn three_workers_share_a_card_that_is_just_large_enough() {
    let asked = options(3);
    let small = Arc::new(Small::new(SMALL, 21));
    let least = least_bytes(&small, &asked);
    let bench = Bench::new(
        least,
        &DeviceOptions {
            memory_bytes: Some(least),
            ..asked
        },
    );
    let circuit = bench.circuit(&small);
    let witnesses: Vec<_> = (0..3).map(|seed| small.witness(seed, 6)).collect();
    let expected: Vec<_> = witnesses
        .iter()
        .map(|witness| small.sums(witness))
        .collect();
    std::thread::scope(|scope| {
        for caller in 0..6 {
            let (circuit, witnesses, expected) = (&circuit, &witnesses, &expected);
            scope.spawn(move || {
                for round in 0..5 {
                    let which = (caller + round) % 3;
                    let (sums, _) = prove(circuit, &witnesses[which]).unwrap();
                    assert_eq!(sums, expected[which]);
                }
            });
        }
    });
    assert!(bench.controls.seen().bytes_max <= least);
    bench.assert_at_rest();
}

/// A worker that is staged and goes no further delays only callers that need a worker
/// when none is free.
#[test]
fn a_staged_worker_does_not_starve_the_others() {
    let small = Arc::new(Small::new(SMALL, 22));
    let witness = small.witness(23, 6);
    let bench = Bench::new(PLENTY, &options(3));
    let circuit = bench.circuit(&small);
    let idle: Vec<_> = (0..2)
        .map(|_| {
            circuit
                .stage(Arc::clone(&witness) as _, &NEVER_STOP)
                .unwrap()
        })
        .collect();
    let expected = small.sums(&witness);
    for _ in 0..5 {
        assert_eq!(prove(&circuit, &witness).unwrap().0, expected);
    }
    for staged in idle {
        assert_eq!(
            staged
                .run(true, &NEVER_STOP)
                .unwrap()
                .finish(&NEVER_STOP)
                .unwrap()
                .0,
            expected
        );
    }
}

/// Steady state: proofs allocate nothing, and never wait for the whole device.
#[test]
fn proofs_allocate_nothing_on_the_device() {
    let small = Arc::new(Small::new(SMALL, 24));
    let witness = small.witness(25, 6);
    let asked = options(2);
    let least = least_bytes(&small, &asked);
    for memory_bytes in [PLENTY, least] {
        let memory_bytes = Some(memory_bytes);
        let bench = Bench::new(
            PLENTY,
            &DeviceOptions {
                memory_bytes,
                ..asked
            },
        );
        let circuit = bench.circuit(&small);
        prove(&circuit, &witness).unwrap();
        let before = bench.controls.seen();
        for _ in 0..20 {
            prove(&circuit, &witness).unwrap();
        }
        let after = bench.controls.seen();
        assert_eq!(after.allocations, before.allocations);
        assert_eq!(after.bytes, before.bytes);
        assert_eq!(after.drains, 0);
        let controls = Arc::clone(&bench.controls);
        drop((circuit, bench));
        assert_eq!(
            (controls.seen().live_allocations, controls.seen().drains),
            (0, 1)
        );
    }
}

/// Returns circuits of three sizes.
fn three_sizes(bench: &Bench) -> [(Arc<DeviceCircuit>, Arc<Packed>, DeviceSums); 3] {
    [40, 300, 600].map(|num_aux| {
        let small = Arc::new(Small::new(Size { num_aux, ..SMALL }, num_aux.into()));
        let witness = small.witness(26, 6);
        (
            bench.circuit(&small),
            Arc::clone(&witness),
            small.sums(&witness),
        )
    })
}

/// Proofs of several circuits allocate nothing either, once there was one of each, in
/// whichever order.
#[test]
fn proofs_by_turns_allocate_nothing() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let bench = Bench::new(PLENTY, &options(2));
        let known = three_sizes(&bench);
        let prove_all = || {
            for which in order {
                let (circuit, witness, sums) = &known[which];
                assert_eq!(prove(circuit, witness).unwrap().0, *sums);
            }
        };
        prove_all();
        let allocations = bench.controls.seen().allocations;
        for _ in 0..3 {
            prove_all();
        }
        assert_eq!(bench.controls.seen().allocations, allocations, "{order:?}");
    }
}

/// A caller that drops a circuit is no longer charged for it.
#[test]
fn pinned_memory_goes_with_the_circuits_that_need_it() {
    let bench = Bench::new(PLENTY, &options(2));
    let live = || bench.controls.seen().live_allocations;
    let allocations = || bench.controls.seen().allocations;
    let [small, medium, large] = three_sizes(&bench);
    let prove_it = |(circuit, witness, sums): &(Arc<DeviceCircuit>, _, _)| {
        assert_eq!(prove(circuit, witness).unwrap().0, *sums);
    };
    // Only the device's memory.
    assert_eq!(live(), 1);
    prove_it(&large);
    prove_it(&small);
    assert_eq!(live(), 2);
    drop(large);
    assert_eq!(live(), 1);
    // Of a circuit that was there before, and still is.
    prove_it(&small);
    assert_eq!(live(), 2);
    prove_it(&medium);
    // The memory of a circuit that needs less.
    let before = allocations();
    drop(small);
    prove_it(&medium);
    assert_eq!((live(), allocations()), (2, before));
    drop(medium);
    assert_eq!(live(), 1);
}

/// But not while a proof uses it.
#[test]
fn pinned_memory_stays_while_a_worker_uses_it() {
    let bench = Bench::new(PLENTY, &options(2));
    let allocations = || bench.controls.seen().allocations;
    let [(small, witness, sums), _, large] = three_sizes(&bench);
    prove(&large.0, &large.1).unwrap();
    let staged = small.stage(Arc::clone(&witness) as _, &NEVER_STOP).unwrap();
    let before = allocations();
    drop(large);
    let ran = staged.run(true, &NEVER_STOP).unwrap();
    assert_eq!(ran.finish(&NEVER_STOP).unwrap().0, sums);
    assert_eq!(allocations(), before);
    // With the next proof, although that is a proof of the present circuit.
    for _ in 0..2 {
        assert_eq!(prove(&small, &witness).unwrap().0, sums);
        assert_eq!(allocations(), before + 1);
    }
    assert_eq!(bench.controls.seen().live_allocations, 2);
    drop(small);
    assert_eq!(bench.controls.seen().live_allocations, 1);
}
