//! `Engine::aggregate`. Tests of the command line have the chain's verifier.

use std::path::Path;

use cuzk_core::aggregate::srs_path;
use cuzk_core::error::ErrorCode;
use cuzk_filecoin::AggregateRequest;
use cuzk_groth16::aggregate::{InnerProductSrs, write_new_srs};
use cuzk_testing::{KNOWN_ANSWERS, bundled_request};

use super::*;

/// The bundled sector with bellperson's proof, `count` times.
fn sectors(count: usize) -> AggregateRequest {
    let answers: serde_json::Value = serde_json::from_str(KNOWN_ANSWERS).unwrap();
    let digits = answers["porep"].as_str().unwrap();
    let byte = |i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap();
    let proof: Vec<u8> = (0..digits.len() / 2).map(byte).collect();
    let request = bundled_request(ProofKind::Porep);
    let mut sectors = AggregateRequest::of(&request, proof.clone()).unwrap();
    for _ in 1..count {
        sectors.push(&request, proof.clone()).unwrap();
    }
    sectors
}

/// A configuration whose folder has PoRep's verifying key, and no parameters.
fn config_in(folder: &Path) -> Config {
    common::circuit_with_params(ProofKind::Porep);
    let key = cuzk_testing::files(ProofKind::Porep).vk;
    std::fs::copy(common::param_cache().join(&key), folder.join(&key)).unwrap();
    let mut config = common::config();
    config.srs.param_cache = folder.to_owned();
    config
}

#[test]
fn an_engine_aggregates_without_parameters_and_names_a_missing_srs() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(config_in(folder.path())).unwrap();
    let missing = engine.aggregate(&sectors(2)).unwrap_err();
    assert_eq!(ErrorCode::of(&missing), ErrorCode::ParametersMissing);
    assert!(missing.is_input() && missing.to_string().contains("--srs"));

    let srs = InnerProductSrs::insecure(3, 4).unwrap();
    write_new_srs(&srs, &srs_path(folder.path())).unwrap();
    let three = engine.aggregate(&sectors(3)).unwrap();
    let again = engine.aggregate(&sectors(3)).unwrap();
    // An aggregate has no randomness. The hash of the sectors tells it from that of others.
    assert_eq!(three.as_bytes(), again.as_bytes());
    let four = engine.aggregate(&sectors(4)).unwrap();
    assert_ne!(three.as_bytes(), four.as_bytes());
    assert_eq!(three.as_bytes().len(), four.as_bytes().len());
    // The SRS is too short for eight proofs.
    let short = engine.aggregate(&sectors(5)).unwrap_err();
    assert_eq!(ErrorCode::of(&short), ErrorCode::ParametersUnusable);
    engine.shutdown();
}
