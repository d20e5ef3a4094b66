//! Proofs that the processor has the instructions of `ifma` or of `avx2`.

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

/// Proof that this processor has the instructions that `avx2` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Returns the proof, if the processor has the instructions.
    pub(crate) fn detect() -> Option<Avx2> {
        let detected = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        detected.then_some(Avx2(()))
    }
}
