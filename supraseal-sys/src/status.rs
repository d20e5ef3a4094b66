//! The failures of the C++ side as a typed error. This is the only place that turns a
//! status into an error. Statuses are made in `csrc/status.cpp`.
//!
//! Invariant: a code that this file does not know is still an error.

use core::fmt;

use crate::bindings as sys;
use crate::text::text;

/// The kind of failure that a [`Status`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// An argument is out of range.
    InvalidArgument,
    /// Two inputs that belong together have different lengths.
    LengthMismatch,
    /// An allocation failed.
    OutOfMemory,
    /// The thread pool runs already, with another number of threads.
    PoolSizeFixed,
    /// The thread pool was used before its size was set.
    PoolNotStarted,
    /// This thread already holds the lock of the device.
    GpuLockHeld,
    /// Another C++ exception; its text is the message.
    Exception,
    /// C++ threw a value that is not an exception.
    UnknownException,
    /// The program was built without the feature `cuda`.
    NoCuda,
    /// There is no such device.
    NoDevice,
    /// The driver does not run this program's version of CUDA.
    DriverTooOld,
    /// The program has no code for this card.
    NoKernelImage,
    /// The device has too little memory.
    DeviceOutOfMemory,
    /// The device failed permanently.
    DeviceLost,
    /// The device did not end its work in time, and was given up.
    DeviceStalled,
    /// Another failure of the device.
    DeviceError,
    /// The device has too little memory for a circuit.
    CircuitTooLarge,
    /// A point of the parameters is not on the curve, or not in its subgroup.
    InvalidPoint,
    /// A step of a proof was called out of order.
    InvalidState,
    /// A checkpoint stopped the proof.
    Stopped,
    /// A code that this version does not know.
    Unknown(i32),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidArgument => "invalid argument",
            Self::LengthMismatch => "length mismatch",
            Self::OutOfMemory => "out of memory",
            Self::PoolSizeFixed => "pool size already fixed",
            Self::PoolNotStarted => "pool not started",
            Self::GpuLockHeld => "device lock already held",
            Self::Exception => "C++ exception",
            Self::UnknownException => "unknown C++ exception",
            Self::NoCuda => "no CUDA in this build",
            Self::NoDevice => "no such device",
            Self::DriverTooOld => "driver too old",
            Self::NoKernelImage => "no code for this card",
            Self::DeviceOutOfMemory => "out of device memory",
            Self::DeviceLost => "device lost",
            Self::DeviceStalled => "device stalled",
            Self::DeviceError => "device error",
            Self::CircuitTooLarge => "circuit too large for the device",
            Self::InvalidPoint => "invalid point",
            Self::InvalidState => "invalid state",
            Self::Stopped => "stopped",
            Self::Unknown(code) => return write!(f, "unknown status {code}"),
        })
    }
}

/// A failure of the C++ side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Status {
    code: Code,
    message: String,
}

impl Status {
    pub(crate) fn new(code: Code, message: String) -> Self {
        Self { code, message }
    }

    /// Returns the failure of a circuit that is too large for any device.
    #[must_use]
    pub fn too_large(message: String) -> Self {
        Self::new(Code::CircuitTooLarge, message)
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the message: the failure, and its remedy if one is known.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Turns a status into a result.
pub(crate) fn check(status: &sys::cuzk_status) -> Result<(), Status> {
    let code = match status.code {
        sys::CUZK_OK => return Ok(()),
        sys::CUZK_INVALID_ARGUMENT => Code::InvalidArgument,
        sys::CUZK_LENGTH_MISMATCH => Code::LengthMismatch,
        sys::CUZK_OUT_OF_MEMORY => Code::OutOfMemory,
        sys::CUZK_POOL_SIZE_FIXED => Code::PoolSizeFixed,
        sys::CUZK_POOL_NOT_STARTED => Code::PoolNotStarted,
        sys::CUZK_GPU_LOCK_HELD => Code::GpuLockHeld,
        sys::CUZK_EXCEPTION => Code::Exception,
        sys::CUZK_UNKNOWN_EXCEPTION => Code::UnknownException,
        sys::CUZK_NO_CUDA => Code::NoCuda,
        sys::CUZK_NO_DEVICE => Code::NoDevice,
        sys::CUZK_DRIVER_TOO_OLD => Code::DriverTooOld,
        sys::CUZK_NO_KERNEL_IMAGE => Code::NoKernelImage,
        sys::CUZK_DEVICE_OUT_OF_MEMORY => Code::DeviceOutOfMemory,
        sys::CUZK_DEVICE_LOST => Code::DeviceLost,
        sys::CUZK_DEVICE_STALLED => Code::DeviceStalled,
        sys::CUZK_DEVICE_ERROR => Code::DeviceError,
        sys::CUZK_CIRCUIT_TOO_LARGE => Code::CircuitTooLarge,
        sys::CUZK_INVALID_POINT => Code::InvalidPoint,
        sys::CUZK_INVALID_STATE => Code::InvalidState,
        sys::CUZK_STOPPED => Code::Stopped,
        code => Code::Unknown(code),
    };
    let message = text(&status.message);
    Err(Status { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: i32, message: &[u8]) -> sys::cuzk_status {
        let mut status = sys::cuzk_status {
            code,
            message: [0; sys::CUZK_MESSAGE_BYTES as usize],
        };
        for (to, from) in status.message.iter_mut().zip(message) {
            *to = core::ffi::c_char::from_ne_bytes([*from]);
        }
        status
    }

    #[test]
    fn ok_is_no_error_whatever_its_message() {
        assert_eq!(check(&status(sys::CUZK_OK, b"left over")), Ok(()));
    }

    #[test]
    fn unknown_codes_are_errors() {
        for code in [i32::MIN, -1, 99, 1000] {
            let error = check(&status(code, b"m")).unwrap_err();
            assert_eq!(error.code(), Code::Unknown(code));
            assert_eq!(error.to_string(), format!("unknown status {code}: m"));
        }
    }

    #[test]
    fn a_message_without_end_or_of_bad_utf8_is_read() {
        let full = [b'x'; sys::CUZK_MESSAGE_BYTES as usize];
        let error = check(&status(sys::CUZK_EXCEPTION, &full)).unwrap_err();
        assert_eq!(error.message().len(), full.len());
        let error = check(&status(sys::CUZK_EXCEPTION, b"a\xffb\0c")).unwrap_err();
        assert_eq!(error.message(), "a\u{fffd}b");
    }
}
