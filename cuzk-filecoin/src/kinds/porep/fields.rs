//! The fields of a PoRep's statement with their checks, and the body of a partition's request.
//!
//! Not its vanilla proofs. The invariant: fields that were checked are what the proofs library
//! takes without a panic.

use filecoin_proofs::constants::{DefaultPieceDomain, DefaultTreeDomain};
use filecoin_proofs_api::RegisteredSealProof;
use serde::{Deserialize, Serialize};
use storage_proofs_porep::stacked::{self, Tau};

use crate::Error;
use crate::kinds::shape::PorepChallenge;
use crate::request::{commitment, field_element, is_non_interactive};

type PublicInputs = stacked::PublicInputs<DefaultTreeDomain, DefaultPieceDomain>;

/// The fields of a statement, as they came.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Fields {
    pub(super) comm_r: [u8; 32],
    pub(super) comm_d: [u8; 32],
    pub(super) replica_id: [u8; 32],
    pub(super) seed: [u8; 32],
}

/// The body of a partition's request, as it is written.
#[derive(Serialize)]
pub(super) struct BodyOut<'a, C> {
    pub(super) fields: Fields,
    pub(super) challenges: &'a [C],
}

/// The body of a partition's request, as it is read.
#[derive(Deserialize)]
pub(super) struct BodyIn {
    pub(super) fields: Fields,
    pub(super) challenges: Vec<PorepChallenge>,
}

impl Fields {
    /// Returns the fields of public inputs, if they have all of them.
    pub(super) fn of(inputs: &PublicInputs) -> Option<Self> {
        let tau = inputs.tau.as_ref()?;
        Some(Self {
            comm_r: tau.comm_r.into(),
            comm_d: tau.comm_d.into(),
            replica_id: inputs.replica_id.into(),
            seed: inputs.seed?,
        })
    }

    pub(super) fn inputs(&self) -> PublicInputs {
        PublicInputs {
            replica_id: self.replica_id.into(),
            tau: Some(Tau {
                comm_d: self.comm_d.into(),
                comm_r: self.comm_r.into(),
            }),
            k: None,
            seed: Some(self.seed),
        }
    }

    /// Checks the fields one by one. Non-interactive challenges do not depend on the seed.
    pub(super) fn check(&self, proof: RegisteredSealProof) -> Result<(), Error> {
        commitment("vanilla_proof.comm_r", &self.comm_r)?;
        commitment("vanilla_proof.comm_d", &self.comm_d)?;
        if self.seed == [0; 32] && !is_non_interactive(proof) {
            return Err(Error::request(
                "vanilla_proof.seed",
                "all 32 bytes are zero",
                "run seal_commit_phase1 with the chain's interactive randomness",
            ));
        }
        if !field_element(self.replica_id) {
            return Err(Error::request(
                "vanilla_proof.replica_id",
                "not a field element",
                "send what seal_commit_phase1 returned, unaltered",
            ));
        }
        Ok(())
    }
}
