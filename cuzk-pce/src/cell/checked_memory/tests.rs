use super::*;
use crate::{check, naive, record, testing::*, witness};
use blstrs::Scalar;
use ff::Field;
use proptest::prelude::*;

#[test]
fn a_variable_is_written_once_and_not_read_before() {
    let mut memory = CheckedMemory::<Scalar>::new();
    let variable = memory.declare_aux();
    let index = Index::Aux(0);
    let early = Err(Violation::ReadBeforeWritten { variable: index });
    assert_eq!(memory.read(variable, None), early);
    memory.write(variable, -Scalar::ONE).unwrap();
    assert_eq!(memory.read(variable, None), Ok(-Scalar::ONE));
    for again in [-Scalar::ONE, Scalar::ZERO] {
        assert_eq!(
            memory.write(variable, again),
            Err(Violation::WrittenTwice { variable: index })
        );
    }
    assert_eq!(memory.read(variable, None), Ok(-Scalar::ONE));
    let foreign = Variable::new_unchecked(Index::Input(0));
    assert_eq!(
        memory.read(foreign, Some(Query::A)),
        Err(Violation::NotAllocated {
            variable: Index::Input(0),
            allocated: 0
        })
    );
}

#[test]
fn reads_are_remembered_for_their_matrix_only() {
    let mut memory = CheckedMemory::<Scalar>::new();
    let variables: Vec<_> = (0..4).map(|_| memory.declare_aux()).collect();
    for (variable, query) in
        variables
            .iter()
            .zip([Some(Query::A), Some(Query::B), None, Some(Query::B)])
    {
        memory.write(*variable, Scalar::ONE).unwrap();
        memory.read(*variable, query).unwrap();
    }
    let densities = memory.densities();
    assert_eq!(densities.a_aux.iter().collect::<Vec<_>>(), [0]);
    assert_eq!(densities.b_aux.iter().collect::<Vec<_>>(), [1, 3]);
    assert_eq!(densities.b_input.count(), 0);
}

proptest! {
    /// Through cells or through recorded rows: the same densities, of the
    /// circuit with its witness and of the blank one.
    #[test]
    fn densities_are_the_recorded_ones(circuit in random_circuit()) {
        let r1cs = record(circuit.blank()).unwrap();
        let recorded = r1cs.densities();
        let checked = check_circuit(circuit.clone()).unwrap();
        prop_assert_eq!(&checked.densities, &recorded);
        prop_assert_eq!(checked.rows, r1cs.rows());
        prop_assert_eq!(&check_circuit(circuit.blank()).unwrap().densities, &recorded);
        let first_bad_row = naive::check(&r1cs, &witness(circuit).unwrap()).unwrap();
        let violation = first_bad_row.map(|row| (row, Violation::Unsatisfied));
        prop_assert_eq!(checked.violation, violation);
    }
}

#[test]
fn a_satisfied_circuit_has_no_violation() {
    let circuit = RandomCircuit::squares(100);
    let checked = check_circuit(circuit.clone()).unwrap();
    assert_eq!((checked.rows, checked.violation), (100, None));
    let r1cs = record(circuit.blank()).unwrap();
    assert_eq!(check(&r1cs, &witness(circuit).unwrap()), Ok(None));
}

#[test]
fn a_blank_circuit_is_read_before_it_is_written() {
    let checked = check_circuit(RandomCircuit::squares(3).blank()).unwrap();
    let variable = Index::Aux(0);
    assert_eq!(
        checked.violation,
        Some((0, Violation::ReadBeforeWritten { variable }))
    );
}

#[test]
fn a_circuit_that_gives_up_is_an_error() {
    assert!(matches!(
        check_circuit(RandomCircuit::failing()),
        Err(SynthesisError::Unsatisfiable)
    ));
}

/// The third of four values is missing, and the second row needs it.
struct Forgetful;

impl Circuit<Scalar> for Forgetful {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut variables = Vec::new();
        for at in 0..4 {
            let value = || match at {
                2 => Err(SynthesisError::AssignmentMissing),
                _ => Ok(Scalar::ONE),
            };
            variables.push(cs.alloc(|| at.to_string(), value)?);
        }
        let mut row = |a, c| cs.enforce(|| "", |lc| lc + a, |lc| lc + CS::one(), |lc| lc + c);
        row(variables[0], variables[1]);
        row(variables[3], variables[2]);
        row(variables[2], variables[3]);
        Ok(())
    }
}

#[test]
fn the_first_row_that_needs_a_missing_value_is_named() {
    let checked = check_circuit(Forgetful).unwrap();
    let (row, violation) = checked.violation.unwrap();
    assert_eq!(row, 1);
    assert_eq!(
        violation.to_string(),
        "auxiliary variable 2 is read before it has a value"
    );
    let mut a_aux = checked.densities.a_aux.iter();
    assert_eq!(a_aux.by_ref().collect::<Vec<_>>(), [0, 2, 3]);
}
