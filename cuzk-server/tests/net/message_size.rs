//! The size of a request, before it is sent.

use cuzk_server::client::check_size;
use cuzk_server::wire::{MESSAGE_BYTES_MAX, v1};
use prost::Message as _;

/// Room for the field of `Prove` that has the request.
const WRAPPING_BYTES: usize = 16;

#[test]
fn a_request_passes_up_to_the_size_of_a_message() {
    let largest = MESSAGE_BYTES_MAX - WRAPPING_BYTES;
    let mut request = v1::SubmitProofRequest {
        vanilla_proof: vec![0; MESSAGE_BYTES_MAX - 64].into(),
        ..Default::default()
    };
    let rest = largest - request.encoded_len() - 2;
    request.request_id = "x".repeat(rest);
    assert_eq!(request.encoded_len(), largest);
    check_size(&request).unwrap();
    let wrapped = v1::ProveRequest {
        submit: Some(request.clone()),
    };
    assert!(wrapped.encoded_len() <= MESSAGE_BYTES_MAX);
    request.request_id.push('x');
    let refused = check_size(&request).unwrap_err();
    assert!(refused.is_input());
    assert!(refused.to_string().starts_with("vanilla_proof: "));
    request.vanilla_proofs = vec![std::mem::take(&mut request.vanilla_proof)];
    let refused = check_size(&request).unwrap_err().to_string();
    assert!(refused.starts_with("vanilla_proofs: "), "{refused}");
    assert!(refused.contains("256 MiB") && refused.contains("cuzk prove"));
}
