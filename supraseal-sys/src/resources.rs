//! The handle of C++'s `gpu_resources`: one for each device, shared by its workers. It
//! holds no device memory and no threads.
//!
//! Invariants: the handle owns the C++ object. So the throttle and the guards that it
//! lends cannot outlive it. A guard is released on the thread that took it.
//! Slices are passed as they are, in types of one layout.
#![allow(unsafe_code)] // Owns a C++ object and aliases its atomic.

use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering};

use blst::{blst_fr, blst_p2, blst_p2_affine};
use blstrs::{G2Affine, G2Projective, Scalar};
use cuzk_memory::{Checkpoint, NEVER_STOP};
use group::Group;

use crate::abi::{callback, made};
use crate::bindings as sys;
use crate::status::{Status, check};

// blstrs declares each of the three transparent over blst's type.
const _: () = assert!(size_of::<G2Affine>() == size_of::<blst_p2_affine>());
const _: () = assert!(align_of::<G2Affine>() == align_of::<blst_p2_affine>());
const _: () = assert!(size_of::<G2Projective>() == size_of::<blst_p2>());
const _: () = assert!(align_of::<G2Projective>() == align_of::<blst_p2>());
const _: () = assert!(size_of::<Scalar>() == size_of::<blst_fr>());
const _: () = assert!(align_of::<Scalar>() == align_of::<blst_fr>());

// C++ asserts this of its std::atomic<int>, too.
const _: () = assert!(size_of::<AtomicI32>() == sys::CUZK_THROTTLE_BYTES as usize);
const _: () = assert!(align_of::<AtomicI32>() == sys::CUZK_THROTTLE_ALIGN as usize);

/// The resources that the workers of one device share: the lock around its kernels, and
/// the count of memory-bandwidth-bound sections that run beside them.
///
/// # Threads
///
/// Lend it to as many threads as there are workers. Each of them may read and raise the
/// throttle at any time.
#[derive(Debug)]
pub struct GpuResources {
    raw: NonNull<sys::gpu_resources>,
}

// SAFETY: the C++ object has no thread affinity of its own. A held lock has, but its
// guard borrows the handle and is not Send. So the handle can move only while no guard
// exists. If a guard was forgotten, the destructor leaves the held mutex alone.
unsafe impl Send for GpuResources {}
// SAFETY: all state behind a shared handle is an atomic or a mutex.
unsafe impl Sync for GpuResources {}

impl GpuResources {
    /// Allocates the resources of one device, with the throttle at zero.
    ///
    /// # Errors
    ///
    /// If memory is exhausted.
    pub fn new() -> Result<Self, Status> {
        Self::create(ptr::null())
    }

    /// Allocates the resources of one more device of the machine. It has a lock of its
    /// own, but this one's throttle, because memory bandwidth belongs to the machine.
    /// The count lives as long as the last device that shares it.
    ///
    /// # Errors
    ///
    /// If memory is exhausted.
    pub fn beside(&self) -> Result<Self, Status> {
        Self::create(self.raw())
    }

    fn create(beside: *const sys::gpu_resources) -> Result<Self, Status> {
        // SAFETY: `beside` is null or lives as long as the call. The call makes
        // resources if its status is OK.
        let raw = unsafe { made(|out| sys::cuzk_gpu_resources_create(beside, out))? };
        Ok(Self { raw })
    }

    /// Returns the number of bandwidth-bound sections that run now. Above zero, other
    /// threads should yield. This is C++'s own `std::atomic<int>`, not a copy.
    #[must_use]
    pub fn throttle(&self) -> &AtomicI32 {
        // SAFETY: the object lives as long as `self`. Its atomic has the size,
        // alignment and lock-freedom of an AtomicI32 (asserted on both sides). Both
        // languages access it with atomic instructions only.
        unsafe { AtomicI32::from_ptr(sys::cuzk_gpu_resources_throttle(self.raw())) }
    }

