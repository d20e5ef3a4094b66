//! The size of a request, before it is sent.
//!
//! Not the daemon's own limit, which the intake keeps. The invariant: a request that passes is
//! not refused for its size by gRPC, which would look like a lost connection.

use cuzk_filecoin::Error;
use prost::Message as _;

use crate::wire::{MESSAGE_BYTES_MAX, v1};

/// The message of `Prove` has the request in a field: a tag and a length more.
const WRAPPING_BYTES: usize = 16;

/// Checks that a request fits into one message.
///
/// # Errors
/// [`Error::InvalidRequest`] with the name of the largest field, if it does not.
pub fn check_size(request: &v1::SubmitProofRequest) -> Result<(), Error> {
    let bytes = request.encoded_len();
    if bytes <= MESSAGE_BYTES_MAX - WRAPPING_BYTES {
        return Ok(());
    }
    let field = match request.vanilla_proof.is_empty() {
        true => "vanilla_proofs",
        false => "vanilla_proof",
    };
    let max_mib = MESSAGE_BYTES_MAX >> 20;
    let problem =
        format!("the request has {bytes} bytes, and a daemon takes at most {max_mib} MiB");
    let advice = "prove it on this machine with `cuzk prove`";
    Err(Error::request(field, problem, advice))
}
