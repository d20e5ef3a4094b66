//! supraseal-c2's prover on the same circuit, witness and parameters.

// Linked for the C++ and CUDA side that the crate calls.
use blst as _;
use sppark as _;

use bellperson::groth16::Proof;
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use cuzk_memory::NEVER_STOP;
use cuzk_pce::Columns;
use ff::Field;
use group::prime::PrimeCurveAffine;
use supraseal_c2::{SRS, generate_groth16_proof};

use super::subject::Subject;
use crate::failure::{Failure, failed};

/// A proof, with the layout of the C++ side.
#[repr(C)]
struct Points {
    a: G1Affine,
    b: G2Affine,
    c: G1Affine,
}

pub(super) struct Supraseal {
    srs: SRS,
    a: Vec<Scalar>,
    b: Vec<Scalar>,
    c: Vec<Scalar>,
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
    densities: cuzk_pce::Densities,
}

impl Supraseal {
    pub(super) fn new(subject: &Subject) -> Result<Self, Failure> {
        let srs = SRS::try_new(subject.params.path().to_owned(), false)
            .map_err(|error| failed(String::from(error)))?;
        let program = subject.circuit.program();
        let rows = program.rows() + program.num_inputs();
        let [mut a, mut b, mut c] = [(); 3].map(|()| vec![Scalar::ZERO; rows]);
        let out = [&mut a[..], &mut b, &mut c];
        program
            .evaluate_abc_into(&subject.witness, out, &NEVER_STOP)
            .map_err(failed)?;
        let inputs = subject.witness.inputs().to_vec();
        let aux = (0..subject.witness.num_aux()).map(|aux| subject.witness.aux(aux));
        Ok(Self {
            srs,
            a,
            b,
            c,
            inputs,
            aux: aux.collect(),
            densities: subject.circuit.densities().clone(),
        })
    }

    pub(super) fn prove(&self, r: Scalar, s: Scalar) -> Proof<Bls12> {
        let infinity = G1Affine::identity();
        let mut proofs = [Points {
            a: infinity,
            b: G2Affine::identity(),
            c: infinity,
        }];
        let densities = &self.densities;
        generate_groth16_proof(
            &[self.a.as_ptr()],
            &[self.b.as_ptr()],
            &[self.c.as_ptr()],
            self.a.len(),
            &[self.inputs.as_ptr()],
            &[self.aux.as_ptr()],
            self.inputs.len(),
            self.aux.len(),
            densities.a_aux.words(),
            densities.b_input.words(),
            densities.b_aux.words(),
            densities.a_aux.count(),
            densities.b_input.count(),
            densities.b_aux.count(),
            1,
            &[r],
            &[s],
            &mut proofs,
            &self.srs,
        );
        let [Points { a, b, c }] = proofs;
        Proof { a, b, c }
    }
}
