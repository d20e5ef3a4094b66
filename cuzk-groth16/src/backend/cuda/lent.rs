//! The data that a device reads of the host: a circuit with its parameters, and a witness.
//!
//! Not the upload, which is C++'s. The invariant: each keeps a share of the data, and lends
//! it as it is.

use std::sync::Arc;

use blstrs::Scalar;
use cuzk_pce::PackedWitness;
use cuzk_pce::program::Flat;
use supraseal_sys::Status;
use supraseal_sys::device::{CircuitArrays, CircuitSource, Queries, WitnessArrays, WitnessSource};

use crate::backend::BackendError;
use crate::circuit::Circuit;
use crate::params::MappedParams;

/// A witness, lent to the device until its proof ends.
pub(super) struct LentWitness(pub(super) Arc<PackedWitness<Scalar>>);

impl WitnessSource for LentWitness {
    fn arrays(&self) -> WitnessArrays<'_> {
        let aux = self.0.aux_slice();
        WitnessArrays {
            inputs: self.0.inputs(),
            bits: aux.bits,
            wide: aux.wide,
            wide_values: aux.values,
        }
    }
}

/// A circuit and its parameters, lent to a device as long as it knows them.
pub(super) struct LentCircuit {
    circuit: Arc<Circuit>,
    params: Arc<MappedParams>,
    flat: Flat<Scalar>,
    log_domain: u32,
    max_wide: u32,
    b_inputs: Vec<u32>,
}

impl LentCircuit {
    pub(super) fn new(
        circuit: &Arc<Circuit>,
        params: &Arc<MappedParams>,
    ) -> Result<Self, BackendError> {
        let too_large = |problem: String| {
            BackendError::Native(Status::too_large(format!("{}: {problem}", circuit.name())))
        };
        let flat = circuit
            .program()
            .flatten()
            .map_err(|error| too_large(error.to_string()))?;
        let index = |index: usize| {
            u32::try_from(index).map_err(|_| too_large(format!("{index} is past 32 bits")))
        };
        let max_wide = index(circuit.wide().all)?;
        let b_inputs = circuit.densities().b_input.iter();
        let b_inputs = b_inputs.map(index).collect::<Result<_, _>>()?;
        Ok(Self {
            log_domain: circuit.domain_len().trailing_zeros(),
            flat,
            max_wide,
            b_inputs,
            circuit: Arc::clone(circuit),
            params: Arc::clone(params),
        })
    }
}

#[allow(unsafe_code)] // Kernels do not check what they index.
// SAFETY: the tables are those of `Program::flatten`, whose indices are in
// range by construction; densities and lengths are those of the same program,
// and C++ checks them against each other.
unsafe impl CircuitSource for LentCircuit {
    fn arrays(&self) -> CircuitArrays<'_> {
        let densities = self.circuit.densities();
        let flat = &self.flat;
        CircuitArrays {
            log_domain: self.log_domain,
            rows: flat.rows,
            num_inputs: flat.num_inputs,
            num_aux: flat.num_aux,
            max_wide: self.max_wide,
            coefficients: &flat.coefficients,
            integers: &flat.integers,
            part_ends: &flat.part_ends,
            items: &flat.items,
            shapes: &flat.shapes,
            unit_rows: &flat.unit_rows,
            references: &flat.references,
            block_references: &flat.block_references,
            a_aux: densities.a_aux.words(),
            b_aux: densities.b_aux.words(),
            b_inputs: &self.b_inputs,
            points: Queries {
                h: self.params.h().bytes(),
                l: self.params.l().bytes(),
                a: self.params.a().bytes(),
                b_g1: self.params.b_g1().bytes(),
                b_g2: self.params.b_g2().bytes(),
            },
        }
    }
}
