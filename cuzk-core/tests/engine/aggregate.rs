//! `Engine::aggregate`. The proofs of a non-interactive PoRep are simulated, here and in the tests
//! of the command line, but for one partition that is proved here. The chain's verifier has a
//! process of its own: it finds its files through the environment only.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cuzk_core::aggregate::{
    AggregationKeys, Cancellation, aggregate_request_while, memory_bytes, srs_path,
};
use cuzk_core::engine::aggregate_while;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::verify::Verdict;
use cuzk_filecoin::{
    AggregateRequest, ProofRequest, SectorSize, decode, decode_partition, reference, vanilla,
};
use cuzk_groth16::aggregate::keys_bytes;
use cuzk_memory::Checkpoint;
use cuzk_testing::own_process::{given, run_in_own_process};
use cuzk_testing::simulated::simulated_proofs;
use cuzk_testing::{aggregate_request, folder_with_porep_key, put_srs};
use serde_json::{Value, json};

use super::*;

use crate::common::BoundedJob as _;

/// The charge for the keys, which stays.
const KEYS_BYTES: u64 = keys_bytes(AggregateRequest::PROOFS_MAX);

/// A configuration whose folder has no parameters of PoRep but the verifying key.
fn config_in(folder: &Path) -> Config {
    let mut config = common::config();
    config.srs.param_cache = folder.to_owned();
    config
}

#[test]
fn an_engine_aggregates_without_parameters_and_names_a_missing_srs() {
    let folder = folder_with_porep_key(&common::param_cache());
    let engine = Engine::start(config_in(folder.path())).unwrap();
    let missing = engine.aggregate(&aggregate_request(2)).unwrap_err();
    assert_eq!(ErrorCode::of(&missing), ErrorCode::ParametersMissing);
    assert!(missing.is_input() && missing.to_string().contains("--srs"));

    put_srs(folder.path(), 3, 4);
    let three = engine.aggregate(&aggregate_request(3)).unwrap();
    let again = engine.aggregate(&aggregate_request(3)).unwrap();
    // An aggregate has no randomness. The hash of the sectors tells it from that of others.
    assert_eq!(three.as_bytes(), again.as_bytes());
    let four = engine.aggregate(&aggregate_request(4)).unwrap();
    assert_ne!(three.as_bytes(), four.as_bytes());
    assert_eq!(three.as_bytes().len(), four.as_bytes().len());
    // The SRS is too short for eight proofs.
    let short = engine.aggregate(&aggregate_request(5)).unwrap_err();
    assert_eq!(ErrorCode::of(&short), ErrorCode::ParametersUnusable);
    engine.shutdown();
}

#[test]
fn an_aggregate_follows_an_srs_that_was_replaced_by_a_usable_one() {
    let folder = folder_with_porep_key(&common::param_cache());
    let engine = Engine::start(config_in(folder.path())).unwrap();
    let aggregate = || engine.aggregate(&aggregate_request(2)).unwrap();
    put_srs(folder.path(), 3, 2);
    let first = aggregate();
    // Keys depend on the SRS, and so do commitments.
    put_srs(folder.path(), 4, 4);
    let second = aggregate();
    assert_ne!(first.as_bytes(), second.as_bytes());
    // An SRS that cannot be used leaves the old key, for proofs that it was read for.
    let (path, new) = (srs_path(folder.path()), folder.path().join("cut"));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&new, &whole[1..]).unwrap();
    std::fs::rename(&new, &path).unwrap();
    assert_eq!(aggregate().as_bytes(), second.as_bytes());
    let unread = engine.aggregate(&aggregate_request(4)).unwrap_err();
    assert_eq!(ErrorCode::of(&unread), ErrorCode::ParametersUnusable);
    // So does one that is gone.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(aggregate().as_bytes(), second.as_bytes());
    put_srs(folder.path(), 3, 4);
    assert_eq!(aggregate().as_bytes(), first.as_bytes());
    engine.shutdown();
}

/// The simulated proofs of the other partitions take no time.
#[test]
fn a_partition_of_a_non_interactive_porep_is_proved_and_aggregated() {
    let request = vanilla::make_non_interactive(SectorSize::KiB2, 1).unwrap();
    let statement = decode(&request).unwrap();
    let mut proofs = simulated_proofs(&*statement, &common::param_cache());
    let last = statement.partitions() - 1;
    let alone = statement.partition_request(last).unwrap();
    let engine = Engine::start(common::config()).unwrap();
    let job = common::submit(&engine, decode_partition(&alone).unwrap().into());
    // An engine returns no proof that it has not verified.
    let proof = job.wait_bounded().unwrap();
    engine.shutdown();
    assert_ne!(&proofs[last * 192..], proof.as_bytes());
    proofs[last * 192..].copy_from_slice(proof.as_bytes());

    let folder = folder_with_porep_key(&common::param_cache());
    put_srs(folder.path(), 3, 16);
    let engine = Engine::start(config_in(folder.path())).unwrap();
    // The proofs are verified with the public inputs of all partitions.
    let sectors = AggregateRequest::of(&request, proofs).unwrap();
    engine.aggregate(&sectors).unwrap();
    engine.shutdown();
}

