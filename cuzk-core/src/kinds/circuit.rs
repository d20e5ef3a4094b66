//! A circuit by name: which kind, for which sector size.
//!
//! Not a job: the structure only, without values. The invariant: all jobs with
//! the same [`CircuitId`] share rows, parameters and verifying key.

use std::fmt;

use bellperson::Circuit;
use blstrs::Scalar;
use cuzk_pce::R1cs;
use filecoin_proofs_api::{RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof};
use storage_proofs_core::parameter_cache::{parameter_id, verifying_key_id};

use super::job::synthesis;
use super::{ProofKind, SectorSize, porep, snap_deals, window_post, winning_post};
use crate::Error;

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

    fn cache_identifier(self) -> Result<String, Error> {
        match self.kind {
            ProofKind::Porep => seal_proof(self.sector_size).circuit_identifier(),
            ProofKind::WinningPost => winning_post_proof(self.sector_size).circuit_identifier(),
            ProofKind::WindowPost => window_post_proof(self.sector_size).circuit_identifier(),
            ProofKind::SnapDeals => update_proof(self.sector_size).circuit_identifier(),
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

    /// Records the circuit's rows.
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

/// A seal proof with the circuit of this size. Circuits do not depend on the
/// proof's version: any interactive one would do.
pub(super) fn seal_proof(size: SectorSize) -> RegisteredSealProof {
    match size {
        SectorSize::KiB2 => RegisteredSealProof::StackedDrg2KiBV1_1,
        SectorSize::MiB8 => RegisteredSealProof::StackedDrg8MiBV1_1,
        SectorSize::MiB512 => RegisteredSealProof::StackedDrg512MiBV1_1,
        SectorSize::GiB32 => RegisteredSealProof::StackedDrg32GiBV1_1,
        SectorSize::GiB64 => RegisteredSealProof::StackedDrg64GiBV1_1,
    }
}

/// The WinningPoSt proof of this size.
pub(crate) fn winning_post_proof(size: SectorSize) -> RegisteredPoStProof {
    match size {
        SectorSize::KiB2 => RegisteredPoStProof::StackedDrgWinning2KiBV1,
        SectorSize::MiB8 => RegisteredPoStProof::StackedDrgWinning8MiBV1,
        SectorSize::MiB512 => RegisteredPoStProof::StackedDrgWinning512MiBV1,
        SectorSize::GiB32 => RegisteredPoStProof::StackedDrgWinning32GiBV1,
        SectorSize::GiB64 => RegisteredPoStProof::StackedDrgWinning64GiBV1,
    }
}

/// The WindowPoSt proof of this size.
pub(crate) fn window_post_proof(size: SectorSize) -> RegisteredPoStProof {
    match size {
        SectorSize::KiB2 => RegisteredPoStProof::StackedDrgWindow2KiBV1_2,
        SectorSize::MiB8 => RegisteredPoStProof::StackedDrgWindow8MiBV1_2,
        SectorSize::MiB512 => RegisteredPoStProof::StackedDrgWindow512MiBV1_2,
        SectorSize::GiB32 => RegisteredPoStProof::StackedDrgWindow32GiBV1_2,
        SectorSize::GiB64 => RegisteredPoStProof::StackedDrgWindow64GiBV1_2,
    }
}

/// The update proof of this size.
pub(crate) fn update_proof(size: SectorSize) -> RegisteredUpdateProof {
    match size {
        SectorSize::KiB2 => RegisteredUpdateProof::StackedDrg2KiBV1,
        SectorSize::MiB8 => RegisteredUpdateProof::StackedDrg8MiBV1,
        SectorSize::MiB512 => RegisteredUpdateProof::StackedDrg512MiBV1,
        SectorSize::GiB32 => RegisteredUpdateProof::StackedDrg32GiBV1,
        SectorSize::GiB64 => RegisteredUpdateProof::StackedDrg64GiBV1,
    }
}
