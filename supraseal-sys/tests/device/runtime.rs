//! The proofs with another runtime in the place of CUDA's: the calls that are made of
//! it, and the handling of its errors.

use super::*;
use cuzk_memory::NEVER_STOP;
use std::sync::{Mutex, PoisonError};

use cuzk_bounded::BoundedJoin;
use supraseal_sys::double::cuda::{self, Failure};

/// There is one runtime in the process.
static RUNTIME: Mutex<()> = Mutex::new(());

struct OnCuda {
    device: Arc<DeviceProver>,
    circuit: Arc<DeviceCircuit>,
}

fn open(ordinal: u32, memory_bytes: Option<u64>) -> Result<Arc<DeviceProver>, Status> {
    let resources = Arc::new(GpuResources::new().unwrap());
    let options = DeviceOptions {
        memory_bytes,
        ..options(2)
    };
    Ok(Arc::new(cuda::open(ordinal, &options, resources)?))
}

impl OnCuda {
    fn new(ordinal: u32, small: &Arc<Small>, memory_bytes: Option<u64>) -> Self {
        let device = open(ordinal, memory_bytes).unwrap();
        let source = Arc::clone(small) as Arc<dyn CircuitSource>;
        let circuit = DeviceCircuit::new(Arc::clone(&device), source).unwrap();
        Self {
            device,
            circuit: Arc::new(circuit),
        }
    }
}

/// Points that stay and points that are streamed, on either of two devices at once.
/// Each wait sees "not ready" first, and all copied memory is pinned.
#[test]
fn proofs_come_out_and_leave_nothing() {
    let _one = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let small = Arc::new(Small::new(SMALL, 90));
    let witness = small.witness(91, 4);
    let sums = small.sums(&witness);
    let least = least_bytes(&small, &options(2));
    for memory_bytes in [None, Some(least)] {
        let devices = [0, 1].map(|ordinal| OnCuda::new(ordinal, &small, memory_bytes));
        std::thread::scope(|scope| {
            for on in &devices {
                scope.spawn(|| {
                    for _ in 0..3 {
                        assert_eq!(prove(&on.circuit, &witness).unwrap().0, sums);
                        // Otherwise the next launch would be taken for a failure.
                        assert_eq!(cuda::seen().last_error_of_this_thread, 0);
                    }
                });
            }
        });
        // The devices have CUDA's order.
        let names = devices.each_ref().map(|on| on.device.info().unwrap().name);
        assert_eq!(names, ["fake 0", "fake 1"]);
        assert_ne!(cuda::seen().live, 0);
        drop(devices);
        assert_eq!(cuda::seen().live, 0);
    }
}

/// Runs `work` on a thread of its own, which has selected no device.
fn apart(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(work).join_bounded().unwrap());
}

/// A thread that has selected no device frees the memory of one, and starts no other.
#[test]
fn what_a_device_has_is_freed_on_it() {
    let _one = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let small = Arc::new(Small::new(SMALL, 94));
    let witness = small.witness(95, 4);
    let mut devices = Vec::new();
    apart(|| {
        devices.extend([0, 1].map(|ordinal| OnCuda::new(ordinal, &small, None)));
        for on in &devices {
            prove(&on.circuit, &witness).unwrap();
        }
    });
    // Of a circuit that needs more pinned memory.
    let size = Size {
        num_aux: 600,
        ..SMALL
    };
    let larger = Arc::new(Small::new(size, 96));
    let source = Arc::clone(&larger) as Arc<dyn CircuitSource>;
    let circuit = Arc::new(DeviceCircuit::new(Arc::clone(&devices[0].device), source).unwrap());
    assert!(circuit.plan().pinned_bytes > devices[0].circuit.plan().pinned_bytes);
    apart(|| {
        prove(&circuit, &larger.witness(97, 4)).unwrap();
    });
    drop(circuit);
    assert_ne!(cuda::seen().live, 0);
    apart(|| devices.clear());
    assert_eq!(cuda::seen().live, 0);
}

/// A thread that comes after the device was given up frees its memory on it, too. Only
/// the memory that the device may still write to is kept.
#[test]
fn what_a_stalled_device_has_is_freed_on_it() {
    let _one = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let small = Arc::new(Small::new(SMALL, 98));
    let witness = small.witness(99, 4);
    let mut stalled = None;
    apart(|| {
        let options = DeviceOptions {
            stall_limit: Duration::from_millis(200),
            ..options(1)
        };
        let resources = Arc::new(GpuResources::new().unwrap());
        let device = Arc::new(cuda::open(0, &options, resources).unwrap());
        let source = Arc::clone(&small) as Arc<dyn CircuitSource>;
        let circuit = Arc::new(DeviceCircuit::new(Arc::clone(&device), source).unwrap());
        let staged = circuit
            .stage(Arc::clone(&witness) as _, &NEVER_STOP)
            .unwrap();
        cuda::fail(1, Failure::Stall);
        let error = staged.run(true, &NEVER_STOP).unwrap_err();
        assert_eq!(error.code(), Code::DeviceStalled, "{error}");
        stalled = Some(OnCuda { device, circuit });
    });
    apart(|| drop(stalled));
    // The arena and the pinned memory.
    let live = cuda::seen().live;
    cuda::fail(0, Failure::Other);
    assert_eq!(live, 2);
}

