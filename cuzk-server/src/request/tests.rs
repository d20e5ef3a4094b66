use cuzk_testing::fuzz::Corpus;

use super::*;

fn request(request_id: &str, randomness: &'static [u8]) -> v1::SubmitProofRequest {
    v1::SubmitProofRequest {
        request_id: request_id.to_owned(),
        proof_kind: v1::ProofKind::WindowPostPartition.into(),
        registered_proof: 5,
        miner_id: 1000,
        randomness: randomness.into(),
        ..v1::SubmitProofRequest::default()
    }
}

fn id(request: v1::SubmitProofRequest) -> String {
    let input = Submission::new(request).unwrap().into_input();
    input.job_id(&RequestBytes::new(&input.bytes))
}

#[test]
fn a_job_is_known_by_its_request_id_and_its_input() {
    let one = id(request("wdpost-1000-0-[0]", b"a"));
    assert_eq!(one, id(request("wdpost-1000-0-[0]", b"a")));
    assert_ne!(one, id(request("wdpost-1000-0-[0]", b"b")));
    assert_ne!(one, id(request("wdpost-1000-0-[1]", b"a")));
    assert!(one.starts_with("wdpost-1000-0-[0]/"), "{one}");
}

#[test]
fn the_priority_is_not_input() {
    let urgent = v1::SubmitProofRequest {
        priority: v1::Priority::High.into(),
        ..request("a", b"a")
    };
    assert_eq!(id(urgent), id(request("a", b"a")));
}

/// No request id is refused, whatever a client puts there, and two that look alike differ.
#[test]
fn any_request_id_makes_a_short_printable_job_id() {
    let long = "x".repeat(100_000);
    let longer = format!("{long}y");
    assert_ne!(id(request(&long, b"")), id(request(&longer, b"")));
    for text in ["", "a\nb\0c", "\u{202e}ü", &long] {
        let id = id(request(text, b""));
        assert!(id.len() <= 4 * SHOWN_MAX + 33, "{id}");
        assert!(!id.chars().any(char::is_control), "{id}");
    }
    assert!(id(request("", b"")).starts_with("window-post/"));
}

#[test]
fn kinds_and_priorities_that_do_not_exist_are_named() {
    let with = |kind, priority| v1::SubmitProofRequest {
        proof_kind: kind,
        priority,
        ..request("a", b"")
    };
    for (kind, priority, key) in [
        (0, 0, "proof_kind"),
        (5, 0, "proof_kind"),
        (-1, 0, "proof_kind"),
        (1, 5, "priority"),
    ] {
        let error = Submission::new(with(kind, priority)).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}

#[test]
fn what_is_no_message_is_an_error_of_the_input() {
    for bytes in [
        &b"\xff\xff\xff"[..],
        b"",
        b"{",
        b"{}",
        b"\x0a\xff\xff\xff\xff\x0f",
    ] {
        let error = decode(bytes).err().unwrap();
        assert!(error.is_input(), "{error}");
    }
}

/// The journal gives such bytes to the decoder, too.
#[test]
fn mutated_requests_are_decoded_or_errors_of_the_input() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/requests");
    let corpus = ProofKind::ALL
        .into_iter()
        .fold(Corpus::read(folder), |corpus, kind| {
            let file = std::fs::read(cuzk_testing::data(&format!("{kind}.json"))).unwrap();
            let message = crate::client::read_request(file.clone()).unwrap();
            corpus
                .with(file)
                .with(Submission::new(message).unwrap().into_input().bytes)
        });
    let decode = |input: &[u8]| decode(input).map(drop);
    corpus.fuzz_decoder("requests", 2_000, decode, |error| error.is_input());
}
