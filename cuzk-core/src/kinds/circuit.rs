//! A circuit by name: which kind, for which sector size.
//!
//! Not a job: the structure only, without values. The invariant: all jobs with
//! the same [`CircuitId`] share rows, parameters and verifying key.

use std::fmt;

use bellperson::Circuit;
use blstrs::Scalar;
use cuzk_memory::{Checkpoint, NEVER_STOP};
use cuzk_pce::{Program, R1cs, RecordError};
use storage_proofs_core::parameter_cache::{parameter_id, verifying_key_id};

use super::job::synthesis;
use super::{ProofKind, SectorSize, porep, registered, snap_deals, window_post, winning_post};
use crate::Error;
use crate::params::ParameterFiles;

/// The structure that all proofs of one kind and sector size share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// What is proved.
    pub kind: ProofKind,
    /// For sectors of this size.
    pub sector_size: SectorSize,
}

/// Something to do with a circuit whatever its type.
pub trait CircuitVisitor {
    /// What comes of it.
    type Output;

    /// Does it.
    ///
    /// # Errors
    ///
    /// The visitor's own.
    fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<Self::Output, Error>;
}

impl CircuitId {
    /// The file of the circuit's parameters, as the proofs libraries name it.
    ///
    /// # Errors
    ///
    /// [`Error::Synthesis`] when the proofs library cannot say.
    pub fn params_file_name(self) -> Result<String, Error> {
        Ok(parameter_id(&self.cache_identifier()?))
    }

    /// The file of the circuit's verifying key.
    ///
    /// # Errors
    ///
    /// As [`params_file_name`](Self::params_file_name).
    pub fn vk_file_name(self) -> Result<String, Error> {
        Ok(verifying_key_id(&self.cache_identifier()?))
    }

    /// Both files.
    ///
    /// # Errors
    ///
    /// As [`params_file_name`](Self::params_file_name).
    pub fn parameter_files(self) -> Result<ParameterFiles, Error> {
        Ok(ParameterFiles {
            params: self.params_file_name()?,
            vk: self.vk_file_name()?,
        })
    }

    fn cache_identifier(self) -> Result<String, Error> {
        match self.kind {
            ProofKind::Porep => registered::seal_proof(self.sector_size).circuit_identifier(),
            ProofKind::WinningPost => {
                registered::winning_post_proof(self.sector_size).circuit_identifier()
            }
            ProofKind::WindowPost => {
                registered::window_post_proof(self.sector_size).circuit_identifier()
            }
            ProofKind::SnapDeals => Ok(snap_deals::cache_identifier(self.sector_size)),
        }
        .map_err(|problem| synthesis("parameter name", &problem))
    }

    /// Hands the circuit without values to `visitor`.
    ///
    /// # Errors
    ///
    /// The visitor's, or [`Error::Synthesis`] when there is no circuit.
    pub fn with_blank<V: CircuitVisitor>(self, visitor: V) -> Result<V::Output, Error> {
        match self.kind {
            ProofKind::Porep => porep::with_blank(self.sector_size, visitor),
            ProofKind::WinningPost => winning_post::with_blank(self.sector_size, visitor),
            ProofKind::WindowPost => window_post::with_blank(self.sector_size, visitor),
            ProofKind::SnapDeals => snap_deals::with_blank(self.sector_size, visitor),
        }
    }

    /// Compiles the circuit.
    ///
    /// # Errors
    ///
    /// [`Error::Synthesis`] when the circuit fails.
    pub fn compile(self) -> Result<Program<Scalar>, Error> {
        self.compile_while(&NEVER_STOP)
    }

    /// Compiles the circuit, and passes `checkpoint` before every few thousand rows.
    ///
    /// # Errors
    ///
    /// As [`compile`](Self::compile), and [`Error::Stopped`].
    pub fn compile_while(self, checkpoint: &Checkpoint<'_>) -> Result<Program<Scalar>, Error> {
        struct Compile<'a>(&'a Checkpoint<'a>);

        impl CircuitVisitor for Compile<'_> {
            type Output = Program<Scalar>;

            fn visit<C: Circuit<Scalar> + Send>(
                self,
                circuit: C,
            ) -> Result<Program<Scalar>, Error> {
                cuzk_pce::compile_while(circuit, self.0).map_err(|problem| match problem {
                    RecordError::Stopped => Error::Stopped,
                    problem => synthesis("compile", &problem),
                })
            }
        }

        self.with_blank(Compile(checkpoint))
    }

    /// Records the circuit's rows in plain form, a thousand times the size of
    /// the compiled one: 570 MB for a PoRep of 2 KiB, 27.6 GB at 32 GiB.
    ///
    /// # Errors
    ///
    /// [`Error::Synthesis`] when the circuit fails.
    pub fn record(self) -> Result<R1cs<Scalar>, Error> {
        struct Record;

        impl CircuitVisitor for Record {
            type Output = R1cs<Scalar>;

            fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<R1cs<Scalar>, Error> {
                cuzk_pce::record(circuit).map_err(|problem| synthesis("record", &problem))
            }
        }

        self.with_blank(Record)
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind, self.sector_size)
    }
}
