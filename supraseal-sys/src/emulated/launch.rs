//! Launches of the emulated kernels, and their counts.

/// Returns the number of differences that the self-test finds.
pub fn self_test(rounds: u32) -> Option<u32> {
    let mut failures = 0;
    let error = super::cuzk_emulated_self_test(rounds, &mut failures);
    (error == 0).then_some(failures)
}

/// Launches each kernel once, without an effect.
pub fn load_kernels() -> i32 {
    super::cuzk_emulated_load_kernels()
}

/// Returns the number of kernels, by their type, that this process has launched so far.
pub fn kernels_launched() -> u32 {
    super::cuzk_emulated_kernels_launched()
}

/// Returns the number of blocks of kernels that this process has run so far.
pub fn blocks_run() -> u64 {
    super::cuzk_emulated_blocks_run()
}

/// Replaces each word by the sum of the words before it.
pub fn scan(words: &mut [u32]) -> i32 {
    super::call_scan(words)
}
