//! Aggregates of proofs.

use cuzk_core::Config;
use cuzk_core::aggregate::{AggregationKeys, aggregate_request};
use cuzk_ffi::error::{CUZK_ENDED, CUZK_PARAMETERS_MISSING, CUZK_REQUEST};
use cuzk_testing::{folder_with_porep_key, put_srs};

use crate::calls::Engine;

#[test]
fn proofs_are_aggregated_and_errors_have_their_codes() {
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder_with_porep_key(&cache);
    let cache = folder.path();
    let engine = Engine::start(&format!("[srs]\nparam_cache = {cache:?}\n")).unwrap();
    let request = cuzk_testing::aggregate_request(3);
    let json = request.to_json();

    let (code, text) = engine.aggregate(&json).err().unwrap();
    assert_eq!(code, CUZK_PARAMETERS_MISSING, "{text}");
    assert!(text.contains("params fetch --srs"), "{text}");
    put_srs(cache, 3, 4);
    let aggregate = engine.aggregate(&json).unwrap();
    // In Rust it is the same one.
    let mut config = Config::default();
    config.srs.param_cache = cache.to_owned();
    let expected = aggregate_request(&config, &AggregationKeys::new(&config), &request);
    assert!(aggregate.as_bytes() == expected.unwrap().as_bytes());

    for (json, part) in [
        (&b""[..], "request to aggregate"),
        (b"{}", "registered_proof"),
    ] {
        let (code, text) = engine.aggregate(json).err().unwrap();
        assert_eq!(code, CUZK_REQUEST, "{text}");
        assert!(text.contains(part), "{text}");
    }
    engine.end(0);
    let (code, text) = engine.aggregate(&json).err().unwrap();
    assert_eq!(code, CUZK_ENDED, "{text}");
    // Aggregates outlive their engine.
    drop(engine);
    assert!(!aggregate.as_bytes().is_empty());
}
