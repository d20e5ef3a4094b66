//! Groth16 parameters.
/// Placeholder until the parameters are written.
#[derive(Debug, thiserror::Error)]
pub enum ParamsError {}
