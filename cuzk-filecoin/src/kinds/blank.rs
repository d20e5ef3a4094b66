//! The circuits of the kinds without values, for compiling and recording.

use bellperson::Circuit;
use blstrs::Scalar;
use cuzk_memory::{Checkpoint, NEVER_STOP};
use cuzk_pce::{Program, R1cs, RecordError};

use super::visitor::CircuitVisitor;
use super::{porep, snap_deals, window_post, winning_post};
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::tree::with_tree;

/// Hands the circuit of `id`, without values, to `visitor`.
///
/// # Errors
///
/// The visitor's, or [`Error::Synthesis`] when there is no circuit.
pub fn with_blank<V: CircuitVisitor>(id: CircuitId, visitor: V) -> Result<V::Output, Error> {
    let size = id.sector_size;
    match id.kind {
        ProofKind::Porep => with_tree!(size, porep::visit_blank::<V>(size, visitor)),
        ProofKind::WinningPost => {
            with_tree!(size, winning_post::visit_blank::<V>(size, visitor))
        }
        ProofKind::WindowPost => with_tree!(size, window_post::visit_blank::<V>(size, visitor)),
        ProofKind::SnapDeals => with_tree!(size, snap_deals::visit_blank::<V>(size, visitor)),
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
    struct Compile<'a>(&'a Checkpoint<'a>);

    impl CircuitVisitor for Compile<'_> {
        type Output = Program<Scalar>;

        fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<Program<Scalar>, Error> {
            cuzk_pce::compile_while(circuit, self.0).map_err(|problem| match problem {
                RecordError::Stopped => Error::Stopped,
                problem => Error::synthesis("compile", &problem),
            })
        }
    }

    with_blank(id, Compile(checkpoint))
}

/// Records the rows of the circuit of `id` in plain form. It has a thousand times the size
/// of the compiled form: 570 MB for a PoRep of 2 KiB, 27.6 GB at 32 GiB.
///
/// # Errors
///
/// [`Error::Synthesis`] when the circuit fails.
pub fn record(id: CircuitId) -> Result<R1cs<Scalar>, Error> {
    struct Record;

    impl CircuitVisitor for Record {
        type Output = R1cs<Scalar>;

        fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<R1cs<Scalar>, Error> {
            cuzk_pce::record(circuit).map_err(|problem| Error::synthesis("record", &problem))
        }
    }

    with_blank(id, Record)
}

/// Returns the name of a row of the circuit of `id`: the challenge, the layer or the step of a
/// path that it is about. None if the circuit has no such row. It takes about as long as
/// compiling the rows before it. See [`cuzk_pce::row_name`].
///
/// # Errors
///
/// [`Error::Synthesis`] when the circuit fails.
pub fn row_name(id: CircuitId, row: usize) -> Result<Option<String>, Error> {
    struct Name(usize);

    impl CircuitVisitor for Name {
        type Output = Option<String>;

        fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<Option<String>, Error> {
            let named = cuzk_pce::row_name(circuit, self.0);
            named.map_err(|problem| Error::synthesis("row_name", &problem))
        }
    }

    with_blank(id, Name(row))
}
