//! The circuits of the kinds without values, for compiling and recording.

use blstrs::Scalar;
use cuzk_memory::{Checkpoint, NEVER_STOP};
use cuzk_pce::{ErasedCircuit, Program, R1cs, RecordError};

use super::{porep, snap_deals, window_post, winning_post};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::tree::with_tree;

/// Returns the circuit of `id`, without values.
///
/// # Errors
///
/// [`Error::Synthesis`] when there is no circuit.
pub fn blank(id: CircuitId) -> Result<ErasedCircuit<'static, Scalar>, Error> {
    let size = id.sector_size;
    match id.kind {
        ProofKind::Porep => with_tree!(size, porep::blank(size)),
        ProofKind::WinningPost => with_tree!(size, winning_post::blank(size)),
        ProofKind::WindowPost => with_tree!(size, window_post::blank(size)),
        ProofKind::SnapDeals => Ok(with_tree!(size, snap_deals::blank(size))),
    }
}

/// Compiles the circuit of `id`.
///
/// # Errors
///
/// [`Error::Synthesis`] when the circuit fails.
pub fn compile(id: CircuitId) -> Result<Program<Scalar>, Error> {
    compile_while(id, &NEVER_STOP)
}

/// Compiles the circuit of `id`. It passes `checkpoint` before every few thousand rows.
///
/// # Errors
///
/// As [`compile`], and [`Error::Stopped`].
pub fn compile_while(id: CircuitId, checkpoint: &Checkpoint<'_>) -> Result<Program<Scalar>, Error> {
    cuzk_pce::compile_while(blank(id)?, checkpoint).map_err(|problem| match problem {
        RecordError::Stopped => Error::Stopped,
        problem => Error::synthesis("compile", &problem),
    })
}

/// Records the rows of the circuit of `id` in plain form. It has a thousand times the size
/// of the compiled form: 570 MB for a PoRep of 2 KiB, 27.6 GB at 32 GiB.
///
/// # Errors
///
/// [`Error::Synthesis`] when the circuit fails.
pub fn record(id: CircuitId) -> Result<R1cs<Scalar>, Error> {
    cuzk_pce::record(blank(id)?).map_err(|problem| Error::synthesis("record", &problem))
}

/// Returns the name of a row of the circuit of `id`: the challenge, the layer or the step of a
/// path that it is about. None if the circuit has no such row. It takes less time than compiling
/// the rows before it. See [`cuzk_pce::row_name`].
///
/// # Errors
///
/// [`Error::Synthesis`] when the circuit fails.
pub fn row_name(id: CircuitId, row: usize) -> Result<Option<String>, Error> {
    row_name_while(id, row, &NEVER_STOP)
}

/// Returns the name of a row of the circuit of `id`, as [`row_name`]. It passes `checkpoint`
/// before every few thousand rows.
///
/// # Errors
///
/// As [`row_name`], and [`Error::Stopped`].
pub fn row_name_while(
    id: CircuitId,
    row: usize,
    checkpoint: &Checkpoint<'_>,
) -> Result<Option<String>, Error> {
    let named = cuzk_pce::row_name_while(blank(id)?, row, checkpoint);
    named.map_err(|problem| match problem {
        RecordError::Stopped => Error::Stopped,
        problem => Error::synthesis("row_name", &problem),
    })
}
