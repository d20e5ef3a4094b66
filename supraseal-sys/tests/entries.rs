//! All expected kernels are in the PTX of this build.
#![cfg(feature = "cuda")]

/// If `CUZK_WRITE_ENTRIES` is set to a path, writes the list there instead.
#[test]
fn the_kernels_are_those_committed() {
    let committed = include_str!("../cuda/entries.txt");
    let compiled = include_str!(env!("CUZK_PTX_ENTRIES"));
    if let Some(path) = std::env::var_os("CUZK_WRITE_ENTRIES") {
        std::fs::write(path, compiled).unwrap();
        return;
    }
    assert_eq!(
        committed, compiled,
        "cuda/entries.txt is not the list of kernels in the PTX: if that is meant, run this \
         test with CUZK_WRITE_ENTRIES=$PWD/supraseal-sys/cuda/entries.txt and commit the result"
    );
}
