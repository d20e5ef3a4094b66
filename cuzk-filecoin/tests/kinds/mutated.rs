//! Mutants of requests: each decodes, or is an error of the input.

use std::path::Path;

use cuzk_filecoin::verify::{Rejection, Verdict, verify};
use cuzk_filecoin::{AggregateRequest, Error, ProofKind, ProofRequest, decode, decode_partition};
use cuzk_groth16::params::ParamCache;
use cuzk_testing::fuzz::Corpus;

fn corpus(name: &str) -> Corpus {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    Corpus::read(folder.join(name))
}

/// A partition as one machine sends it to another.
#[test]
fn mutated_partitions_are_decoded_or_errors_of_the_input() {
    let corpus = ProofKind::ALL
        .into_iter()
        .fold(corpus("partitions"), |corpus, kind| {
            let statement = decode(&cuzk_testing::bundled_request(kind)).unwrap();
            corpus.with(statement.partition_request(0).unwrap())
        });
    let decode = |input: &[u8]| {
        decode_partition(input).map(|statement| {
            assert_eq!(statement.partitions(), 1);
            statement.public_inputs(0).unwrap();
        })
    };
    corpus.fuzz_decoder("partitions", 1_000, decode, Error::is_input);
}

/// Requests in JSON, and what Curio's calls have, which is the output of C1 alone.
#[test]
fn mutated_files_of_requests_are_decoded_or_errors_of_the_input() {
    const WORDS: [&[u8]; 7] = [
        b"null",
        b"-1",
        b"[[[[[[[[",
        b"\"registered_proof\":",
        b"\"vanilla_proofs\":[]",
        b"18446744073709551616",
        b"\\ud800",
    ];
    let names = [
        "porep",
        "snap-deals",
        "window-post",
        "winning-post",
        "porep-c1",
    ];
    let corpus = names.into_iter().fold(corpus("requests"), |corpus, name| {
        corpus.with(std::fs::read(cuzk_testing::data(&format!("{name}.json"))).unwrap())
    });
    let decode = |input: &[u8]| {
        let decoded = ProofRequest::from_json(input).and_then(|request| decode(&request));
        decoded.map(|statement| drop(statement.public_inputs(0).unwrap()))
    };
    let corpus = corpus.with_words(&WORDS);
    corpus.fuzz_decoder("files of requests", 1_000, decode, Error::is_input);
}

#[test]
fn mutated_requests_to_aggregate_are_read_or_errors_of_the_input() {
    const WORDS: [&[u8]; 5] = [
        b"null",
        b"1e999",
        b"\"sectors\":[]",
        b"18446744073709551616",
        b"\"aggregation\":",
    ];
    let request = cuzk_testing::bundled_request(ProofKind::Porep);
    let mut aggregate = AggregateRequest::of(&request, vec![7; 192]).unwrap();
    aggregate.push(&request, vec![8; 192]).unwrap();
    let decode = |input: &[u8]| {
        AggregateRequest::from_json(input).map(|read| {
            assert_eq!(AggregateRequest::from_json(&read.to_json()).unwrap(), read);
        })
    };
    let corpus = corpus("aggregates").with(aggregate.to_json());
    let corpus = corpus.with_words(&WORDS);
    corpus.fuzz_decoder("requests to aggregate", 10_000, decode, Error::is_input);
}

/// The proof with A and B negated. Their product is the same, so it is valid, too: a proof of Groth16
/// says that its statement is true, and not who made it.
fn with_both_signs(proof: &[u8]) -> Vec<u8> {
    /// The bit of an encoded point that says which of the two y it has.
    const SIGN: u8 = 0x20;
    let mut negated = proof.to_vec();
    for first_byte_of_point in [0, 48] {
        negated[first_byte_of_point] ^= SIGN;
    }
    negated
}

/// The bytes that `cuzk verify` reads: of those that are near a proof, only one other is valid.
#[test]
fn mutated_proofs_are_rejected() {
    let kind = ProofKind::WindowPost;
    let cache = cuzk_testing::param_cache(env!("CARGO_TARGET_TMPDIR"));
    let _made = cuzk_testing::circuit_with_params(kind, &cache);
    let files = cuzk_testing::files(kind);
    let key = ParamCache::new(cache).verifying_key(&files).unwrap();
    let statement = decode(&cuzk_testing::bundled_request(kind)).unwrap();
    let answer = crate::verify::known_answer(kind);
    let negated = with_both_signs(&answer);
    let valid = verify(&*statement, &negated, &key).unwrap();
    assert!(matches!(valid, Verdict::Valid), "{valid:?}");
    let decode = |input: &[u8]| -> Result<(), Rejection> {
        match verify(&*statement, input, &key).unwrap() {
            Verdict::Valid => assert!(input == answer || input == negated, "{input:?}"),
            Verdict::Invalid(rejection) => return Err(rejection),
        }
        Ok(())
    };
    let is_expected = |rejection: &Rejection| {
        matches!(
            rejection,
            Rejection::Length { .. } | Rejection::Encoding { .. } | Rejection::Equation { .. }
        )
    };
    let corpus = corpus("proofs").with(answer.clone());
    corpus.fuzz_decoder("proofs", 500, decode, is_expected);
}
