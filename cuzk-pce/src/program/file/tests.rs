use super::*;
use crate::program::file_header::{VERSION, WITHOUT_VARIABLES};
use crate::{
    VariableCounts, damage,
    program::{check, compile::compile_folded},
    record,
    testing::*,
    witness,
    witness::Witness,
};
use blstrs::Scalar;
use cuzk_fuzz::Corpus;
use ff::Field;
use proptest::prelude::*;
use std::fs;

fn some_program(rows: usize) -> Program<Scalar> {
    compile_folded(RandomCircuit::squares(rows).blank()).unwrap()
}

fn reading(path: &Path) -> Result<(), DiskError> {
    read::<Scalar>(path, None).map(drop)
}

/// Writes folded rows as the version without counts of variables has them.
fn write_without_variables(path: &Path, program: &Program<Scalar>, label: &str) {
    let Body::Folded(folded) = &program.body else {
        panic!("the rows are plain");
    };
    let header = ProgramHeader {
        variables: None,
        ..ProgramHeader::of(program, folded, label).unwrap()
    };
    write_folded(path, &header, folded).unwrap();
}

/// The counts of variables as nobody counts them for a header: in the recorded rows.
fn counted(circuit: &RandomCircuit) -> VariableCounts {
    let rows = record(circuit.blank()).unwrap();
    let bits = crate::program::compiler::boolean_columns(&rows);
    VariableCounts::of(&rows.densities(), &bits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// The header announces what the rows have. A file of the version before announces
    /// nothing, and is read all the same.
    #[test]
    fn counts_in_the_header_are_those_of_the_rows(
        circuit in random_circuit(),
        label in ".{0,9}",
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.pce");
        let program = compile_folded(circuit.blank()).unwrap();
        write(&path, &program, &label).unwrap();
        let (header, mapped) = map::<Scalar>(&path, None).unwrap();
        prop_assert_eq!(header.variables, Some(counted(&circuit)));
        prop_assert_eq!(header.variables, Some(mapped.variable_counts()));
        prop_assert_eq!(&inspect::<Scalar>(&path).unwrap(), &header);
        let bytes = fs::metadata(&path).unwrap().len();

        write_without_variables(&path, &program, &label);
        let (earlier, stored) = read::<Scalar>(&path, Some(program.fingerprint())).unwrap();
        prop_assert_eq!(earlier, ProgramHeader { variables: None, ..header });
        prop_assert_eq!(stored.to_r1cs().unwrap(), record(circuit.blank()).unwrap());
        prop_assert_eq!(stored.variable_counts(), mapped.variable_counts());
        let fewer = bytes - fs::metadata(&path).unwrap().len();
        prop_assert_eq!(fewer, VariableCounts::BYTES as u64);
    }

    #[test]
    fn reads_what_was_written(circuit in random_circuit(), label in ".{0,9}") {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.pce");
        let program = compile_folded(circuit.blank()).unwrap();
        write(&path, &program, &label).unwrap();
        let header = inspect::<Scalar>(&path).unwrap();
        prop_assert_eq!(header.fingerprint, program.fingerprint());
        prop_assert_eq!(&header.label, &label);
        let (again, stored) = read(&path, Some(program.fingerprint())).unwrap();
        prop_assert_eq!(again, header);
        prop_assert_eq!(stored.to_r1cs().unwrap(), record(circuit.blank()).unwrap());
        prop_assert_eq!(stored.nnz(), program.nnz());
        prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn damage_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    write(&path, &some_program(2), "label").unwrap();
    let versions = [WITHOUT_VARIABLES, VERSION];
    damage::another_version_is_an_error(reading, &path, &versions);
    write(&path, &some_program(2), "label").unwrap();
    damage::every_damage_is_an_error(reading, &path, 120..144);
    write_without_variables(&path, &some_program(2), "label");
    damage::every_damage_is_an_error(reading, &path, 120..144);
    damage::what_cannot_be_written_leaves_nothing(reading, |path, label| {
        write(path, &some_program(2), label)
    });
}

/// A file of one version that calls itself one of the other is shorter or longer than it should
/// be.
#[test]
fn a_version_that_is_not_its_own_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    write(&path, &some_program(2), "label").unwrap();
    let new = fs::read(&path).unwrap();
    write_without_variables(&path, &some_program(2), "label");
    let earlier = fs::read(&path).unwrap();
    for (good, version) in [(new, WITHOUT_VARIABLES), (earlier, VERSION)] {
        damage::replace(&path, &good, damage::VERSION_AT, &version.to_le_bytes());
        let fault = damage::fault(reading, &path);
        let is_told = matches!(fault, DiskFault::Size { .. } | DiskFault::Label { .. });
        assert!(is_told, "{fault}");
    }
}

/// A header that announces other counts than the rows have, with a good checksum, is an error
/// that names them. To map the file is an error only if no circuit could have the counts.
#[test]
fn a_header_that_lies_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    let (circuit, _) = RandomCircuit::gadgets();
    let program = compile_folded(circuit.blank()).unwrap();
    write(&path, &program, "label").unwrap();
    let good = fs::read(&path).unwrap();
    let counts = program.variable_counts().words();
    let mut mapped = 0;
    for (index, count) in counts.into_iter().enumerate() {
        let at = HEADER_BYTES + 4 * index;
        assert_eq!(good[at..at + 4], count.to_le_bytes());
        for lie in [0, count.wrapping_sub(1), count + 1, u32::MAX] {
            if lie == count {
                continue;
            }
            damage::replace(&path, &good, at, &lie.to_le_bytes());
            let fault = damage::fault(reading, &path);
            match map::<Scalar>(&path, None).map_err(|error| error.fault) {
                Ok(_) => {
                    mapped += 1;
                    let is_told = matches!(
                        fault,
                        DiskFault::VariableCount { announced, counted, .. }
                            if (announced, counted) == (lie, count)
                    );
                    assert!(is_told, "{fault}");
                }
                Err(DiskFault::VariableLimit { .. }) => {
                    let is_told = matches!(fault, DiskFault::VariableLimit { .. });
                    assert!(is_told, "{fault}");
                }
                Err(other) => panic!("{other}"),
            }
            let inspected = inspect::<Scalar>(&path);
            assert_eq!(inspected.is_ok(), map::<Scalar>(&path, None).is_ok());
        }
    }
    assert!(mapped >= counts.len(), "{mapped}");
}

