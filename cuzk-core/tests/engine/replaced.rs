//! Parameters that are replaced on disk while the engine runs.

use std::fs;
use std::path::Path;

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_core::config::Devices;
use cuzk_core::kinds::ProofKind;
use cuzk_core::memory::footprint::{READING_BYTES, Sums, circuit_bytes, partition_bytes};
use cuzk_core::params::{GenerateOptions, ParamCache, Shapes};
use cuzk_core::verify::verify_partition;
use cuzk_core::{Engine, Error};

use crate::common::device::{Scripted, engine_on};
use crate::common::{self, submit, tiny};

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
        ..GenerateOptions::default()
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

/// A partition is charged for the sums that its parameters' multiples make, or those
/// without, whichever are there when it begins.
#[test]
fn what_is_charged_follows_the_multiples() {
    let kind = ProofKind::WinningPost;
    let folder = tempfile::tempdir().unwrap();
    common::copy_params(kind, folder.path());
    if !common::prepare_params(kind, folder.path()) {
        return;
    }
    let mut config = common::config();
    config.srs.param_cache = folder.path().to_owned();
    config.gpus.devices = Devices::Cpu;
    (config.synthesis.threads, config.gpus.gpu_threads) = (2, 2);
    let circuit = common::circuit_with_params(kind);
    let shapes = common::shapes(kind, folder.path());
    let [without, with] = [Shapes::default(), shapes]
        .map(|shapes| partition_bytes(&circuit, &Sums::of(&config), &shapes));
    config.memory.critical_reserve_bytes = 0;
    config.memory.safety_margin_bytes = 1;
    let least = READING_BYTES.max(with + circuit_bytes(&circuit));
    assert!(least < without);
    config.memory.total_budget_bytes = least + 1;
    let engine = Engine::start(config).unwrap();
    let request = common::bundled_request(kind);
    let prove = || engine.submit(&request).unwrap().wait();
    let files = circuit.id().parameter_files().unwrap();
    let params = folder.path().join(&files.params);
    let [multiples, kept] = ["multiples", "kept"].map(|name| params.with_extension(name));
    let replace_params = || {
        fs::copy(&params, folder.path().join("new")).unwrap();
        fs::rename(folder.path().join("new"), &params).unwrap();
    };
    prove().unwrap();
    fs::rename(&multiples, &kept).unwrap();
    prove().unwrap();
    // The new ones have none.
    replace_params();
    let error = prove().unwrap_err();
    assert!(matches!(*error, Error::OverBudget(_)), "{error}");
    fs::rename(&kept, &multiples).unwrap();
    replace_params();
    prove().unwrap();
}
