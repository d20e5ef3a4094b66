//! The C++ side of the proving engine and its FFI: the resources that the
//! workers of a device share, the B query's multiplication in G2 on the CPU,
//! and the freeing of large buffers in the background. It knows curves and
//! threads; it knows nothing of circuits, requests or configuration.
//!
//! # Reading order
//!
//! | file | what |
//! |---|---|
//! | `wrapper.h` | the C ABI, the whole of it |
//! | `call.rs` | what its calls write, make and ask |
//! | [`Status`] (`status.rs`, `csrc/status.*`) | the one place that turns a status into an error; the guard around every `extern "C"` body |
//! | [`GpuResources`] (`resources.rs`, `csrc/resources.*`) | the lock of a device and its bandwidth throttle |
//! | [`set_gpu_threads`] (`pool.rs`, `csrc/pool.*`) | the threads that all devices share |
//! | [`b_g2_msm`] (`b_g2.rs`, `csrc/b_g2_msm.*`), [`naive`] | the multiplication, and its slow twin |
//! | [`dealloc`] (`dealloc.rs`, `csrc/dealloc.*`) | freeing, one value at a time on each side |
//! | [`device`] (`device.rs`, `device/`) | proofs on a device: the host side of what follows |
//! | `csrc/plan.*` | how a device's memory is used: a pure function |
//! | `csrc/device_api.hpp`, `device_cuda.cpp`, `device_double.cpp` | what is asked of a device; CUDA's runtime; a double in host memory, for tests |
//! | `csrc/device.*`, `slots.hpp`, `pinned.hpp`, `device_circuit.*`, `device_proof.*` | the device, who may use it and its pinned memory, what stays on it, and one proof |
//! | `csrc/b_g2_packed.*` | the multiplication in G2 over encoded points and a packed witness |
//! | `cuda/kernels.hpp` | what the kernels compute |
//! | `build.rs`, `build/nvcc.rs` | how all of it is compiled, and where nvcc is |
//!
//! # Invariants
//!
//! 1. No C++ exception crosses the FFI: every `extern "C"` function is
//!    `noexcept`, and one that can fail returns a status with a message.
//! 2. The throttle is a count of the bandwidth-bound sections running now.
//!    Whoever raises it lowers it on every exit, and nothing sets it.
//! 3. At most one C++ buffer and one Rust value are being freed at a time, and
//!    what waits to be freed is bounded.
//! 4. The size of the thread pool is decided once a process.
//! 5. Nothing that a background thread touches is destroyed when the process
//!    ends.
//! 6. All memory of a device is taken when it is opened, and its lock is held
//!    for the device region of a proof only.
//! 7. `unsafe` is in `bindings.rs` (generated), `call.rs`, `resources.rs`,
//!    `pool.rs`, `b_g2.rs`, `dealloc.rs`, `device.rs` and its parts, `double.rs`,
//!    `test_hooks.rs` and `emulated.rs`.
#![deny(unsafe_code)]

mod b_g2;
#[cfg(not(feature = "bindgen"))]
#[rustfmt::skip]
#[allow(unsafe_code, missing_docs, non_camel_case_types, unreachable_pub, dead_code)] // generated
mod bindings;
#[cfg(feature = "bindgen")]
#[allow(
    unsafe_code,
    missing_docs,
    non_camel_case_types,
    unreachable_pub,
    dead_code
)] // generated
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}
mod call;
pub mod dealloc;
pub mod device;
#[cfg(feature = "test-hooks")]
pub mod double;
#[cfg(feature = "test-hooks")]
pub mod emulated;
pub mod naive;
mod pool;
mod resources;
mod status;
#[cfg(feature = "test-hooks")]
pub mod test_hooks;

pub use b_g2::{ScratchBytes, b_g2_msm, b_g2_msm_scratch_bytes};
pub use pool::{gpu_threads, set_gpu_threads};
pub use resources::{GpuLock, GpuResources, ThrottleGuard};
pub use status::{Code, Status};
