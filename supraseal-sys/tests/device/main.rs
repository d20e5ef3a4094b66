//! The host side of the device prover, on a double: its results, its use of memory, and
//! its behaviour when a device fails.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "helpers of tests"
)]

mod failures;
mod fixture;
mod memory;
mod order;
mod proofs;
mod residency;
mod runtime;
mod stops;

use cuzk_memory::{Checkpoint, NEVER_STOP};
use fixture::{Packed, Size, Small};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use supraseal_sys::GpuResources;
use supraseal_sys::device::{
    BG2, CircuitSource, DeviceCircuit, DeviceOptions, DevicePlan, DeviceProver, DeviceSums,
    ProofFigures,
};
use supraseal_sys::double::{self, Controls};
use supraseal_sys::{Code, Status};

const SMALL: Size = Size {
    log_domain: 7,
    num_inputs: 3,
    num_aux: 300,
};

/// A circuit of which much is enqueued if pieces are short.
const LONG: Size = Size {
    log_domain: 4,
    num_inputs: 2,
    num_aux: 2_560,
};

/// Memory in which all points of a small circuit stay.
const PLENTY: u64 = 1 << 30;

fn options(workers: u32) -> DeviceOptions {
    DeviceOptions {
        memory_bytes: None,
        workers,
        b_g2: BG2::Cpu,
        stall_limit: Duration::from_secs(60),
    }
}

/// A double with its controls.
struct Bench {
    controls: Arc<Controls>,
    resources: Arc<GpuResources>,
    device: Arc<DeviceProver>,
}

impl Bench {
    fn new(memory_bytes: u64, options: &DeviceOptions) -> Self {
        Self::with(GpuResources::new().unwrap(), memory_bytes, options)
    }

    fn with(resources: GpuResources, memory_bytes: u64, options: &DeviceOptions) -> Self {
        let controls = Controls::new().unwrap();
        let resources = Arc::new(resources);
        let device =
            double::open(memory_bytes, options, Arc::clone(&resources), &controls).unwrap();
        Self {
            controls,
            resources,
            device: Arc::new(device),
        }
    }

    /// Opens a double with pieces of points as short as possible.
    fn with_short_pieces(options: &DeviceOptions) -> Self {
        Self::with_slow_stream(options, 0)
    }

    /// Opens such a double on which the stream of this number is behind all others; 0
    /// means none.
    fn with_slow_stream(options: &DeviceOptions, number: u64) -> Self {
        const LOG_SHORTEST: u32 = 6;
        let controls = Controls::new().unwrap();
        controls.slow_stream(number);
        let resources = Arc::new(GpuResources::new().unwrap());
        let device = double::open_in_pieces(
            PLENTY,
            options,
            LOG_SHORTEST,
            Arc::clone(&resources),
            &controls,
        )
        .unwrap();
        Self {
            controls,
            resources,
            device: Arc::new(device),
        }
    }

    fn circuit(&self, small: &Arc<Small>) -> Arc<DeviceCircuit> {
        let source = Arc::clone(small) as Arc<dyn CircuitSource>;
        Arc::new(DeviceCircuit::new(Arc::clone(&self.device), source).unwrap())
    }

    /// Asserts that nobody holds the lock or keeps the throttle raised.
    fn assert_at_rest(&self) {
        assert_eq!(self.resources.throttle().load(Ordering::Acquire), 0);
        drop(self.resources.lock_gpu().unwrap());
    }
}

fn prove(
    circuit: &Arc<DeviceCircuit>,
    witness: &Arc<Packed>,
) -> Result<(DeviceSums, ProofFigures), Status> {
    prove_with(circuit, witness, &NEVER_STOP)
}

/// Sleeps until `is_so` returns true, for half a minute at most: a test that fails is
/// more useful than one that hangs.
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let asked = Instant::now();
    while !is_so() {
        assert!(asked.elapsed() < Duration::from_secs(30), "not so: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Computes all five MSMs, unless `checkpoint` stops it.
fn prove_with(
    circuit: &Arc<DeviceCircuit>,
    witness: &Arc<Packed>,
    checkpoint: &Checkpoint<'_>,
) -> Result<(DeviceSums, ProofFigures), Status> {
    let staged = circuit.stage(Arc::clone(witness) as _, checkpoint)?;
    staged.run(true, checkpoint)?.finish(checkpoint)
}

/// Returns the bytes that are streamed of a circuit whose other points all stay.
fn b_g1_bytes(small: &Small) -> u64 {
    small.points.b_g1.len() as u64
}

/// Returns the least memory in which a circuit is proved.
fn least_bytes(small: &Small, options: &DeviceOptions) -> u64 {
    let shape = small.arrays().shape().unwrap();
    let fits = |bytes| {
        let memory_bytes = Some(bytes);
        DevicePlan::new(
            &shape,
            &DeviceOptions {
                memory_bytes,
                ..*options
            },
        )
        .is_ok()
    };
    let (mut low, mut high) = (1, PLENTY);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
