//! Files of multiples that are damaged, contradict themselves or cannot be read.

use std::fs;

use cuzk_groth16::params::ParamsError;
use cuzk_kernels::Isa;

use crate::multiples::{Case, HEADER_BYTES};

#[test]
fn a_damaged_file_is_refused() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    case.write(40 << 20).unwrap();
    let good = fs::read(case.path()).unwrap();
    // A digest of 32 bytes follows the text.
    let header = 12 + header_text(&good).len() + 32;
    let lengths = [
        0,
        1,
        8,
        11,
        12,
        header - 1,
        header,
        HEADER_BYTES,
        good.len() - 1,
    ];
    for len in lengths {
        fs::write(case.path(), &good[..len]).unwrap();
        let outcome = case.open(Isa::best());
        assert!(outcome.is_err(), "cut to {len}");
    }
    let last = good.len() - 1;
    for at in (0..header)
        .step_by(7)
        .chain([8, 9, 10, 11, HEADER_BYTES, good.len() / 2, last])
    {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(case.path(), &bad).unwrap();
        assert!(!case.problem(Isa::best()).is_empty(), "byte {at}");
    }
    let mut hostile = good.clone();
    hostile[8..12].fill(0xff);
    fs::write(case.path(), &hostile).unwrap();
    assert!(case.problem(Isa::best()).contains("cut short"));
    fs::write(case.path(), &good).unwrap();
    assert!(case.open(Isa::best()).unwrap().is_some());
}

/// Returns the text of a file's header. It follows the magic and its own length.
fn header_text(file: &[u8]) -> &[u8] {
    let len = u32::from_le_bytes(*file[8..].first_chunk().unwrap()) as usize;
    &file[12..12 + len]
}

/// Replaces the header of a file by what `change` makes of it. A digest of the new one follows it.
fn with_header(file: &[u8], change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut header = serde_json::from_slice(header_text(file)).unwrap();
    change(&mut header);
    let json = serde_json::to_vec(&header).unwrap();
    let len = u32::try_from(json.len()).unwrap().to_le_bytes();
    let digest = *blake3::hash(&json).as_bytes();
    let mut bytes = [&file[..8], &len, &json, &digest].concat();
    assert!(bytes.len() <= HEADER_BYTES);
    bytes.resize(HEADER_BYTES, 0);
    [&bytes, &file[HEADER_BYTES..]].concat()
}

#[test]
fn rows_of_another_length_than_their_dimensions_are_refused() {
    let case = Case::new();
    if cuzk_kernels::testing::ifma().is_none() {
        return;
    }
    case.write(40 << 20).unwrap();
    let good = fs::read(case.path()).unwrap();
    fs::write(case.path(), with_header(&good, |_| ())).unwrap();
    assert!(case.open(Isa::best()).unwrap().is_some());
    for section in 0..4 {
        let bad = with_header(&good, |header| {
            let rows = &mut header["sections"][section]["rows"];
            *rows = (rows.as_u64().unwrap() + 1).into();
        });
        fs::write(case.path(), bad).unwrap();
        let problem = case.problem(Isa::best());
        assert!(problem.contains("contradict"), "{section}: {problem}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error() {
    let case = Case::new();
    std::os::unix::fs::symlink(case.path(), case.path()).unwrap();
    let error = case.open(Isa::best()).unwrap_err();
    assert!(matches!(error, ParamsError::Io { .. }), "{error}");
}
