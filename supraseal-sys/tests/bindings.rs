//! The committed bindings equal those that bindgen makes of `wrapper.h` now.
#![cfg(feature = "bindgen")]

/// If `CUZK_WRITE_BINDINGS` is set to a path, writes them there instead, for
/// `check-bindings.sh --write`.
#[test]
fn committed_bindings_are_current() {
    let committed = include_str!("../src/bindings.rs");
    let generated = include_str!(env!("CUZK_GENERATED_BINDINGS"));
    if let Some(path) = std::env::var_os("CUZK_WRITE_BINDINGS") {
        std::fs::write(path, generated).unwrap();
        return;
    }
    assert!(
        committed == generated,
        "src/bindings.rs is not what bindgen makes of wrapper.h: \
         run supraseal-sys/check-bindings.sh --write and commit the result"
    );
}
