//! Bundled requests with something altered, and which field of them is refused.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_filecoin::{Error, ProofRequest, decode};
use serde_json::{Value, json};

/// The field's modulus, little endian: the least value that is no element.
pub(crate) const MODULUS: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53,
    0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];

pub(crate) fn bundled(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/sector-2kib"));
    std::fs::read(folder.join(name)).unwrap()
}

/// Reads and decodes, and returns the field at fault.
fn fault(case: &str, bytes: &[u8]) -> String {
    let result = ProofRequest::from_json(bytes).and_then(|request| decode(&request).map(|_| ()));
    match result {
        Ok(()) => "none".to_owned(),
        Err(Error::InvalidRequest {
            field,
            problem,
            advice,
        }) => {
            assert!(!problem.is_empty() && !advice.is_empty(), "{case}");
            field
        }
        Err(error) => format!("another error: {error}"),
    }
}

/// Reads a bundled request with something altered.
pub(crate) fn read(file: &str, edit: Edit) -> Result<ProofRequest, Error> {
    let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
    edit(&mut request);
    ProofRequest::from_json(&serde_json::to_vec(&request).unwrap())
}

/// Asserts that a field of the request is at fault.
pub(crate) fn check(case: &str, bytes: &[u8], field: &str) {
    assert_eq!(fault(case, bytes), field, "{case}");
}

pub(crate) type Edit = fn(&mut Value);

/// A bundled request with something altered, and the field at fault.
pub(crate) struct Case(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) Edit,
    pub(crate) &'static str,
);

/// Asserts that a field is at fault once a bundled request is altered.
pub(crate) fn check_altered(what: &str, file: &str, edit: Edit, field: &str) {
    let mut request: Value = serde_json::from_slice(&bundled(file)).unwrap();
    edit(&mut request);
    let bytes = serde_json::to_vec(&request).unwrap();
    check(&format!("{file}: {what}"), &bytes, field);
}

pub(crate) fn run(cases: &[Case]) {
    for Case(what, file, edit, field) in cases {
        check_altered(what, file, *edit, field);
    }
}

pub(crate) fn encode(bytes: &[u8]) -> Value {
    Value::from(STANDARD.encode(bytes))
}

fn bytes_of(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// Alters the bytes behind a base64 string.
pub(crate) fn edit_bytes(value: &mut Value, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = bytes_of(value);
    edit(&mut bytes);
    *value = encode(&bytes);
}

/// Has the first vanilla proof three times.
pub(crate) fn thrice(request: &mut Value) {
    let proof = request["vanilla_proofs"][0].clone();
    request["vanilla_proofs"] = json!([proof, proof, proof]);
}