/// One call after another fails. It fails once, and the next proof does not see it; or
/// permanently, and the next proof gets the error.
#[test]
fn an_error_of_the_context_is_told_from_another() {
    let _one = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let size = Size {
        log_domain: 4,
        num_inputs: 2,
        num_aux: 80,
    };
    let small = Arc::new(Small::new(size, 92));
    let witness = small.witness(93, 4);
    let sums = small.sums(&witness);
    for failure in [Failure::NoMemory, Failure::Context] {
        let of_context = failure == Failure::Context;
        for call in (1..).step_by(5) {
            let on = OnCuda::new(0, &small, None);
            let before = cuda::seen().calls;
            cuda::fail(call, failure);
            let result = prove(&on.circuit, &witness);
            let reached = cuda::seen().calls - before >= call;
            let code = match &result {
                Ok((got, _)) => {
                    assert_eq!(*got, sums);
                    None
                }
                Err(error) => Some(error.code()),
            };
            let expected = if of_context {
                vec![Code::DeviceLost]
            } else {
                vec![Code::DeviceOutOfMemory, Code::OutOfMemory]
            };
            assert!(
                code.is_none_or(|code| expected.contains(&code)),
                "call {call}: {code:?}"
            );
            if !reached {
                cuda::fail(0, Failure::Other);
            }
            let next = prove(&on.circuit, &witness);
            match next {
                Ok((got, _)) => assert_eq!(got, sums),
                Err(error) => assert_eq!(
                    (error.code(), of_context),
                    (Code::DeviceLost, true),
                    "call {call}: {error}"
                ),
            }
            cuda::fail(0, Failure::Other);
            drop(on);
            if !of_context {
                assert_eq!(cuda::seen().live, 0, "call {call}");
            }
            if !reached {
                assert!(call > 50);
                break;
            }
        }
    }
}

#[test]
fn an_ordinal_that_is_none_is_an_error() {
    let _one = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let error = open(2, None).unwrap_err();
    assert_eq!(error.code(), Code::NoDevice, "{error}");
    assert!(error.message().contains("CUDA_VISIBLE_DEVICES"), "{error}");
    assert_eq!(cuda::seen().live, 0);
}

/// A driver and a program can fail to fit together in several ways. Each has its status
/// and its advice, when devices are counted, opened and started.
#[test]
fn what_is_wrong_with_a_driver_is_told() {
    let _one = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(cuda::device_count().unwrap(), 2);
    let table = [
        (
            Failure::NoDriver,
            Code::NoDevice,
            "there is no NVIDIA driver",
        ),
        (Failure::OldDriver, Code::DriverTooOld, "update the NVIDIA"),
        (
            Failure::OtherDriver,
            Code::DriverTooOld,
            "update the NVIDIA",
        ),
        (
            Failure::NotCompatible,
            Code::DriverTooOld,
            "update the NVIDIA",
        ),
        (Failure::NoImage, Code::NoKernelImage, "SUPRASEAL_CUDA_ARCH"),
        (Failure::NewPtx, Code::NoKernelImage, "SUPRASEAL_CUDA_ARCH"),
        (Failure::BadPtx, Code::NoKernelImage, "SUPRASEAL_CUDA_ARCH"),
        (Failure::NoDevice, Code::NoDevice, "CUDA_VISIBLE_DEVICES"),
        (Failure::Other, Code::DeviceError, "as a test asked"),
    ];
    for (failure, code, said) in table {
        let told = |result: Result<(), Status>, what: &str| {
            let error = result.unwrap_err();
            assert_eq!(error.code(), code, "{failure:?}, {what}: {error}");
            assert!(error.message().contains(said), "{what}: {error}");
        };
        cuda::fail(1, failure);
        if failure == Failure::NoDevice {
            // Zero devices are not a failure.
            assert_eq!(cuda::device_count().unwrap(), 0);
        } else {
            told(cuda::device_count().map(drop), "counting");
        }
        // The device is selected, its context is made, and then it is used.
        for call in [1, 2, 3, 5] {
            cuda::fail(call, failure);
            told(open(0, None).map(drop), "opening");
            assert_eq!(cuda::seen().last_error_of_this_thread, 0);
        }
        cuda::fail(0, Failure::Other);
        assert_eq!(cuda::seen().live, 0);
        drop(open(0, None).unwrap());
    }
}
