use super::*;
use crate::{R1cs, compile, record, testing::*};
use bellperson::Index;
use blstrs::Scalar;
use proptest::prelude::*;

/// The terms of a row in each matrix.
fn terms(r1cs: &R1cs<Scalar>, row: usize) -> [Vec<(Index, Scalar)>; 3] {
    [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| {
        let row = matrix.row(row).unwrap();
        let cols = row.cols.iter().map(|&col| col as usize);
        let named = cols.map(|col| match col.checked_sub(r1cs.num_inputs()) {
            None => Index::Input(col),
            Some(aux) => Index::Aux(aux),
        });
        named.zip(row.values.iter().copied()).collect()
    })
}

/// The first difference between recorded rows, by its definition.
fn first_difference(ours: &R1cs<Scalar>, compiled: &R1cs<Scalar>) -> Option<ShapeDifference> {
    let rows = compiled.rows();
    for row in 0..ours.rows().min(rows) {
        let [our_terms, other_terms] = [ours, compiled].map(|r1cs| terms(r1cs, row));
        let mut pairs = our_terms.iter().zip(&other_terms);
        if let Some(at) = pairs.position(|(ours, other)| ours != other) {
            let matrix = ['A', 'B', 'C'][at];
            return Some(ShapeDifference::Terms { row, matrix });
        }
    }
    if ours.rows() > rows {
        return Some(ShapeDifference::MoreRows { row: rows });
    }
    if ours.rows() < rows {
        let row = ours.rows();
        return Some(ShapeDifference::FewerRows { row, rows });
    }
    let (expected, got) = (compiled.num_inputs(), ours.num_inputs());
    if expected != got {
        return Some(ShapeDifference::Inputs { expected, got });
    }
    let (expected, got) = (compiled.num_aux(), ours.num_aux());
    (expected != got).then_some(ShapeDifference::Aux { expected, got })
}

/// Compares `circuit` with `compiled` in both ways.
fn compare(circuit: RandomCircuit, compiled: &RandomCircuit) -> Result<(), TestCaseError> {
    let rows = record(circuit.blank()).unwrap();
    let expected = first_difference(&rows, &record(compiled.blank()).unwrap());
    let program = compile(compiled.blank()).unwrap();
    let same = program.fingerprint() == rows.fingerprint();
    prop_assert_eq!(expected.is_none(), same);
    match (packed_witness_of(&program, circuit.clone()), expected) {
        (Ok(witness), None) => {
            prop_assert_eq!(witness, packed_witness(circuit.clone()).unwrap());
        }
        (Err(InstanceError::Shape(got)), Some(expected)) => prop_assert_eq!(got, expected),
        (got, expected) => prop_assert!(false, "{:?}, not {:?}", got.err(), expected),
    }
    let variables = |r1cs: &R1cs<Scalar>| (r1cs.num_inputs(), r1cs.num_aux());
    let as_many = variables(&rows) == (program.num_inputs(), program.num_aux());
    prop_assert_eq!(counted_witness_of(&program, circuit).is_ok(), as_many);
    Ok(())
}

proptest! {
    #[test]
    fn the_first_difference_is_that_of_the_recorded_rows(
        (circuit, compiled) in random_change()
    ) {
        compare(circuit.clone(), &circuit)?;
        compare(circuit, &compiled)?;
    }

    /// These programs have plain rows.
    #[test]
    fn plain_rows_are_compared_too(
        circuit in unrepetitive_circuit(),
        compiled in unrepetitive_circuit(),
    ) {
        compare(circuit.clone(), &circuit)?;
        compare(circuit, &compiled)?;
    }

    #[test]
    fn one_synthesis_compiles_and_has_the_witness(circuit in random_circuit()) {
        let (program, witness) = compile_with_witness(circuit.clone()).unwrap();
        let compiled = compile(circuit.blank()).unwrap();
        prop_assert_eq!(program.fingerprint(), compiled.fingerprint());
        prop_assert_eq!(witness, packed_witness(circuit).unwrap());
    }
}

/// Tens of thousands of rows, and one row less.
#[test]
fn a_long_circuit_is_compared_to_its_end() {
    let long = RandomCircuit::long();
    let program = compile(long.blank()).unwrap();
    let witness = packed_witness_of(&program, long.clone()).unwrap();
    assert_eq!(witness.num_aux(), program.num_aux());
    let shorter = packed_witness_of(&program, long.without_last());
    let last = program.rows() - 1;
    assert!(matches!(
        shorter,
        Err(InstanceError::Shape(ShapeDifference::FewerRows { row, .. })) if row == last
    ));
}

#[test]
fn a_blank_circuit_has_no_witness_here_either() {
    let squares = RandomCircuit::squares(3);
    let program = compile(squares.blank()).unwrap();
    for result in [
        packed_witness_of(&program, squares.blank()).map(drop),
        compile_with_witness(squares.blank()).map(drop),
    ] {
        assert!(matches!(
            result,
            Err(InstanceError::Witness(WitnessError::Synthesis(
                SynthesisError::AssignmentMissing
            )))
        ));
    }
}
