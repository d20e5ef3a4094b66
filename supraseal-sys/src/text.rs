//! Text that C++ wrote.

use core::ffi::c_char;

/// Returns the text in a C++ array, up to its NUL or the array's end.
pub(crate) fn text(chars: &[c_char]) -> String {
    let bytes = chars.iter().flat_map(|char| char.to_ne_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
