use cuzk_testing::fuzz::Corpus;

use super::*;

fn bundled(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/sector-2kib/");
    std::fs::read(format!("{folder}{name}.json")).unwrap()
}

fn id_of(value: &Value) -> String {
    read_request(value.to_string().into_bytes())
        .unwrap()
        .request_id
}

#[test]
fn the_bundled_requests_become_messages() {
    for (name, kind, proof) in [
        ("porep", v1::ProofKind::PorepSealCommit, 5),
        ("snap-deals", v1::ProofKind::SnapDealsUpdate, 0),
        ("window-post", v1::ProofKind::WindowPostPartition, 10),
        ("winning-post", v1::ProofKind::WinningPost, 0),
    ] {
        let message = read_request(bundled(name)).unwrap();
        assert_eq!(message.proof_kind, i32::from(kind), "{name}");
        assert_eq!(message.registered_proof, proof, "{name}");
        assert_eq!(message.miner_id, 1001, "{name}");
        assert_eq!(message.sector_size, 2048, "{name}");
        assert!(message.request_id.contains("1001"), "{name}");
    }
    let snap = read_request(bundled("snap-deals")).unwrap();
    let commitments = [&snap.comm_r_old, &snap.comm_r_new, &snap.comm_d_new];
    assert!(commitments.iter().all(|commitment| commitment.len() == 32));
    let window = read_request(bundled("window-post")).unwrap();
    assert_eq!(
        (window.randomness.len(), window.vanilla_proofs.len()),
        (32, 1)
    );
}

#[test]
fn a_c1_output_and_its_wrapper_are_sent_as_they_are() {
    let output = bundled("porep-c1");
    let message = read_request(output.clone()).unwrap();
    assert_eq!(message.vanilla_proof, output);
    assert_eq!((message.registered_proof, message.sector_number), (5, 0));
    assert!(message.request_id.starts_with("porep-"));
    assert_eq!(read_request(output).unwrap(), message);

    let whole = read_request(bundled("porep")).unwrap();
    let wrapper = whole.vanilla_proof.to_vec();
    let message = read_request(wrapper).unwrap();
    assert_eq!(message.vanilla_proof, whole.vanilla_proof);
    assert_eq!(message.sector_number, whole.sector_number);
    assert_eq!(message.registered_proof, whole.registered_proof);
}

#[test]
fn a_request_without_a_name_gets_one() {
    let mut porep: Value = serde_json::from_slice(&bundled("porep")).unwrap();
    porep["request_id"] = Value::Null;
    assert_eq!(id_of(&porep), "porep-1001-618704");
    let mut window: Value = serde_json::from_slice(&bundled("window-post")).unwrap();
    window["request_id"] = Value::Null;
    let id = id_of(&window);
    assert!(
        id.starts_with("window-post-") && id.len() == "window-post-".len() + 16,
        "{id}"
    );
    assert_eq!(id_of(&window), id);
    window["partition_index"] = 1.into();
    assert_ne!(id_of(&window), id);
}

#[test]
fn bad_fields_are_named() {
    for (key, value) in [
        ("request_id", Value::from(7)),
        ("priority", Value::from("URGENT")),
        ("priority", Value::from(5)),
        ("randomness", Value::from("?")),
        ("sector_size", Value::from(4096)),
        ("proof_kind", Value::from(5)),
        ("no_such_key", Value::from(1)),
    ] {
        let mut window: Value = serde_json::from_slice(&bundled("window-post")).unwrap();
        window[key] = value;
        let error = read_request(window.to_string().into_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(key), "{error}");
    }
    let mut window: Value = serde_json::from_slice(&bundled("window-post")).unwrap();
    for (value, number) in [(Value::from("HIGH"), 3), (Value::from(1), 1)] {
        window["priority"] = value;
        let message = read_request(window.to_string().into_bytes()).unwrap();
        assert_eq!(message.priority, number);
    }
}

#[test]
fn mutated_request_files_are_read_or_errors_of_the_input() {
    const WORDS: [&[u8]; 10] = [
        b"null",
        b"1e999",
        b"-1",
        b"[[[[[[[[",
        b"\\ud800",
        b"\"proof_kind\":",
        b"\"priority\":",
        b"\"vanilla_proofs\":[null]",
        b"18446744073709551616",
        b"\xff",
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/request-files");
    let names = [
        "porep",
        "snap-deals",
        "window-post",
        "winning-post",
        "porep-c1",
    ];
    let corpus = names
        .into_iter()
        .fold(Corpus::read(folder), |corpus, name| {
            corpus.with(bundled(name))
        });
    let decode = |input: &[u8]| {
        read_request(input.to_vec()).map(|message| assert!(!message.request_id.is_empty()))
    };
    let corpus = corpus.with_words(&WORDS);
    corpus.fuzz_decoder("request files", 2_000, decode, |error| error.is_input());
}
