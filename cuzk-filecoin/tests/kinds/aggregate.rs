//! Requests to aggregate: what they hold, and how many sectors they take.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_filecoin::{AggregateRequest, Error, ProofKind, decode};
use cuzk_testing::{aggregate_request, bundled_request, porep_proof};
use serde_json::{Value, json};

use crate::altered;

/// The file of a request of one sector.
fn file() -> Value {
    serde_json::from_slice(&aggregate_request(1).to_json()).unwrap()
}

fn read(file: &Value) -> Result<AggregateRequest, Error> {
    AggregateRequest::from_json(&serde_json::to_vec(file).unwrap())
}

#[test]
fn a_request_has_the_proofs_and_the_inputs_of_its_sectors() {
    let request = aggregate_request(2);
    assert_eq!((request.sectors(), request.partitions()), (2, 1));
    let mut bytes = Vec::new();
    for proof in request.proofs().unwrap() {
        proof.write(&mut bytes).unwrap();
    }
    assert_eq!(bytes, porep_proof().repeat(2));
    let statement = decode(&bundled_request(ProofKind::Porep)).unwrap();
    let inputs = statement.public_inputs(0).unwrap();
    assert_eq!(request.inputs_of_a_proof().unwrap(), inputs.len());
    assert_eq!(
        request.public_inputs().unwrap(),
        [inputs.clone(), inputs.clone()]
    );
}

#[test]
fn a_proof_that_is_no_points_is_named() {
    let sector = bundled_request(ProofKind::Porep);
    let mut request = aggregate_request(1);
    request.push(&sector, vec![7; 192]).unwrap();
    let error = request.proofs().unwrap_err().to_string();
    assert!(error.starts_with("sectors[1].proof: "), "{error}");
    assert!(error.contains("partition 0"), "{error}");
}

#[test]
fn the_second_version_is_the_default() {
    let mut file = file();
    for (version, is_second) in [(json!(0), false), (json!(1), true)] {
        file["aggregation"] = version;
        assert_eq!(read(&file).unwrap().is_second_version(), is_second);
    }
    file.as_object_mut().unwrap().remove("aggregation").unwrap();
    assert!(read(&file).unwrap().is_second_version());
}

/// A PoRep of 32 GiB has ten partitions, and the SRS is for 16,384 proofs.
#[test]
fn a_request_has_as_many_sectors_as_the_chain_takes() {
    let mut file = file();
    file["registered_proof"] = json!(8);
    let mut sector = file["sectors"][0].clone();
    sector["proof"] = json!(STANDARD.encode(porep_proof().repeat(10)));
    let mut of = |sectors| {
        file["sectors"] = vec![sector.clone(); sectors].into();
        read(&file)
    };
    let request = of(1638).unwrap();
    assert_eq!((request.sectors(), request.partitions()), (1638, 10));
    assert_eq!(request.padded_len(), AggregateRequest::PROOFS_MAX);
    let error = of(1639).unwrap_err().to_string();
    assert!(error.contains("expected 1 to 1638, got 1639"), "{error}");
}

#[test]
fn an_aggregate_is_of_one_miner_and_keeps_its_proofs() {
    let request = |edit| altered::read("porep.json", edit).unwrap();
    let proof = vec![7; 192];
    let mut aggregate = AggregateRequest::of(&request(|_| ()), proof.clone()).unwrap();
    let other = request(|r| r["miner_id"] = json!(1002));
    let refused = aggregate.push(&other, proof.clone()).unwrap_err();
    assert!(refused.to_string().starts_with("registered_proof: "));
    let list: Value = serde_json::from_slice(&aggregate.to_json()).unwrap();
    assert_eq!(list["sectors"][0]["proof"], json!(STANDARD.encode(&proof)));
}
