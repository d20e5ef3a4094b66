//! Proofs against both verifiers, over real WindowPoSt parameters made here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use bellperson::Circuit;
use bellperson::groth16::{
    Parameters, PreparedVerifyingKey, generate_random_parameters, prepare_verifying_key,
};
use blstrs::{Bls12, Scalar};
use cuzk_core::kinds::verify::{Rejection, Verdict, verify};
use cuzk_core::kinds::{CircuitId, CircuitVisitor, Job, decode, reference};
use cuzk_core::{Error, ProofRequest};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn bundled(name: &str) -> ProofRequest {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/sector-2kib"));
    ProofRequest::from_json(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

struct Generate;

impl CircuitVisitor for Generate {
    type Output = Parameters<Bls12>;

    fn visit<C: Circuit<Scalar> + Send>(self, circuit: C) -> Result<Self::Output, Error> {
        Ok(generate_random_parameters(circuit, &mut ChaCha8Rng::seed_from_u64(7)).unwrap())
    }
}

/// Writes parameters and verifying key where the proofs library looks.
fn generate(id: CircuitId, folder: &Path) -> PreparedVerifyingKey<Bls12> {
    let parameters = id.with_blank(Generate).unwrap();
    let create = |name| std::fs::File::create(folder.join(name)).unwrap();
    parameters
        .write(create(id.params_file_name().unwrap()))
        .unwrap();
    parameters
        .vk
        .write(create(id.vk_file_name().unwrap()))
        .unwrap();
    prepare_verifying_key(&parameters.vk)
}

fn prove(job: &dyn Job, folder: &Path) -> Vec<u8> {
    let path = folder.join(job.circuit().params_file_name().unwrap());
    let parameters = Parameters::build_mapped_parameters(path, false).unwrap();
    let proof = job
        .reference_proof(0, &parameters, Scalar::from(3), Scalar::from(5))
        .unwrap();
    let mut bytes = Vec::new();
    proof.write(&mut bytes).unwrap();
    bytes
}

#[test]
fn both_verifiers_tell_a_proof_from_its_alterations() {
    let folder = tempfile::tempdir().unwrap();
    let job = decode(&bundled("window-post.json")).unwrap();
    let key = generate(job.circuit(), folder.path());
    let proof = prove(job.as_ref(), folder.path());

    assert_eq!(verify(job.as_ref(), &proof, &key).unwrap(), Verdict::Valid);
    reject(job.as_ref(), &proof, &key);
    let other = decode(&bundled("winning-post.json")).unwrap();
    let verdict = verify(other.as_ref(), &proof, &key).unwrap();
    assert_eq!(
        verdict,
        Verdict::Invalid(Rejection::VerifyingKey { inputs: 132 })
    );

    std::fs::write(folder.path().join("proof"), &proof).unwrap();
    // The library reads its settings once per process, from the environment.
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "reference_in_its_own_process",
            "--ignored",
            "--nocapture",
        ])
        .env("FIL_PROOFS_PARAMETER_CACHE", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{output:?}"
    );
}

fn reject(job: &dyn Job, proof: &[u8], key: &PreparedVerifyingKey<Bls12>) {
    for bytes in [&proof[..0], &proof[..191], &[proof, proof].concat()] {
        let expected = Rejection::Length {
            expected: 192,
            got: bytes.len(),
        };
        assert_eq!(verify(job, bytes, key).unwrap(), Verdict::Invalid(expected));
    }
    let mut not_a_point = proof.to_vec();
    not_a_point[1] ^= 1;
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
    // The compression's sign bit: still a point, of another proof.
    let mut negated = proof.to_vec();
    negated[0] ^= 0x20;
    let verdict = verify(job, &negated, key).unwrap();
    assert_eq!(
        verdict,
        Verdict::Invalid(Rejection::Equation { partition: 0 })
    );
}

#[test]
#[ignore = "run by both_verifiers_tell_a_proof_from_its_alterations, with its parameter cache"]
fn reference_in_its_own_process() {
    let Some(folder) = std::env::var_os("FIL_PROOFS_PARAMETER_CACHE").map(PathBuf::from) else {
        return;
    };
    let Ok(proof) = std::fs::read(folder.join("proof")) else {
        return;
    };
    let request = bundled("window-post.json");
    assert_eq!(reference::verify(&request, &proof).unwrap(), Verdict::Valid);

    let mut negated = proof.clone();
    negated[0] ^= 0x20;
    for altered in [&negated[..], &proof[..191], &[0; 192]] {
        assert!(!reference::verify(&request, altered).unwrap().is_valid());
    }
    let error = reference::verify(&bundled("snap-deals.json"), &proof).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let error = reference::verify(&bundled("porep-c1.json"), &proof).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}
