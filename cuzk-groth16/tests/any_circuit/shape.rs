//! Circuits whose shape depends on the witness are refused, with the row.

use std::sync::Arc;

use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use cuzk_groth16::{ProveError, Prover, RowCheck, compile};
use cuzk_pce::ShapeDifference;
use ff::Field;

use crate::oracle::{added, in_memory};

/// How a circuit's shape depends on its witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A coefficient of row 7 is the witness.
    Coefficient,
    /// Row 7 has another variable.
    Variable,
    /// A row more comes before row 7.
    MoreRows,
    /// A row more comes at the end.
    RowAtTheEnd,
    /// The last row is missing.
    RowMissing,
    /// A private variable more, before row 7.
    VariableBefore,
    /// A private variable more, after the last row.
    VariableAfter,
    /// A public input more, after the last row.
    InputAfter,
    /// Rows 7 and 8 are exchanged. The witness satisfies both.
    Order,
}

use Fault::*;

/// Squares of squares: row i says that variable i squared is variable i + 1. For a `start` that
/// is not 3, the shape has the fault.
#[derive(Clone)]
pub(crate) struct Squares {
    pub(crate) start: u64,
    pub(crate) fault: Fault,
}

/// The rows of the good circuit.
const ROWS: usize = 20;

impl Circuit<Scalar> for Squares {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let fault = (self.start != 3).then_some(self.fault);
        let has = |other| fault == Some(other);
        let mut value = Scalar::from(self.start);
        let mut variables = vec![cs.alloc(|| "", || Ok(value))?];
        let mut rows = Vec::new();
        for row in 0..ROWS {
            if row == 7 && has(VariableBefore) {
                cs.alloc(|| "", || Ok(Scalar::ONE))?;
            }
            value = value.square();
            let next = cs.alloc(|| "", || Ok(value))?;
            rows.push([variables[row], variables[row], next]);
            variables.push(next);
        }
        match fault {
            Some(Variable) => rows[7][1] = variables[6],
            Some(MoreRows) => rows.insert(7, rows[6]),
            Some(RowAtTheEnd) => rows.push(rows[6]),
            Some(RowMissing) => drop(rows.pop()),
            Some(Order) => rows.swap(7, 8),
            _ => {}
        }
        for (row, [a, b, c]) in rows.into_iter().enumerate() {
            let factor = match has(Coefficient) && row == 7 {
                true => Scalar::from(self.start),
                false => Scalar::ONE,
            };
            cs.enforce(|| "", |lc| lc + (factor, a), |lc| lc + b, |lc| lc + c);
        }
        if has(VariableAfter) {
            cs.alloc(|| "", || Ok(Scalar::ONE))?;
        }
        if has(InputAfter) {
            cs.alloc_input(|| "", || Ok(Scalar::ONE))?;
        }
        Ok(())
    }
}

pub(crate) fn squares(start: u64, fault: Fault) -> Squares {
    Squares { start, fault }
}

/// Each fault with its difference.
fn differences() -> [(Fault, ShapeDifference); 9] {
    let terms = |row, matrix| ShapeDifference::Terms { row, matrix };
    let missing = ShapeDifference::FewerRows { row: 19, rows: 20 };
    let (inputs, aux) = ((1, 2), (21, 22));
    [
        (Coefficient, terms(7, 'A')),
        (Variable, terms(7, 'B')),
        (MoreRows, terms(7, 'A')),
        (RowAtTheEnd, ShapeDifference::MoreRows { row: 20 }),
        (RowMissing, missing),
        (VariableBefore, terms(7, 'C')),
        (
            VariableAfter,
            ShapeDifference::Aux {
                expected: aux.0,
                got: aux.1,
            },
        ),
        (
            InputAfter,
            ShapeDifference::Inputs {
                expected: inputs.0,
                got: inputs.1,
            },
        ),
        (Order, terms(7, 'A')),
    ]
}

fn refused(prover: &Prover, fault: Fault) -> ProveError {
    // The compiled shape is proved.
    prover.prove(squares(3, fault)).unwrap();
    prover.prove(squares(4, fault)).unwrap_err()
}

#[test]
fn the_first_row_that_differs_is_named() {
    for (fault, expected) in differences() {
        let prover = in_memory(squares(3, fault));
        let error = refused(&prover, fault);
        assert_eq!(error.row(), expected.row());
        let message = error.to_string();
        assert!(
            message.contains("any") && message.contains(&expected.to_string()),
            "{message}"
        );
        assert!(
            matches!(error, ProveError::Shape { difference, .. } if difference == expected),
            "{fault:?}: {error:?}"
        );
        // Also where nobody verifies.
        let unverified = prover.prove_unverified(squares(4, fault), added());
        assert_eq!(unverified.unwrap_err().row(), expected.row());
    }
}

/// Without its rows, an instance is refused for its variables or its proof. If it satisfies
/// the compiled rows, its proof is a proof of the compiled circuit.
#[test]
fn counts_are_enough_to_prove_nothing_wrong() {
    for (fault, expected) in differences() {
        let prover = in_memory(squares(3, fault)).with_row_check(RowCheck::Counts);
        match (fault, prover.prove(squares(4, fault))) {
            (Variable | Coefficient | MoreRows | RowAtTheEnd | RowMissing | Order, Ok(_)) => {}
            (VariableBefore | VariableAfter | InputAfter, Err(ProveError::Shape { .. })) => {}
            (fault, result) => panic!("{fault:?}, {expected:?}: {result:?}"),
        }
    }
}

/// A wrong witness is named with its row, however rows are compared.
#[test]
fn a_row_that_the_witness_does_not_satisfy_is_named() {
    #[derive(Clone)]
    struct Wrong(Option<usize>);

    impl Circuit<Scalar> for Wrong {
        fn synthesize<CS: ConstraintSystem<Scalar>>(
            self,
            cs: &mut CS,
        ) -> Result<(), SynthesisError> {
            for row in 0..ROWS {
                let x = cs.alloc(|| "", || Ok(Scalar::from(2)))?;
                let value = if self.0 == Some(row) { 5 } else { 4 };
                let square = cs.alloc(|| "", || Ok(Scalar::from(value)))?;
                cs.enforce(|| "", |lc| lc + x, |lc| lc + x, |lc| lc + square);
            }
            Ok(())
        }
    }

    for check in [RowCheck::Rows, RowCheck::Counts] {
        let prover = in_memory(Wrong(None)).with_row_check(check);
        prover.prove(Wrong(None)).unwrap();
        let error = prover.prove(Wrong(Some(11))).unwrap_err();
        assert!(matches!(error, ProveError::Unsatisfied { row: 11, .. }));
        let message = error.to_string();
        assert_eq!(message, "the witness does not satisfy row 11 of any");
        // A proof that nobody verified is no proof.
        let unverified = prover.prove_unverified(Wrong(Some(11)), added()).unwrap();
        cuzk_groth16::verify(prover.key(), &unverified, &[]).unwrap_err();
    }
}

#[test]
fn parameters_of_another_circuit_are_refused() {
    let other = in_memory(squares(3, Order));
    let circuit = Arc::new(compile("shorter", squares(4, RowMissing)).unwrap());
    let refused = Prover::new(circuit, Arc::clone(other.params()));
    assert!(matches!(refused, Err(ProveError::Params(_))));
}
