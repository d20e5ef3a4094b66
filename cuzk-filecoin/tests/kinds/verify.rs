//! The known answers against both verifiers, and what is not an answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellperson::groth16::PreparedVerifyingKey;
use blstrs::Bls12;
use cuzk_filecoin::Error;
use cuzk_filecoin::ProofRequest;
use cuzk_filecoin::verify::{Rejection, Verdict, verify};
use cuzk_filecoin::{ProofKind, Statement, decode, reference};
use cuzk_groth16::params::ParamCache;
use cuzk_testing::own_process::{given, run_in_own_process};

/// A proof of the bundled request of `kind`, over the tests' parameters.
pub(crate) fn known_answer(kind: ProofKind) -> Vec<u8> {
    let answers: BTreeMap<String, String> =
        serde_json::from_str(cuzk_testing::KNOWN_ANSWERS).unwrap();
    let digits = answers[&kind.to_string()].as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The compression's sign bit: still a point, of another proof.
fn negated(proof: &[u8]) -> Vec<u8> {
    let mut proof = proof.to_vec();
    proof[0] ^= 0x20;
    proof
}

#[test]
fn both_verifiers_tell_a_proof_from_its_alterations() {
    for kind in ProofKind::ALL {
        let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
        let _made = cuzk_testing::circuit_with_params(kind, &cache);
        let files = cuzk_testing::files(kind);
        let key = ParamCache::new(cache).verifying_key(&files).unwrap();
        let job = decode(&cuzk_testing::bundled_request(kind)).unwrap();
        let proof = known_answer(kind);
        assert_eq!(
            verify(&*job, &proof, &key).unwrap(),
            Verdict::Valid,
            "{kind}"
        );
        reject(&*job, &proof, &key);

        let other = if kind == ProofKind::Porep {
            ProofKind::SnapDeals
        } else {
            ProofKind::Porep
        };
        let other = decode(&cuzk_testing::bundled_request(other)).unwrap();
        let inputs = other.public_inputs(0).unwrap().len();
        let verdict = verify(&*other, &proof, &key).unwrap();
        assert_eq!(
            verdict,
            Verdict::Invalid(Rejection::VerifyingKey { inputs }),
            "{kind}"
        );
    }
    // The library reads its settings once per process, from the environment.
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    with_cache("verify::reference_in_its_own_process", &cache);
}

/// Runs a test in a process of its own, with this folder as the library's parameter cache.
fn with_cache(test: &str, folder: &Path) {
    let variable = ("FIL_PROOFS_PARAMETER_CACHE", folder.as_os_str());
    run_in_own_process(test, folder, &[variable]);
}

fn reject(job: &dyn Statement, proof: &[u8], key: &PreparedVerifyingKey<Bls12>) {
    for bytes in [&proof[..0], &proof[..191], &[proof, proof].concat()] {
        let expected = Rejection::Length {
            expected: 192,
            got: bytes.len(),
        };
        assert_eq!(verify(job, bytes, key).unwrap(), Verdict::Invalid(expected));
    }
    // An abscissa beyond the modulus, and the point at infinity.
    let mut not_a_point = proof.to_vec();
    not_a_point[0] |= 0x1f;
    let mut infinity = proof.to_vec();
    infinity[..48].fill(0);
    infinity[0] = 0xc0;
    for bytes in [not_a_point, infinity, vec![0; 192], vec![0xff; 192]] {
        let verdict = verify(job, &bytes, key).unwrap();
        assert!(
            matches!(verdict, Verdict::Invalid(Rejection::Encoding { .. })),
            "{verdict:?}"
        );
    }
    let verdict = verify(job, &negated(proof), key).unwrap();
    assert_eq!(
        verdict,
        Verdict::Invalid(Rejection::Equation { partition: 0 })
    );
}

#[test]
#[ignore = "run by both_verifiers_tell_a_proof_from_its_alterations, with its parameter cache"]
fn reference_in_its_own_process() {
    if given().is_none() {
        return;
    }
    for kind in ProofKind::ALL {
        let (request, proof) = (cuzk_testing::bundled_request(kind), known_answer(kind));
        assert_eq!(
            reference::verify(&request, &proof).unwrap(),
            Verdict::Valid,
            "{kind}"
        );
        for altered in [&negated(&proof)[..], &proof[..191], &[0; 192]] {
            assert!(
                !reference::verify(&request, altered).unwrap().is_valid(),
                "{kind}"
            );
        }
    }
    let bare =
        ProofRequest::from_json(&std::fs::read(cuzk_testing::data("porep-c1.json")).unwrap());
    let error = reference::verify(&bare.unwrap(), &known_answer(ProofKind::Porep)).unwrap_err();
    assert!(error.to_string().starts_with("miner_id: "), "{error}");
}

#[test]
#[ignore = "run by a_missing_key_is_named, with an empty parameter cache"]
fn no_key_in_its_own_process() {
    let Some(folder) = given().map(PathBuf::from) else {
        return;
    };
    let kind = ProofKind::WindowPost;
    let outcome = reference::verify(&cuzk_testing::bundled_request(kind), &known_answer(kind));
    assert!(matches!(outcome, Err(Error::Io { path, .. }) if path.starts_with(folder)));
}

#[test]
fn a_missing_key_is_named() {
    let folder = tempfile::tempdir().unwrap();
    with_cache("verify::no_key_in_its_own_process", folder.path());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
