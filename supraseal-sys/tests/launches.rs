//! The kernels that are launched, and those of them that do anything. They are counted
//! in the whole process, so these tests have a binary of their own.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "helpers of tests"
)]

#[path = "device/fixture.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod fixture;

use cuzk_memory::{Checkpoint, NEVER_STOP};
use fixture::{Size, Small};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use supraseal_sys::device::{BG2, DeviceCircuit, DeviceOptions, DeviceProver};
use supraseal_sys::double::{self, Controls};
use supraseal_sys::emulated::{blocks_run, kernels_launched, load_kernels};
use supraseal_sys::{Code, GpuResources};

/// Lets one test run at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a device on which that stream is behind all others; 0 means none.
fn open(slow_stream: u64) -> (Arc<DeviceProver>, Arc<Controls>) {
    let controls = Controls::new().unwrap();
    controls.slow_stream(slow_stream);
    let options = DeviceOptions {
        memory_bytes: None,
        workers: 1,
        b_g2: BG2::Cpu,
        stall_limit: Duration::from_secs(60),
    };
    let resources = Arc::new(GpuResources::new().unwrap());
    let device = double::open(1 << 30, &options, resources, &controls).unwrap();
    (Arc::new(device), controls)
}

/// A driver loads a kernel when it is first launched, which takes time and memory. Both
/// are to be spent before the first proof.
#[test]
fn a_device_launches_every_kernel_when_it_is_opened() {
    let _alone = alone();
    drop(open(0));
    let all = include_str!("../cuda/entries.txt").lines().count();
    assert_eq!(kernels_launched() as usize, all);
}

#[test]
fn kernels_that_are_loaded_do_nothing() {
    let _alone = alone();
    let before = blocks_run();
    assert_eq!(load_kernels(), 0);
    assert_eq!(blocks_run(), before);
}

/// However many kernels were enqueued when a proof was stopped, those that have not
/// begun do nothing.
#[test]
fn a_stop_passes_the_kernels_that_are_enqueued() {
    /// The first stream that is made is that of the transforms.
    const TRANSFORMS: u64 = 1;
    let _alone = alone();
    let size = Size {
        log_domain: 7,
        num_inputs: 3,
        num_aux: 300,
    };
    let small = Arc::new(Small::new(size, 101));
    let witness = small.witness(102, 4);
    let (device, controls) = open(TRANSFORMS);
    let circuit = Arc::new(DeviceCircuit::new(device, Arc::clone(&small) as _).unwrap());
    let stage = || {
        circuit
            .stage(Arc::clone(&witness) as _, &NEVER_STOP)
            .unwrap()
    };
    // The circuit is uploaded by then.
    drop(stage().run(true, &NEVER_STOP).unwrap());
    let staged = stage();
    let before = blocks_run();
    // At this moment the transforms are enqueued and no MSM is.
    let asked = AtomicUsize::new(0);
    let second = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) >= 1);
    let error = staged.run(true, &second).unwrap_err();
    assert_eq!(error.code(), Code::Stopped, "{error}");
    assert_eq!(controls.seen().under_way, 0);
    assert_eq!(blocks_run(), before);
}
