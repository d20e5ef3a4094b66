//! Non-interactive PoRep: requests, and requests to aggregate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellperson::ConstraintSystem as _;
use cuzk_filecoin::{
    AggregateRequest, ProofKind, ProofRequest, SectorSize, Statement, decode, decode_partition,
    decode_reference, reference, vanilla,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Partitions of a sector of 2 KiB.
const PARTITIONS: usize = 13;

fn request() -> ProofRequest {
    vanilla::make_non_interactive(SectorSize::KiB2, 1).unwrap()
}

/// Bytes as long as the proofs of a sector.
fn proofs() -> Vec<u8> {
    vec![7; PARTITIONS * 192]
}

/// The C1 output of a request.
fn output(request: &ProofRequest) -> Value {
    let file: Value = serde_json::from_slice(&request.to_json()).unwrap();
    let output = STANDARD.decode(file["vanilla_proof"].as_str().unwrap());
    serde_json::from_slice(&output.unwrap()).unwrap()
}

fn public_inputs(statement: &dyn Statement) -> Vec<blstrs::Scalar> {
    let partitions = 0..statement.partitions();
    let inputs = partitions.flat_map(|partition| statement.public_inputs(partition).unwrap());
    inputs.collect()
}

#[test]
fn a_request_has_its_partitions_and_no_need_of_a_seed() {
    let request = request();
    assert_eq!(
        ProofRequest::from_json(&request.to_json()).unwrap(),
        request
    );
    let statement = decode(&request).unwrap();
    assert_eq!(statement.partitions(), PARTITIONS);
    let output = output(&request);
    let decoded = |edit: fn(&mut Value)| {
        let mut altered = output.clone();
        edit(&mut altered);
        assert_ne!(altered, output);
        let altered = serde_json::to_vec(&altered).unwrap();
        decode(&ProofRequest::from_json(&altered).unwrap())
    };
    for edit in [
        (|c| c["seed"] = Value::from(vec![0; 32])) as fn(&mut Value),
        |c| c["seed"] = Value::from(vec![3; 32]),
    ] {
        let without = decoded(edit).unwrap();
        assert_eq!(public_inputs(&*without), public_inputs(&*statement));
    }
    let refused = |edit| decoded(edit).map(|_| ()).unwrap_err().to_string();
    let few = refused(|c| {
        let partitions = c["vanilla_proofs"]["StackedDrg2KiBV1"].as_array_mut();
        partitions.unwrap().pop();
    });
    assert!(few.contains("expected 13") && few.contains("12"), "{few}");
    let swapped = refused(|c| {
        let partitions = c["vanilla_proofs"]["StackedDrg2KiBV1"].as_array_mut();
        partitions.unwrap().swap(0, 12);
    });
    assert!(swapped.contains("does not verify"), "{swapped}");
}

#[test]
fn each_partition_travels_alone() {
    let statement = decode(&request()).unwrap();
    for partition in [0, PARTITIONS - 1] {
        let bytes = statement.partition_request(partition).unwrap();
        let alone = decode_partition(&bytes).unwrap();
        assert_eq!(
            alone.public_inputs(0).unwrap(),
            statement.public_inputs(partition).unwrap()
        );
    }
}

#[test]
fn the_last_partition_has_the_witness_of_its_circuit() {
    let statement = decode_reference(&request()).unwrap();
    let ours = statement.witness(PARTITIONS - 1).unwrap().to_plain();
    let theirs = statement.reference_witness(PARTITIONS - 1).unwrap();
    assert_eq!(ours.inputs(), theirs.inputs_slice());
    assert!(ours.aux() == theirs.aux_slice());
}

#[test]
fn a_sector_too_large_to_seal_is_refused() {
    let refused = vanilla::make_non_interactive(SectorSize::GiB32, 1).unwrap_err();
    assert!(refused.is_input(), "{refused}");
    assert!(
        refused.to_string().starts_with("sector_size: "),
        "{refused}"
    );
}

/// The chain bounds the sectors of an aggregate, and its first challenge includes no seed.
#[test]
fn an_aggregate_has_no_seeds_and_at_most_65_sectors() {
    let request = request();
    let mut aggregate = AggregateRequest::of(&request, proofs()).unwrap();
    assert_eq!((aggregate.partitions(), aggregate.padded_len()), (13, 16));
    let output = output(&request);
    let comm_r: Vec<u8> = serde_json::from_value(output["comm_r"].clone()).unwrap();
    let included: [u8; 32] = Sha256::digest(&comm_r).into();
    assert_eq!(aggregate.included(), included);
    let ProofRequest::PorepC2(porep) = &request else {
        panic!("a PoRep");
    };
    assert!(porep.is_non_interactive());
    assert_eq!(porep.included().unwrap(), included);
    let statement = decode(&request).unwrap();
    assert_eq!(
        aggregate.public_inputs().unwrap().concat(),
        public_inputs(&*statement)
    );
    for _ in 1..65 {
        aggregate.push(&request, proofs()).unwrap();
    }
    assert_eq!(
        aggregate.included(),
        <[u8; 32]>::from(Sha256::digest(comm_r.repeat(65)))
    );
    let read = AggregateRequest::from_json(&aggregate.to_json()).unwrap();
    assert_eq!(read, aggregate);
    let many = aggregate.push(&request, proofs()).unwrap_err().to_string();
    assert!(many.contains("expected 1 to 65, got 66"), "{many}");
}

#[test]
fn a_list_without_seeds_is_of_non_interactive_sectors_and_of_the_second_version() {
    let aggregate = AggregateRequest::of(&request(), proofs()).unwrap();
    let first = aggregate.clone().with_first_version().unwrap_err();
    assert!(first.to_string().starts_with("aggregation: "), "{first}");
    let list: Value = serde_json::from_slice(&aggregate.to_json()).unwrap();
    assert_eq!(list["sectors"][0].get("seed"), None);
    let read = |list: &Value| AggregateRequest::from_json(&serde_json::to_vec(list).unwrap());
    let refused = |list: &Value| read(list).unwrap_err().to_string();
    let mut altered = list.clone();
    // A seed is taken, and decides nothing.
    altered["sectors"][0]["seed"] = json!(STANDARD.encode([4; 32]));
    assert_eq!(read(&altered).unwrap(), aggregate);
    altered["sectors"][0]["seed"] = json!(STANDARD.encode([4; 31]));
    assert!(refused(&altered).starts_with("sectors[0].seed: "));
    altered = list.clone();
    altered["aggregation"] = json!(0);
    assert!(refused(&altered).starts_with("aggregation: "));
    altered = list;
    altered["registered_proof"] = json!(5);
    assert!(refused(&altered).starts_with("sectors[0].seed: missing"));

    let bundled = cuzk_testing::aggregate_request(1);
    assert!(bundled.with_first_version().is_ok());
}

/// No file is looked for before.
#[test]
fn the_chains_verifier_does_not_take_the_proofs_of_partitions() {
    let refused = reference::verify(&request(), &proofs()).unwrap_err();
    assert!(refused.is_input(), "{refused}");
    assert!(refused.to_string().contains("cuzk aggregate"), "{refused}");
    let bundled = cuzk_testing::bundled_request(ProofKind::Porep);
    let ProofRequest::PorepC2(porep) = &bundled else {
        panic!("a PoRep");
    };
    assert!(!porep.is_non_interactive());
}