/// A file with a good checksum and any content is refused, or it is a program. Nothing is
/// out of bounds when the program runs.
#[test]
fn a_hostile_file_with_a_good_checksum_is_an_error_or_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    let (circuit, _) = RandomCircuit::gadgets();
    write(&path, &compile_folded(circuit.blank()).unwrap(), "label").unwrap();
    let good = fs::read(&path).unwrap();
    let values = witness(circuit).unwrap();
    let mut refused = 0;
    for i in 0..good.len() - CHECKSUM_BYTES {
        for change in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[i] ^= change;
            damage::sign(&mut bad);
            fs::write(&path, &bad).unwrap();
            let Ok((_, program)) = read::<Scalar>(&path, None) else {
                refused += 1;
                continue;
            };
            run(&program, &values);
        }
    }
    // Most changes make no sense; coefficients and the fingerprint may.
    assert!(refused > good.len(), "{refused}");
}

/// Uses everything that a program has.
fn run(program: &Program<Scalar>, values: &Witness<Scalar>) {
    let checked = check(program, values);
    if program.num_inputs() == values.num_inputs() && checked.is_ok() {
        let len = program.rows() + program.num_inputs();
        let (mut a, mut b) = (vec![Scalar::ZERO; len], vec![Scalar::ZERO; len]);
        program
            .evaluate_into(values, &mut a, &mut b, &cuzk_memory::NEVER_STOP)
            .unwrap();
    }
    program.boolean_columns();
    program.densities();
    assert_eq!(program.unfold().count(), program.rows());
}

/// As above, with several changes and with pieces that move. Each mutant has a good checksum.
#[test]
fn mutated_files_are_errors_or_programs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    let (circuit, _) = RandomCircuit::gadgets();
    let values = witness(circuit.clone()).unwrap();
    let programs = [circuit, RandomCircuit::squares(10)];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/circuits");
    let corpus = programs
        .into_iter()
        .fold(Corpus::read(folder), |corpus, one| {
            write(&path, &compile_folded(one.blank()).unwrap(), "label").unwrap();
            corpus.with(fs::read(&path).unwrap())
        });
    let decode = |input: &[u8]| {
        let mut bytes = input.to_vec();
        if bytes.len() >= CHECKSUM_BYTES {
            damage::sign(&mut bytes);
        }
        fs::write(&path, &bytes).unwrap();
        read::<Scalar>(&path, None).map(|(_, program)| run(&program, &values))
    };
    corpus.fuzz_decoder("circuits", 4_000, decode, |_| true);
}

#[test]
fn another_circuit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    write(&path, &some_program(2), "").unwrap();
    let other = some_program(3).fingerprint();
    let error = read::<Scalar>(&path, Some(other)).unwrap_err();
    assert!(matches!(error.fault, DiskFault::Fingerprint { .. }));
}

#[test]
fn two_writers_leave_one_good_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.pce");
    let program = some_program(100);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| write(&path, &program, "same").unwrap()));
        }
        for _ in 0..50 {
            if path.exists() {
                read::<Scalar>(&path, Some(program.fingerprint())).unwrap();
            }
        }
    });
    read::<Scalar>(&path, Some(program.fingerprint())).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
