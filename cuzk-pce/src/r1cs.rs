//! A rank-1 constraint system: three sparse matrices over one witness.
//!
//! Row i says (A·w)ᵢ · (B·w)ᵢ = (C·w)ᵢ for the witness w = [inputs | aux],
//! whose first input is the constant ONE. The rows `inputᵢ · 0 = 0` that
//! Groth16 appends, one a public input, are not stored: they are a function
//! of `num_inputs`.
//!
//! Invariant: A, B and C have the same rows, each as wide as the witness, and
//! there is at least one input.

use crate::{
    csr::{CsrError, CsrMatrix},
    density::Densities,
    fingerprint::Fingerprint,
};
use ff::PrimeField;

/// The constraints of one circuit, in plain form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct R1cs<S> {
    a: CsrMatrix<S>,
    b: CsrMatrix<S>,
    c: CsrMatrix<S>,
    num_inputs: u32,
    num_aux: u32,
}

impl<S> R1cs<S> {
    /// Checks that the matrices belong together. `num_inputs` counts ONE.
    ///
    /// # Errors
    /// [`CsrError::Shape`], [`CsrError::NoInputs`], or
    /// [`CsrError::TooLarge`] if a column could not be named with 32 bits.
    pub fn new(
        a: CsrMatrix<S>,
        b: CsrMatrix<S>,
        c: CsrMatrix<S>,
        num_inputs: u32,
        num_aux: u32,
    ) -> Result<Self, CsrError> {
        if num_inputs == 0 {
            return Err(CsrError::NoInputs);
        }
        let expected_cols = variables(num_inputs, num_aux)? as usize;
        let expected_rows = a.rows();
        for (matrix, m) in [('A', &a), ('B', &b), ('C', &c)] {
            if (m.rows(), m.num_cols()) != (expected_rows, expected_cols) {
                return Err(CsrError::Shape {
                    matrix,
                    rows: m.rows(),
                    cols: m.num_cols(),
                    expected_rows,
                    expected_cols,
                });
            }
        }
        Ok(R1cs {
            a,
            b,
            c,
            num_inputs,
            num_aux,
        })
    }

    /// The left factors.
    pub fn a(&self) -> &CsrMatrix<S> {
        &self.a
    }

    /// The right factors.
    pub fn b(&self) -> &CsrMatrix<S> {
        &self.b
    }

    /// The products.
    pub fn c(&self) -> &CsrMatrix<S> {
        &self.c
    }

    /// Number of public inputs, ONE among them.
    pub fn num_inputs(&self) -> usize {
        self.num_inputs as usize
    }

    /// Number of auxiliary variables.
    pub fn num_aux(&self) -> usize {
        self.num_aux as usize
    }

    /// Length of the witness `[inputs | aux]`.
    pub fn num_variables(&self) -> usize {
        self.num_inputs() + self.num_aux()
    }

    /// Number of constraints, without the rows that Groth16 appends.
    pub fn rows(&self) -> usize {
        self.a.rows()
    }

    /// Bytes held by the three matrices.
    pub fn resident_bytes(&self) -> usize {
        self.a.resident_bytes() + self.b.resident_bytes() + self.c.resident_bytes()
    }
}

impl<S: PrimeField> R1cs<S> {
    /// Which variables the A and B queries of a Groth16 prover range over.
    pub fn densities(&self) -> Densities {
        Densities::of([&self.a, &self.b], (self.num_inputs(), self.num_aux()))
    }

    /// A hash of the dimensions and of every row.
    pub fn fingerprint(&self) -> Fingerprint {
        let dimensions = (self.num_inputs(), self.num_aux());
        Fingerprint::of([&self.a, &self.b, &self.c], dimensions)
    }
}

/// Inputs and auxiliary variables together, if 32 bits can number them.
pub(crate) fn variables(num_inputs: u32, num_aux: u32) -> Result<u32, CsrError> {
    num_inputs.checked_add(num_aux).ok_or(CsrError::TooLarge {
        what: "variables",
        got: num_inputs as usize + num_aux as usize,
        limit: u32::MAX as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(rows: usize, num_cols: u32) -> CsrMatrix<u8> {
        CsrMatrix::new(num_cols, vec![0; rows + 1], vec![], vec![]).unwrap()
    }

    #[test]
    fn refuses_matrices_that_do_not_belong_together() {
        let r1cs = |b_rows, c_cols, inputs, aux| {
            R1cs::new(empty(2, 3), empty(b_rows, 3), empty(2, c_cols), inputs, aux)
        };
        assert!(r1cs(2, 3, 1, 2).is_ok());
        assert!(matches!(
            r1cs(3, 3, 1, 2),
            Err(CsrError::Shape {
                matrix: 'B',
                rows: 3,
                ..
            })
        ));
        assert!(matches!(
            r1cs(2, 4, 1, 2),
            Err(CsrError::Shape {
                matrix: 'C',
                cols: 4,
                ..
            })
        ));
        assert!(matches!(
            r1cs(2, 3, 1, 3),
            Err(CsrError::Shape {
                matrix: 'A',
                expected_cols: 4,
                ..
            })
        ));
        assert_eq!(r1cs(2, 3, 0, 3), Err(CsrError::NoInputs));
        assert!(matches!(
            r1cs(2, 3, 1, u32::MAX),
            Err(CsrError::TooLarge {
                what: "variables",
                ..
            })
        ));
    }
}
