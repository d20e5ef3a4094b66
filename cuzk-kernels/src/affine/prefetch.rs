//! Asking for memory before it is needed.

#![allow(unsafe_code)] // prefetch instructions take raw addresses

/// Asks for the cache lines of a value; nothing happens where there is no
/// such instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    prefetch_to::<T, { std::arch::x86_64::_MM_HINT_T0 }>(value);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Asks for the cache lines of a value that is needed much later. They come to the
/// second-level cache only.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch_early<T>(value: &T) {
    prefetch_to::<T, { std::arch::x86_64::_MM_HINT_T1 }>(value);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_to<T, const HINT: i32>(value: &T) {
    for offset in (0..size_of::<T>()).step_by(64) {
        let start: *const i8 = std::ptr::from_ref(value).cast();
        // SAFETY: a prefetch touches nothing, and the address is within the value.
        unsafe { std::arch::x86_64::_mm_prefetch::<HINT>(start.add(offset)) };
    }
}
