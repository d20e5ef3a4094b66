//! Parameters that are replaced on disk while the engine runs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellperson::groth16::Proof;
use blstrs::Bls12;
use cuzk_core::config::Devices;
use cuzk_core::job::ProofOutput;
use cuzk_core::{Engine, Error};
use cuzk_filecoin::ProofKind;
use cuzk_filecoin::verify::PARTITION_PROOF_BYTES;
use cuzk_groth16::backend::footprint::{READING_BYTES, circuit_bytes, partition_bytes};
use cuzk_groth16::params::{GenerateOptions, ParamCache, Shapes};
use cuzk_groth16::verify::verify;
use cuzk_memory::Checkpoint;

use crate::common::BoundedJob as _;
use crate::common::device::{Gate, Scripted, engine_on, held_up};
use crate::common::tiny::{self, Hooked};
use crate::common::{self, MOMENTS, submit, wait_until};

const KIND: ProofKind = ProofKind::SnapDeals;

/// Whether each partition of a proof holds with the key that is in a folder now.
fn hold(proof: &ProofOutput, folder: &Path) -> Vec<bool> {
    let files = cuzk_testing::files(KIND);
    let key = ParamCache::new(folder).verifying_key(&files).unwrap();
    let job = tiny::job(KIND, proof.partitions());
    let partitions = proof.as_bytes().chunks(PARTITION_PROOF_BYTES).enumerate();
    let holds = |(partition, proof)| {
        let proof = Proof::<Bls12>::read(proof).unwrap();
        let inputs = job.public_inputs(partition).unwrap();
        verify(&key, &proof, &inputs).is_ok()
    };
    partitions.map(holds).collect()
}

fn holds(proof: &ProofOutput, folder: &Path) -> bool {
    hold(proof, folder) == [true]
}

/// Makes parameters of another key.
fn others(folder: &Path) -> [String; 2] {
    let other_seed = GenerateOptions {
        seed: 1,
        ..GenerateOptions::default()
    };
    tiny::generate(KIND, folder, other_seed);
    let files = cuzk_testing::files(KIND);
    [files.params, files.vk]
}

/// Has the file of this name take the place of another's.
fn replace(name: &str, from: &Path, to: &Path) {
    fs::copy(from.join(name), to.join("new")).unwrap();
    fs::rename(to.join("new"), to.join(name)).unwrap();
}

#[test]
fn what_begins_after_parameters_were_replaced_is_proved_with_the_new_ones() {
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let config = tiny::config(old.path());
    let names = others(new.path());
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let prove = || {
        let proof = submit(&engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
        [&old, &new].map(|folder| holds(&proof, folder.path()))
    };
    assert_eq!(prove(), [true, false]);
    for name in &names {
        replace(name, new.path(), old.path());
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

/// One file is replaced after the other, and a fetch takes its time.
#[test]
fn while_half_of_the_parameters_is_replaced_the_old_ones_go_on() {
    let [old, new, kept] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let config = tiny::config(old.path());
    let [params, vk] = others(new.path());
    fs::copy(old.path().join(&vk), kept.path().join(&vk)).unwrap();
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let prove = || submit(&engine, tiny::job(KIND, 1)).wait_bounded().unwrap();
    prove();
    replace(&params, new.path(), old.path());
    for _ in 0..2 {
        assert!(holds(&prove(), kept.path()), "with the old key");
    }
    replace(&vk, new.path(), old.path());
    assert!(holds(&prove(), new.path()));
    // Written to where it is, nothing of it is whole.
    fs::write(old.path().join(&params), "no parameters").unwrap();
    let job = submit(&engine, tiny::job(KIND, 1));
    assert!(matches!(*job.wait_bounded().unwrap_err(), Error::Params(_)));
    engine.shutdown();
}

#[test]
fn a_job_ends_with_proofs_of_one_key() {
    prove_while_replaced(|_| {});
}

/// It was accepted before, whenever one of its partitions has to be proved again.
#[test]
fn a_job_ends_with_proofs_of_one_key_also_when_the_engine_closes() {
    prove_while_replaced(Engine::close);
}

/// The first partition is proved with the old parameters, the others with the new ones.
fn prove_while_replaced(then: impl FnOnce(&Engine)) {
    const PARTITIONS: usize = 3;
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut config = tiny::config(old.path());
    config.synthesis.partition_workers = 1;
    let names = others(new.path());
    let engine = engine_on(&config, &[&Scripted::good(&config)]);
    let (from, to) = (new.path().to_owned(), old.path().to_owned());
    let is_first = AtomicBool::new(true);
    let replace_once = move |_: &Checkpoint<'_>| {
        if is_first.swap(false, Ordering::SeqCst) {
            names.iter().for_each(|name| replace(name, &from, &to));
        }
    };
    let job = Arc::new(Hooked {
        in_witness: Box::new(replace_once),
        ..Hooked::from(tiny::job(KIND, PARTITIONS))
    });
    let job = submit(&engine, job);
    then(&engine);
    let proof = job.wait_for(MOMENTS).unwrap().unwrap();
    assert_eq!(hold(&proof, new.path()), [true; PARTITIONS]);
    engine.shutdown();
}

/// A device makes what it needs of them for a partition that is on its way already.
#[test]
fn nothing_is_kept_for_parameters_that_were_replaced() {
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let mut config = tiny::config(old.path());
    let names = others(new.path());
    let (engine, device) = held_up(&mut config);
    let first = submit(&engine, tiny::job(KIND, 1));
    wait_until("the device has it", || device.started() == 1);
    for name in &names {
        replace(name, new.path(), old.path());
    }
    let has_begun = Arc::new(Gate::default());
    let begins = Arc::clone(&has_begun);
    let second = submit(
        &engine,
        Arc::new(Hooked {
            in_witness: Box::new(move |_: &Checkpoint<'_>| begins.open()),
            ..Hooked::from(tiny::job(KIND, 1))
        }),
    );
    has_begun.wait_bounded();
    device.gate.open();
    for job in [first, second] {
        job.wait_bounded().unwrap();
    }
    assert_eq!(device.num_params_kept(), 1);
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
        .map(|shapes| partition_bytes(&circuit.sizes(), &config.cpu_workspace(), &shapes));
    config.memory.critical_reserve_bytes = 0;
    config.memory.safety_margin_bytes = 1;
    let least = READING_BYTES.max(with + circuit_bytes(&circuit.sizes()));
    assert!(least < without);
    config.memory.total_budget_bytes = least + 1;
    let engine = Engine::start(config).unwrap();
    let request = cuzk_testing::bundled_request(kind);
    let prove = || engine.submit(&request).unwrap().wait_bounded();
    let files = cuzk_testing::files(kind);
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
