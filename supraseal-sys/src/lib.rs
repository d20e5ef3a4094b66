//! The C++ side of the proving engine, and its FFI:
//!
//! * device provers, and the resources that the workers of a device share;
//! * the MSM of the B query in G2, on the CPU;
//! * the freeing of large buffers in the background.
//!
//! It knows curves and threads. It knows nothing of Filecoin, requests or
//! configuration.
//!
//! # Reading order
//!
//! | file | contents |
//! |---|---|
//! | `wrapper.h` | the whole C ABI |
//! | `abi.rs` | the results and the checkpoints of its calls, and its calls without objects |
//! | [`Status`] (`status.rs`, `csrc/status.*`) | the one place that turns a status into an error; the guard around each `extern "C"` body |
//! | [`GpuResources`] (`resources.rs`, `csrc/resources.*`) | the lock of a device and its bandwidth throttle |
//! | [`set_gpu_threads`] (`pool.rs`, `csrc/pool.*`) | the threads that all devices share |
//! | [`b_g2_msm`] (`b_g2.rs`, `csrc/b_g2_msm.*`), [`naive`] | the MSM in G2, and its slow twin |
//! | [`dealloc`] (`dealloc.rs`, `csrc/dealloc.*`) | freeing, one value at a time on each side |
//! | [`device`] (`device.rs`, `device/`) | proofs on a device: the host side of the files below |
//! | `csrc/plan.*` | the plan of a device's memory: a pure function |
//! | `csrc/device_api.hpp`, `device_cuda.cpp`, `device_double.*`, `double_*` | the operations of a device; CUDA's runtime; a double in host memory, for tests |
//! | `csrc/device.*`, `slots.hpp`, `pinned.hpp`, `device_circuit.*`, `device_proof.*`, `device_msms.*` | the device, the users of it and of its pinned memory, the data that stays on it, one proof, and its MSMs |
//! | `csrc/b_g2_packed.*` | the MSM in G2 over encoded points and a packed witness |
//! | `cuda/kernels.hpp` | the interface of the kernels |
//! | `build.rs`, `build/nvcc.rs` | the compilation of all this, and the search for nvcc |
//!
//! # Invariants
//!
//! 1. No C++ exception crosses the FFI. Each `extern "C"` function is `noexcept`, and
//!    one that can fail returns a status with a message.
//! 2. The throttle counts the bandwidth-bound sections that run now. Code that raises
//!    it lowers it on every exit, and nothing sets it.
//! 3. At most one C++ buffer and one Rust value are being freed at a time. The number
//!    of those that wait is bounded.
//! 4. The size of the thread pool is decided once per process.
//! 5. No object that a background thread uses is destroyed when the process ends.
//! 6. All memory of a device is taken when it is opened. Its lock is held for the
//!    device region of a proof only.
//! 7. `unsafe` is in `bindings.rs` (generated), `abi.rs`, `resources.rs`, `device/objects.rs`,
//!    `hooks.rs` and `emulated.rs`.
//!
//! # Example
//!
//! ```
//! use blstrs::{G2Affine, G2Projective, Scalar};
//! use group::Group;
//! use supraseal_sys::{GpuResources, b_g2_msm};
//!
//! let resources = GpuResources::new()?;
//! let bases = [G2Affine::from(G2Projective::generator()); 3];
//! let scalars = [1, 0, 4].map(Scalar::from);
//! let sum = b_g2_msm(&resources, &bases, &scalars)?;
//! assert_eq!(sum, G2Projective::generator() * Scalar::from(5));
//! # Ok::<(), supraseal_sys::Status>(())
//! ```
#![deny(unsafe_code)]

mod abi;
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
pub mod dealloc;
pub mod device;
#[cfg(feature = "test-hooks")]
pub mod double;
#[cfg(feature = "test-hooks")]
pub mod emulated;
#[cfg(feature = "test-hooks")]
mod hooks;
pub mod naive;
mod pool;
mod resources;
mod status;
#[cfg(feature = "test-hooks")]
pub mod test_hooks;
mod text;

pub use b_g2::{ScratchBytes, b_g2_msm, b_g2_msm_scratch_bytes};
pub use pool::{gpu_threads, set_gpu_threads};
pub use resources::{GpuLock, GpuResources, ThrottleGuard};
pub use status::{Code, Status};

/// True in a build that can prove on a GPU.
pub const PROVES_ON_GPU: bool = cfg!(feature = "cuda");
