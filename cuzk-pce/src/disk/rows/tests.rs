use super::*;
use crate::disk::header::VERSION;
use crate::{damage, record, testing::*};
use blstrs::Scalar;
use cuzk_fuzz::Corpus;
use proptest::prelude::*;
use std::fs;

fn some_r1cs(rows: usize) -> R1cs<Scalar> {
    record(RandomCircuit::squares(rows).blank()).unwrap()
}

fn reading(path: &Path) -> Result<(), DiskError> {
    read::<Scalar>(path, None).map(drop)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn reads_what_was_written(circuit in random_circuit()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("circuit.r1cs");
        let r1cs = record(circuit.blank()).unwrap();
        write(&path, &r1cs, "a label").unwrap();
        let header = inspect::<Scalar>(&path).unwrap();
        prop_assert_eq!(header.fingerprint, r1cs.fingerprint());
        prop_assert_eq!(&header.label, "a label");
        let stored = read(&path, Some(r1cs.fingerprint())).unwrap();
        prop_assert_eq!(stored, Stored { header, r1cs });
        prop_assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[test]
fn spans_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.r1cs");
    let r1cs = some_r1cs(40_000);
    write(&path, &r1cs, "").unwrap();
    assert_eq!(read::<Scalar>(&path, None).unwrap().r1cs, r1cs);
}

#[test]
fn damage_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.r1cs");
    write(&path, &some_r1cs(2), "label").unwrap();
    damage::another_version_is_an_error(reading, &path, &[VERSION]);
    write(&path, &some_r1cs(2), "label").unwrap();
    damage::every_damage_is_an_error(reading, &path, 96..128);
    damage::what_cannot_be_written_leaves_nothing(reading, |path, label| {
        write(path, &some_r1cs(2), label)
    });
}

#[test]
fn a_hostile_file_with_a_good_checksum_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.r1cs");
    write(&path, &some_r1cs(2), "").unwrap();
    let good = fs::read(&path).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        damage::replace(&path, &good, at, bytes);
        damage::fault(reading, &path)
    };
    let huge = u64::MAX.to_le_bytes();
    for at in [96, 104, 112, 120] {
        assert!(matches!(with(at, &huge), DiskFault::Size { .. }));
    }
    for at in [80, 88] {
        assert!(matches!(
            with(at, &huge),
            DiskFault::Rows(CsrError::TooLarge { .. })
        ));
    }
    let other_print = with(48, &[0; 32]);
    assert!(matches!(other_print, DiskFault::Fingerprint { .. }));
    // Row pointers of A, its columns, its values: 3, 2 and 2 of them.
    let rows = HEADER_BYTES;
    let pointers = with(rows, &7u32.to_le_bytes());
    assert!(matches!(
        pointers,
        DiskFault::Rows(CsrError::FirstRowPointer { got: 7 })
    ));
    let columns = with(rows + 12, &99u32.to_le_bytes());
    assert!(matches!(
        columns,
        DiskFault::Rows(CsrError::ColumnOutOfRange { .. })
    ));
    let scalar = with(rows + 20 + 32, &[0xff; 32]);
    assert!(matches!(
        scalar,
        DiskFault::Scalar {
            matrix: 'A',
            index: 1
        }
    ));
    let changed = with(rows + 20, &[2]);
    assert!(matches!(changed, DiskFault::Fingerprint { .. }));
}

#[test]
fn another_circuit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.r1cs");
    write(&path, &some_r1cs(2), "").unwrap();
    let error = read::<Scalar>(&path, Some(some_r1cs(3).fingerprint())).unwrap_err();
    assert!(matches!(error.fault, DiskFault::Fingerprint { .. }));
}

/// Each mutant has a good checksum.
#[test]
fn mutated_files_are_errors_or_constraint_systems() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("circuit.r1cs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/rows");
    let corpus = [0, 2, 9]
        .into_iter()
        .fold(Corpus::read(folder), |corpus, rows| {
            write(&path, &some_r1cs(rows), "label").unwrap();
            corpus.with(fs::read(&path).unwrap())
        });
    let decode = |input: &[u8]| {
        let mut bytes = input.to_vec();
        if bytes.len() >= CHECKSUM_BYTES {
            damage::sign(&mut bytes);
        }
        fs::write(&path, &bytes).unwrap();
        read::<Scalar>(&path, None).map(|stored| {
            assert_eq!(stored.header.fingerprint, stored.r1cs.fingerprint());
        })
    };
    corpus.fuzz_decoder("files of rows", 4_000, decode, |_| true);
}
