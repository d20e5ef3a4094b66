//! A circuit, compiled once and shared by every partition that uses it.
//!
//! Not a statement: it holds no input and no witness. The invariant: what is
//! kept under an id is what recording that id's blank circuit gives.

use std::path::Path;

use blstrs::Scalar;
use cuzk_pce::{Densities, Fingerprint, R1cs, Witness, disk};

use crate::kinds::CircuitId;
use crate::once_map::OnceMap;
use crate::params::QueryLengths;
use crate::{Error, Result};

/// A compiled circuit with what proving needs to know about it.
#[derive(Debug)]
pub struct Circuit {
    id: CircuitId,
    r1cs: R1cs<Scalar>,
    densities: Densities,
    fingerprint: Fingerprint,
}

impl Circuit {
    /// Compiles the blank circuit of `id`.
    ///
    /// # Errors
    /// A circuit that does not synthesize, or is too large for this format.
    pub fn compile(id: CircuitId) -> Result<Self> {
        Ok(Self::new(id, id.record()?))
    }

    /// A circuit that was compiled before.
    #[must_use]
    pub fn new(id: CircuitId, r1cs: R1cs<Scalar>) -> Self {
        let densities = r1cs.densities();
        let fingerprint = r1cs.fingerprint();
        Self {
            id,
            r1cs,
            densities,
            fingerprint,
        }
    }

    /// Which circuit this is.
    #[must_use]
    pub fn id(&self) -> CircuitId {
        self.id
    }

    /// The constraints.
    #[must_use]
    pub fn r1cs(&self) -> &R1cs<Scalar> {
        &self.r1cs
    }

    /// Which variables the queries of a proof run over.
    #[must_use]
    pub fn densities(&self) -> &Densities {
        &self.densities
    }

    /// A digest of the constraints.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// How many points each query of the circuit's parameters has.
    #[must_use]
    pub fn query_lengths(&self) -> QueryLengths {
        QueryLengths::of(&self.r1cs, &self.densities)
    }

    /// The first row that `witness` does not satisfy, if there is one.
    ///
    /// # Errors
    /// A witness of another circuit's shape.
    pub fn first_bad_row(&self, witness: &Witness<Scalar>) -> Result<Option<usize>> {
        cuzk_pce::check(&self.r1cs, witness).map_err(|error| Error::Synthesis {
            stage: "check",
            problem: error.to_string(),
        })
    }

    /// Writes the circuit to `path`, whole or not at all.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(disk::write(path, &self.r1cs, &self.id.to_string())?)
    }
}

/// The circuits of an engine, each compiled when it is first asked for.
pub type Circuits = OnceMap<CircuitId, Circuit>;
