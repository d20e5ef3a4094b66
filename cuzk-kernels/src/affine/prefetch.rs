//! Asking for memory before it is needed.

#![allow(unsafe_code)] // prefetch instructions take raw addresses

/// Asks for the cache lines of a value; nothing happens where there is no
/// such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start: *const i8 = std::ptr::from_ref(value).cast();
        // SAFETY: a prefetch touches nothing, and the address is within the value.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
