//! Files of the SRS: those of bellperson are read, and damaged ones are refused by name.

use std::path::Path;

use bellperson::groth16::aggregate::setup_fake_srs;
use blstrs::{Bls12, G1Affine};
use cuzk_groth16::aggregate::{AggregationKey, InnerProductSrs, SrsError, open_srs, write_new_srs};
use cuzk_testing::fuzz::Corpus;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::{PROOFS_MAX, srs, srs_bytes};

/// Opens a file of these bytes for so many proofs.
fn open(bytes: &[u8], proofs: usize) -> Result<InnerProductSrs, SrsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.srs");
    std::fs::write(&path, bytes).unwrap();
    open_srs(&path, proofs)
}

#[test]
fn a_file_of_bellperson_is_read() {
    let theirs = setup_fake_srs::<Bls12, _>(&mut ChaCha8Rng::seed_from_u64(1), 4);
    let mut bytes = Vec::new();
    theirs.write(&mut bytes).unwrap();
    let ours = open(&bytes, 2).unwrap();
    // The powers that two proofs need, and no more.
    assert!(AggregationKey::new(&ours, 2).is_ok() && AggregationKey::new(&ours, 4).is_err());
    assert!(AggregationKey::new(&open(&bytes, 4).unwrap(), 4).is_ok());
}

#[test]
fn a_file_is_written_whole_and_never_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.srs");
    let srs = srs();
    write_new_srs(&srs, &path).unwrap();
    assert!(std::fs::read(&path).unwrap() == srs_bytes(&srs));
    let opened = open_srs(&path, PROOFS_MAX).unwrap();
    assert!(srs_bytes(&opened).len() < srs_bytes(&srs).len());
    let again = write_new_srs(&InnerProductSrs::insecure(8, 2).unwrap(), &path);
    assert!(matches!(again, Err(SrsError::Io { .. })));
    assert!(std::fs::read(&path).unwrap() == srs_bytes(&srs));
}

#[test]
fn a_file_that_is_cut_or_too_long_is_refused() {
    let bytes = srs_bytes(&srs());
    for len in [0, 3, 4, 100, bytes.len() / 2, bytes.len() - 1] {
        let cut = open(&bytes[..len], 2);
        assert!(matches!(cut, Err(SrsError::Length { .. })), "{len}");
    }
    let long = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(open(&long, 2), Err(SrsError::Length { .. })));
    let missing = open_srs(Path::new("/nowhere/x.srs"), 2).unwrap_err();
    assert!(missing.is_missing());
    assert!(missing.to_string().starts_with("/nowhere/x.srs: "));
}

#[test]
fn counts_are_checked_before_points_are_read() {
    let mut bytes = srs_bytes(&srs());
    assert!(matches!(
        open(&bytes, 2 * PROOFS_MAX),
        Err(SrsError::TooShort {
            proofs: 32,
            needed: 64,
            got: 32,
            ..
        })
    ));
    bytes[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(matches!(open(&bytes, 2), Err(SrsError::Count { .. })));
    bytes[..4].copy_from_slice(&1u32.to_be_bytes());
    assert!(matches!(open(&bytes, 2), Err(SrsError::TooShort { .. })));
}

/// A point on the curve of G1 that is not in the subgroup: the smallest x that has one.
fn outside_of_the_subgroup() -> [u8; 48] {
    (0..=u8::MAX)
        .map(|x| {
            let mut bytes = [0; 48];
            (bytes[0], bytes[47]) = (0x80, x);
            bytes
        })
        .find(|bytes| {
            let is_on_curve = G1Affine::from_compressed_unchecked(bytes).is_some();
            let is_in_group = G1Affine::from_compressed(bytes).is_some();
            bool::from(is_on_curve & !is_in_group)
        })
        .unwrap()
}

#[test]
fn a_point_outside_of_its_group_is_named() {
    let bytes = srs_bytes(&srs());
    let infinity = {
        let mut bytes = [0; 48];
        bytes[0] = 0xc0;
        bytes
    };
    // The second point of the first vector.
    for point in [outside_of_the_subgroup(), infinity, [0xff; 48]] {
        let mut damaged = bytes.clone();
        damaged[4 + 48..4 + 96].copy_from_slice(&point);
        let refused = open(&damaged, 2).unwrap_err();
        assert!(matches!(refused, SrsError::Point { index: 1, .. }));
        let message = refused.to_string();
        assert!(message.contains("powers of alpha in G1"), "{message}");
    }
    // A point that is not needed is not looked at.
    let mut damaged = bytes.clone();
    damaged[4 + 10 * 48..4 + 11 * 48].copy_from_slice(&[0xff; 48]);
    assert!(open(&damaged, 2).is_ok());
    let last = damaged.len() - 1;
    damaged[last - 96 * 31] ^= 1;
    assert!(open(&damaged, 2).is_err());
}

#[test]
fn mutated_files_are_refused_or_have_points_of_their_groups() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/srs");
    let small = InnerProductSrs::insecure(7, 2).unwrap();
    let decode =
        |input: &[u8]| open(input, 2).map(|srs| assert!(AggregationKey::new(&srs, 2).is_ok()));
    let corpus = Corpus::read(corpus).with(srs_bytes(&small));
    corpus.fuzz_decoder("files of an SRS", 2_000, decode, |_| true);
}