/// A change of the sectors of a request.
type Change<'a> = &'a dyn Fn(&mut [Value]);

/// Seals a non-interactive sector. Returns its request, and the simulated proofs of its
/// partitions.
fn non_interactive_sector(seed: u64) -> (ProofRequest, Vec<u8>) {
    let request = vanilla::make_non_interactive(SectorSize::KiB2, seed).unwrap();
    let statement = decode(&request).unwrap();
    let proofs = simulated_proofs(&*statement, &common::param_cache());
    (request, proofs)
}

#[test]
#[ignore = "run by the_chains_verifier_accepts_an_aggregate_of_non_interactive_sectors"]
fn non_interactive_sectors_in_their_own_process() {
    let Some(folder) = given().map(PathBuf::from) else {
        return;
    };
    let [(first, proofs), (second, other_proofs)] = [1, 2].map(non_interactive_sector);
    let mut sectors = AggregateRequest::of(&first, proofs).unwrap();
    sectors.push(&second, other_proofs).unwrap();
    assert_eq!((sectors.partitions(), sectors.padded_len()), (13, 32));
    let engine = Engine::start(config_in(&folder)).unwrap();
    let aggregate = engine.aggregate(&sectors).unwrap().as_bytes().to_vec();
    let verified = |sectors: &AggregateRequest, bytes: &[u8]| {
        let verdict = reference::verify_aggregate(sectors, bytes);
        verdict.unwrap() == Verdict::Valid
    };
    assert!(verified(&sectors, &aggregate));

    // A point in the place of another one, near the end: it decodes.
    let mut altered = aggregate.clone();
    let len = altered.len();
    altered.copy_within(len - 48.., len - 96);
    assert!(!verified(&sectors, &altered));
    let list: Value = serde_json::from_slice(&sectors.to_json()).unwrap();
    let changed = |change: Change<'_>| {
        let mut list = list.clone();
        change(list["sectors"].as_array_mut().unwrap());
        AggregateRequest::from_json(&serde_json::to_vec(&list).unwrap()).unwrap()
    };
    let same = changed(&|_| ());
    assert!(same == sectors && verified(&same, &aggregate));
    // The aggregate is of these sectors, in this order, and of nothing else.
    let of_the_first =
        |key: &'static str| move |sectors: &mut [Value]| sectors[1][key] = sectors[0][key].clone();
    let (comm_r, ticket) = (of_the_first("comm_r"), of_the_first("ticket"));
    let next = |sectors: &mut [Value]| sectors[1]["sector_number"] = json!(7);
    let swap = |sectors: &mut [Value]| sectors.swap(0, 1);
    let changes: [Change<'_>; 4] = [&comm_r, &ticket, &next, &swap];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(!verified(&changed(change), &aggregate), "{number}");
    }

    // The first proof of the second sector in the place of its last one, in base64.
    let wrong = changed(&|sectors: &mut [Value]| {
        let proofs = sectors[1]["proof"].as_str().unwrap();
        let [first, others] = [&proofs[..256], &proofs[..12 * 256]];
        sectors[1]["proof"] = json!([others, first].concat());
    });
    let refused = engine.aggregate(&wrong).unwrap_err().to_string();
    assert!(refused.starts_with("sectors[1].proof: "), "{refused}");
    assert!(refused.contains("partition 12"), "{refused}");
    engine.shutdown();
}

#[test]
fn the_chains_verifier_accepts_an_aggregate_of_non_interactive_sectors() {
    let folder = folder_with_porep_key(&common::param_cache());
    put_srs(folder.path(), 3, 32);
    let test = "aggregate::non_interactive_sectors_in_their_own_process";
    let variable = ("FIL_PROOFS_PARAMETER_CACHE", folder.path().as_os_str());
    run_in_own_process(test, folder.path(), &[variable]);
}

