//! What is asked of the engine.
/// Placeholder until requests are written.
#[derive(Debug)]
pub enum ProofRequest {}
