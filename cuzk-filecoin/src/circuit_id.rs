//! A circuit by name: which kind, for which sector size.
//!
//! Not a statement: the structure only, without values. The invariant: all statements with
//! the same [`CircuitId`] share rows, parameters and verifying key.

use std::fmt;
use std::path::PathBuf;

use storage_proofs_core::parameter_cache::{
    CacheableParameters, SRS_KEY_EXT, SRS_SHARED_KEY_NAME, VERSION, parameter_id, verifying_key_id,
};
use storage_proofs_update::{EmptySectorUpdateCircuit, EmptySectorUpdateCompound, PublicParams};

use crate::Error;
use crate::proof_kind::ProofKind;
use crate::registered;
use crate::sector_size::SectorSize;
use crate::tree::{ReplicaTree, with_tree};

/// The structure that all proofs of one kind and sector size share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// The kind of proof.
    pub kind: ProofKind,
    /// For sectors of this size.
    pub sector_size: SectorSize,
}

impl CircuitId {
    /// Returns the file name of the circuit's parameters, as the proofs libraries name it.
    ///
    /// # Errors
    ///
    /// [`Error::Synthesis`] when the proofs library cannot say.
    pub fn params_file_name(self) -> Result<String, Error> {
        Ok(parameter_id(&self.cache_identifier()?))
    }

    /// Returns the file name of the circuit's verifying key.
    ///
    /// # Errors
    ///
    /// As [`params_file_name`](Self::params_file_name).
    pub fn vk_file_name(self) -> Result<String, Error> {
        Ok(verifying_key_id(&self.cache_identifier()?))
    }

    /// Returns the file name of the compiled circuit: the parameters' name, which changes
    /// whenever the circuit does, with an extension of its own.
    ///
    /// # Errors
    ///
    /// As [`params_file_name`](Self::params_file_name).
    pub fn circuit_file_name(self) -> Result<String, Error> {
        let path = PathBuf::from(self.params_file_name()?).with_extension("circuit");
        Ok(path.to_string_lossy().into_owned())
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
            ProofKind::SnapDeals => Ok(update_identifier(self.sector_size)),
        }
        .map_err(|problem| Error::synthesis("parameter name", &problem))
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind, self.sector_size)
    }
}

/// Returns the file name of the inner-product SRS, which aggregates of all circuits share.
#[must_use]
pub fn srs_file_name() -> String {
    format!("v{VERSION}-{SRS_SHARED_KEY_NAME}.{SRS_KEY_EXT}")
}

/// The identifier under which the proofs libraries keep the parameters.
/// (`RegisteredUpdateProof::circuit_identifier` gives the seal proof's.)
fn update_identifier(size: SectorSize) -> String {
    with_tree!(size, update_identifier_of(size))
}

fn update_identifier_of<Tree: ReplicaTree>(size: SectorSize) -> String {
    <EmptySectorUpdateCompound<Tree> as CacheableParameters<
        EmptySectorUpdateCircuit<Tree>,
        PublicParams,
    >>::cache_identifier(&PublicParams::from_sector_size(size.bytes()))
}
