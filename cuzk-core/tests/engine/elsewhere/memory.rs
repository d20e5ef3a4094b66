//! Partitions that this machine has no memory for, and others may have.

use cuzk_groth16::backend::footprint::READING_BYTES;

use super::*;

use crate::common::BoundedJob as _;

/// Starts an engine that begins all by itself, with no memory for a partition that is not
/// critical.
fn without_memory(folder: &Path) -> Shared {
    let mut config = tiny::config(folder);
    config.memory.total_budget_bytes = 6 * READING_BYTES;
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 3 * READING_BYTES;
    config.gpus.gpu_workers_per_device = 1;
    let device = Opened(Scripted::keeping(&config, 4 * READING_BYTES));
    Shared::start_on(device, config, false, no_decoder())
}

/// Waits until all partitions of the only job wait for other machines.
fn await_others(shared: &Shared, partitions: usize) {
    wait_until("its partitions wait for others", || {
        let jobs = shared.engine.status().jobs;
        let parts = jobs.first().map_or(Vec::new(), |job| job.parts.clone());
        let elsewhere = parts.iter().filter(|part| part.stage == Some("elsewhere"));
        elsewhere.count() == partitions
    });
}

#[test]
fn a_partition_without_memory_here_is_left_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let shared = without_memory(folder.path());
    let mut ample = shared.config.clone();
    ample.memory = tiny::config(folder.path()).memory;
    let other = engine_on(&ample, &[&Scripted::good(&ample)]);
    for _ in 0..2 {
        // The second job is known to have no memory when it is submitted.
        let job = submit(&shared.engine, tiny::job(KIND, 2));
        await_others(&shared, 2);
        // A machine that had one of them is gone.
        shared.remote.give_back(of(&job, 0), GiveBack::Free);
        await_others(&shared, 2);
        let proof = submit(&other, tiny::job(KIND, 2)).wait_bounded().unwrap();
        for (partition, proof) in proof.as_bytes().chunks(PROOF_BYTES).enumerate() {
            shared.prove(of(&job, partition), proof);
        }
        assert_eq!(job.wait_bounded().unwrap().as_bytes(), proof.as_bytes());
    }
    assert_eq!(shared.device.started(), 0);
}

#[test]
fn a_partition_that_nobody_has_memory_for_ends_with_that() {
    let folder = tempfile::tempdir().unwrap();
    let shared = without_memory(folder.path());
    let failed = submit(&shared.engine, tiny::job(KIND, 2));
    await_others(&shared, 2);
    shared.remote.give_back(of(&failed, 1), GiveBack::Failed);
    let error = failed.wait_bounded().unwrap_err();
    assert!(matches!(*error, Error::OverBudget(_)), "{error}");

    let dropped = submit(&shared.engine, tiny::job(KIND, 1));
    await_others(&shared, 1);
    shared.place.dropped.lock().unwrap().push(of(&dropped, 0));
    shared.remote.give_back(of(&dropped, 0), GiveBack::Free);
    let error = dropped.wait_bounded().unwrap_err();
    assert!(matches!(*error, Error::OverBudget(_)), "{error}");
}