    /// Raises the throttle by one until the guard is dropped. For callers whose section
    /// consists of several calls, such as an MSM over chunks of bases.
    pub fn raise_throttle(&self) -> ThrottleGuard<'_> {
        ThrottleGuard::raise(self.throttle())
    }

    /// Waits for the lock of the device and holds it until the guard is dropped.
    ///
    /// # Errors
    ///
    /// [`Code::GpuLockHeld`](crate::Code::GpuLockHeld) if this thread holds the lock
    /// already; it would wait for itself.
    pub fn lock_gpu(&self) -> Result<GpuLock<'_>, Status> {
        self.lock_gpu_while(&NEVER_STOP)
    }

    /// Waits for the lock like [`lock_gpu`](Self::lock_gpu), but no longer than
    /// until `checkpoint` is cancelled. It is asked every millisecond or so.
    ///
    /// # Errors
    ///
    /// [`Code::Stopped`](crate::Code::Stopped), and those of
    /// [`lock_gpu`](Self::lock_gpu).
    pub fn lock_gpu_while(&self, checkpoint: &Checkpoint<'_>) -> Result<GpuLock<'_>, Status> {
        // SAFETY: the object lives as long as `self`, and the checkpoint as long
        // as the call.
        check(&unsafe { sys::cuzk_gpu_lock(self.raw(), callback(checkpoint)) })?;
        Ok(GpuLock {
            resources: self,
            on_this_thread: PhantomData,
        })
    }

    /// Returns `Σ scalars[i] · bases[i]`. C++ compares the lengths.
    pub(crate) fn b_g2_msm(
        &self,
        bases: &[G2Affine],
        scalars: &[Scalar],
    ) -> Result<G2Projective, Status> {
        let mut sum = G2Projective::identity();
        // SAFETY: the pointers are those of live slices with their own lengths and
        // of a writable point, in types of one layout (asserted above), and C++
        // keeps none of them.
        check(&unsafe {
            sys::cuzk_b_g2_msm(
                self.raw(),
                bases.as_ptr().cast(),
                bases.len(),
                scalars.as_ptr().cast(),
                scalars.len(),
                (&raw mut sum).cast(),
            )
        })?;
        Ok(sum)
    }

    pub(crate) fn raw(&self) -> *mut sys::gpu_resources {
        self.raw.as_ptr()
    }
}

impl Drop for GpuResources {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed once. No borrow is left, so only
        // a forgotten guard can still hold the mutex, which C++ checks.
        unsafe { sys::cuzk_gpu_resources_destroy(self.raw()) }
    }
}

/// Holds the lock of a device. C++ requires that the thread that locked also unlocks,
/// so it cannot be sent to another thread:
///
/// ```compile_fail,E0277
/// let resources = supraseal_sys::GpuResources::new().unwrap();
/// let lock = resources.lock_gpu().unwrap();
/// std::thread::scope(|s| s.spawn(move || drop(lock)));
/// ```
///
/// Nor can it outlive the resources:
///
/// ```compile_fail,E0505
/// let resources = supraseal_sys::GpuResources::new().unwrap();
/// let lock = resources.lock_gpu().unwrap();
/// drop(resources);
/// drop(lock);
/// ```
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct GpuLock<'a> {
    resources: &'a GpuResources,
    on_this_thread: PhantomData<*mut ()>,
}

impl Drop for GpuLock<'_> {
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock, and is on the thread that took it, because
        // it is not Send.
        unsafe { sys::cuzk_gpu_unlock(self.resources.raw()) }
    }
}

/// Keeps a throttle raised by one. Nested and concurrent guards add up.
#[derive(Debug)]
#[must_use = "the throttle is lowered when the guard is dropped"]
pub struct ThrottleGuard<'a> {
    throttle: &'a AtomicI32,
}

impl<'a> ThrottleGuard<'a> {
    /// Raises `throttle` by one.
    pub fn raise(throttle: &'a AtomicI32) -> Self {
        throttle.fetch_add(1, Ordering::AcqRel);
        Self { throttle }
    }
}

