//! The proof that the processor has the instructions of `ifma`.

/// Proof that this processor has the instructions that `ifma` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ifma(());

impl Ifma {
    /// Returns the proof, if the processor has the instructions.
    pub(crate) fn detect() -> Option<Ifma> {
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512ifma")
            && is_x86_feature_detected!("avx512vbmi2");
        detected.then_some(Ifma(()))
    }
}