#[test]
fn an_aggregation_larger_than_the_budget_is_refused() {
    let folder = folder_with_porep_key(&common::param_cache());
    put_srs(folder.path(), 3, 2);
    let mut config = config_in(folder.path());
    let need_bytes = memory_bytes(&config, &aggregate_request(2)).unwrap() + KEYS_BYTES;
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 0;
    let aggregate = |total_budget_bytes| {
        let mut config = config.clone();
        config.memory.total_budget_bytes = total_budget_bytes;
        let engine = Engine::start(config).unwrap();
        engine.aggregate(&aggregate_request(2)).map(|_| {
            let memory = engine.status().memory;
            assert_eq!(memory.used_bytes, memory.idle_bytes);
            memory.idle_bytes
        })
    };
    assert_eq!(aggregate(need_bytes + 1).unwrap(), KEYS_BYTES);
    let error = aggregate(need_bytes).unwrap_err();
    assert!(matches!(error, Error::OverBudget(_)), "{error}");
    assert!(error.is_input());
}

/// There is memory for a partition with what stays of it, and not for the keys beside it.
#[test]
fn keys_for_aggregations_and_circuits_give_way_to_each_other() {
    let kind = ProofKind::WinningPost;
    let folder = folder_with_porep_key(&common::param_cache());
    let circuit = common::circuit_with_params(kind);
    common::copy_params(kind, folder.path());
    put_srs(folder.path(), 3, 2);
    let mut config = config_in(folder.path());
    let circuit_bytes = circuit_bytes(&circuit.sizes());
    let own_bytes = partition_bytes(
        &circuit.sizes(),
        &config.cpu_workspace(),
        &Shapes::default(),
    );
    config.memory.total_budget_bytes = own_bytes + circuit_bytes + 1;
    config.memory.safety_margin_bytes = 1;
    config.memory.critical_reserve_bytes = 0;
    let engine = Engine::start(config).unwrap();
    let request = cuzk_testing::bundled_request(kind);
    let used_bytes = || engine.status().memory.used_bytes;
    let first = engine.aggregate(&aggregate_request(2)).unwrap();
    assert_eq!(used_bytes(), KEYS_BYTES);
    engine.submit(&request).unwrap().wait_bounded().unwrap();
    assert_eq!(used_bytes(), circuit_bytes);
    // The keys are read again.
    let second = engine.aggregate(&aggregate_request(2)).unwrap();
    assert_eq!(first.as_bytes(), second.as_bytes());
    assert!(used_bytes() >= KEYS_BYTES);
    engine.shutdown();
}

#[test]
fn aggregations_at_once_all_end_and_an_ended_engine_refuses_them() {
    let folder = folder_with_porep_key(&common::param_cache());
    put_srs(folder.path(), 3, 4);
    let engine = Engine::start(config_in(folder.path())).unwrap();
    thread::scope(|scope| {
        for sectors in [1, 2, 3, 4] {
            let engine = &engine;
            scope.spawn(move || engine.aggregate(&aggregate_request(sectors)).unwrap());
        }
    });
    engine.close();
    let closed = engine.aggregate(&aggregate_request(1)).unwrap_err();
    assert!(matches!(closed, Error::ShuttingDown), "{closed}");
}

#[test]
fn a_stopped_aggregation_ends_and_gives_its_memory_back() {
    let folder = folder_with_porep_key(&common::param_cache());
    put_srs(folder.path(), 3, 4);
    let config = config_in(folder.path());
    let engine = Engine::start(config.clone()).unwrap();
    let (request, stop) = (aggregate_request(2), Cancellation::default());
    let made = aggregate_while(&engine, &request, &stop).unwrap();
    stop.cancel();
    let stopped = aggregate_while(&engine, &request, &stop).unwrap_err();
    assert!(matches!(stopped, Error::Cancelled), "{stopped}");
    let memory = engine.status().memory;
    assert_eq!(memory.used_bytes, memory.idle_bytes);
    let again = engine.aggregate(&request).unwrap();
    assert_eq!(made.as_bytes(), again.as_bytes());
    engine.shutdown();

    // Kernels ask, too.
    let keys = AggregationKeys::new(&config);
    let under = |checks: usize| {
        let asked = AtomicUsize::new(0);
        let is_over = || asked.fetch_add(1, Ordering::Relaxed) >= checks;
        let ended = aggregate_request_while(&config, &keys, &request, &Checkpoint::asking(is_over));
        (ended, asked.load(Ordering::Relaxed))
    };
    let (whole, asked) = under(usize::MAX);
    assert_eq!(whole.unwrap().as_bytes(), made.as_bytes());
    assert!(asked > 1, "{asked}");
    for checks in [0, asked / 2] {
        let stopped = under(checks).0.unwrap_err();
        assert!(matches!(stopped, Error::Stopped), "{checks}: {stopped}");
    }
}