impl Drop for ThrottleGuard<'_> {
    fn drop(&mut self) {
        self.throttle.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;
    use cuzk_bounded::BoundedJoin;

    #[test]
    fn guards_add_up_and_lower_on_unwind() {
        let resources = GpuResources::new().unwrap();
        let level = || resources.throttle().load(Ordering::Acquire);
        assert_eq!(level(), 0);
        let outer = resources.raise_throttle();
        let panicked = std::panic::catch_unwind(|| {
            let _inner = resources.raise_throttle();
            assert_eq!(level(), 2);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err());
        assert_eq!(level(), 1);
        drop(outer);
        assert_eq!(level(), 0);
    }

    #[test]
    fn devices_have_throttles_of_their_own_unless_they_are_beside_each_other() {
        let level = |device: &GpuResources| device.throttle().load(Ordering::Acquire);
        let first = GpuResources::new().unwrap();
        let (beside, other) = (first.beside().unwrap(), GpuResources::new().unwrap());
        let raised = beside.raise_throttle();
        assert_eq!([&first, &beside, &other].map(level), [1, 1, 0]);
        let more = first.raise_throttle();
        assert_eq!([&first, &beside, &other].map(level), [2, 2, 0]);
        // Each device has its own lock.
        let locked = first.lock_gpu().unwrap();
        drop(beside.lock_gpu().unwrap());
        drop((locked, more, raised));
        // The count outlives the resources that it was made with.
        drop(first);
        let _raised = beside.raise_throttle();
        assert_eq!(level(&beside), 1);
    }

    #[test]
    fn the_lock_excludes_other_threads() {
        let resources = GpuResources::new().unwrap();
        let inside = AtomicI32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _lock = resources.lock_gpu().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
        });
    }

    #[test]
    fn a_thread_that_waits_is_not_passed_by_one_that_comes_back() {
        let resources = GpuResources::new().unwrap();
        for _ in 0..20 {
            let held = resources.lock_gpu().unwrap();
            let (waits, turns) = (AtomicI32::new(0), AtomicI32::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    // It is asked while it waits.
                    let never = Checkpoint::asking(|| {
                        waits.store(1, Ordering::Release);
                        false
                    });
                    let lock = resources.lock_gpu_while(&never).unwrap();
                    turns.fetch_add(1, Ordering::AcqRel);
                    drop(lock);
                });
                while waits.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                drop(held);
                let _again = resources.lock_gpu().unwrap();
                assert_eq!(turns.load(Ordering::Acquire), 1);
            });
        }
    }

    #[test]
    fn a_wait_for_the_lock_can_be_stopped() {
        let resources = GpuResources::new().unwrap();
        let held = resources.lock_gpu().unwrap();
        std::thread::scope(|scope| {
            let waits = || {
                let asked = AtomicI32::new(0);
                let fourth = Checkpoint::asking(|| asked.fetch_add(1, Ordering::Relaxed) >= 3);
                let error = resources.lock_gpu_while(&fourth).unwrap_err();
                (error.code(), asked.load(Ordering::Relaxed))
            };
            assert_eq!(
                scope.spawn(waits).join_bounded().unwrap(),
                (Code::Stopped, 4)
            );
        });
        drop(held);
        // A free lock is not waited for.
        let cancelled = Checkpoint::asking(|| true);
        drop(resources.lock_gpu_while(&cancelled).unwrap());
    }

    #[test]
    fn locking_twice_on_a_thread_is_an_error_and_keeps_the_lock() {
        let resources = GpuResources::new().unwrap();
        let lock = resources.lock_gpu().unwrap();
        for _ in 0..2 {
            assert_eq!(resources.lock_gpu().unwrap_err().code(), Code::GpuLockHeld);
        }
        drop(lock);
        assert!(resources.lock_gpu().is_ok());
    }

    #[test]
    fn a_forgotten_lock_does_not_end_in_undefined_behaviour() {
        let resources = GpuResources::new().unwrap();
        std::mem::forget(resources.lock_gpu().unwrap());
        assert_eq!(resources.lock_gpu().unwrap_err().code(), Code::GpuLockHeld);
        drop(resources);
    }
}
