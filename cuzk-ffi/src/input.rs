//! Pointers of the caller's.
//!
//! Not what is behind them: that is read elsewhere. The invariant: a NULL, a pointer that is
//! not aligned and a length that nothing can have are errors, and nothing is read there.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::error::Failure;

/// The most bytes of a request. The largest request of a network has 52 MB. The limit finds
/// lengths that are mistakes, such as a negative number.
pub(crate) const REQUEST_BYTES_MAX: usize = 1 << 30;

/// The most bytes of a configuration, or of a job's options.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Returns the bytes that the caller lends for the call. `name` is the argument's.
///
/// # Errors
/// More bytes than `most`; NULL with a length.
///
/// # Safety
/// If `start` is not NULL, `len` bytes can be read there until the call ends, and nobody
/// changes them.
pub(crate) unsafe fn bytes<'a>(
    name: &str,
    start: *const c_void,
    (len, most): (usize, usize),
) -> Result<&'a [u8], Failure> {
    if len > most {
        let problem = format!("{name}: its length is {len} bytes; at most {most} can be read");
        return Err(Failure::argument(&problem));
    }
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        let problem = format!("{name}: NULL with a length of {len}; give the bytes' address");
        return Err(Failure::argument(&problem));
    }
    // SAFETY: the caller promises it; the length is below `isize::MAX`.
    Ok(unsafe { std::slice::from_raw_parts(start.cast(), len) })
}

/// Returns the text that the caller lends for the call.
///
/// # Errors
/// As [`bytes`]; a text that is not UTF-8.
///
/// # Safety
/// As [`bytes`].
pub(crate) unsafe fn text<'a>(
    name: &str,
    start: *const c_void,
    len: usize,
) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(name, start, (len, TEXT_BYTES_MAX)) }?;
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Failure::argument(&format!("{name}: no UTF-8 at byte {at}; send it as UTF-8"))
    })
}

/// Returns the object behind a handle.
///
/// # Errors
/// NULL, or an address at which no such object can be.
///
/// # Safety
/// The handle is NULL, or the library made it and has not freed it until the call ends.
pub(crate) unsafe fn object<'a, T>(name: &str, handle: *const T) -> Result<&'a T, Failure> {
    check(name, handle)?;
    // SAFETY: it is not NULL, so it is of the library's making.
    Ok(unsafe { &*handle })
}

/// A variable of the caller's that takes a result.
pub(crate) struct Place<T>(NonNull<T>);

impl<T> Place<T> {
    /// Writes `first` into the variable, so that it has a value also after a failure.
    ///
    /// # Errors
    /// NULL, or an address at which no such variable can be.
    ///
    /// # Safety
    /// If `place` is not NULL, a `T` can be written there until the call ends, and nobody
    /// else reads or writes it.
    pub(crate) unsafe fn new(name: &str, place: *mut T, first: T) -> Result<Self, Failure> {
        check(name, place)?;
        let place = NonNull::new(place).ok_or_else(|| null(name))?;
        let place = Self(place);
        place.set(first);
        Ok(place)
    }

    /// Writes the variable.
    pub(crate) fn set(&self, value: T) {
        // SAFETY: who made this promised that a `T` can be written there.
        unsafe { self.0.write(value) }
    }
}

fn check<T>(name: &str, pointer: *const T) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    if !pointer.is_aligned() {
        let problem = format!("{name}: {pointer:p} is not the address of one");
        return Err(Failure::argument(&problem));
    }
    Ok(())
}

fn null(name: &str) -> Failure {
    Failure::argument(&format!("{name}: NULL; give its address"))
}
