//! Parameters that are replaced on disk while the engine runs.

use std::fs;
use std::path::Path;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_core::kinds::ProofKind;
use cuzk_core::params::{GenerateOptions, ParamCache};
use cuzk_core::verify::verify_partition;

use crate::common::device::{Scripted, engine_on};
use crate::common::{submit, tiny};

const KIND: ProofKind = ProofKind::SnapDeals;

/// Whether a proof holds with the key that is in a folder now.
fn holds(proof: &[u8], folder: &Path) -> bool {
    let files = tiny::id(KIND).parameter_files().unwrap();
    let key = ParamCache::new(folder).verifying_key(&files).unwrap();
    let proof = Proof::<Bls12>::read(proof).unwrap();
    let inputs = tiny::job(KIND, 1).public_inputs(0).unwrap();
    verify_partition(&key, &proof, &inputs, 0).is_ok()
}

#[test]
fn what_begins_after_parameters_were_replaced_is_proved_with_the_new_ones() {
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let config = tiny::config(old.path());
    let other_seed = GenerateOptions {
        seed: 1,
        acknowledge_insecure: false,
    };
    tiny::generate(KIND, new.path(), other_seed);
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let prove = || {
        let proof = submit(&engine, tiny::job(KIND, 1)).wait().unwrap();
        [&old, &new].map(|folder| holds(proof.as_bytes(), folder.path()))
    };
    assert_eq!(prove(), [true, false]);
    let files = tiny::id(KIND).parameter_files().unwrap();
    let kept = tempfile::tempdir().unwrap();
    for name in [&files.params, &files.vk] {
        fs::rename(old.path().join(name), kept.path().join(name)).unwrap();
        fs::copy(new.path().join(name), old.path().join("new")).unwrap();
        fs::rename(old.path().join("new"), old.path().join(name)).unwrap();
    }
    // One folder has what the other has.
    assert_eq!(prove(), [true, true]);
    let faults = engine.status().devices[0].faults;
    assert_eq!(
        faults, 0,
        "no proof with the one was verified with the other"
    );
    engine.shutdown();
}
