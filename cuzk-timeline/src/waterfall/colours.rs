//! The colours of stages and of the picture.

use crate::Stage;

pub(super) const IDLE: &str = "#f4978e";
pub(super) const INK: &str = "#263238";
pub(super) const GRID: &str = "#e0e4e8";

/// Returns the colour of a stage. Waits are grey in queues and yellow on threads.
/// Witness and evaluation are green, the device is blue, and later stages are violet.
/// Other machines are cyan. Background work is brown and grey.
pub(super) fn colour(stage: Stage) -> &'static str {
    match stage {
        Stage::DecodeWait => "#dfe4ea",
        Stage::QueueWait => "#cbd3dc",
        Stage::ReadyWait => "#b4bfcb",
        Stage::FinishWait => "#9aa8b7",
        Stage::MemoryWait => "#d9cfc4",
        Stage::LockWait => "#fbd7a0",
        Stage::BG2Wait => "#f6c177",
        Stage::Decode => "#c9a27e",
        Stage::Circuit => "#e0c9a6",
        Stage::Params => "#d7b98e",
        Stage::Witness => "#66bb6a",
        Stage::CircuitWitness => "#43a047",
        Stage::Columns => "#7cb9e8",
        Stage::Evaluate => "#aed581",
        Stage::Prepare => "#80cbc4",
        Stage::Staging => "#4db6ac",
        Stage::Device => "#5c9ee6",
        Stage::Quotient => "#90caf9",
        Stage::Msm => "#bbdefb",
        Stage::Finish => "#a877c9",
        Stage::BG2 => "#ce93d8",
        Stage::Assemble => "#e1bee7",
        Stage::Verify => "#7986cb",
        Stage::Elsewhere => "#4dd0e1",
        Stage::Dealloc => "#a1887f",
        Stage::Multiples => "#bcaaa4",
        Stage::Digests => "#cfd8dc",
    }
}
