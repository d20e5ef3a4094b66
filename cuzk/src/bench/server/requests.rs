//! The requests that are sent: the bundled ones, as messages of the wire.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuzk_filecoin::ProofKind;
use cuzk_server::client::read_request;
use cuzk_server::wire::v1::SubmitProofRequest;
use prost::Message;

use crate::commands::demo::bundled_json;
use crate::failure::{Failure, failed};

/// The bytes of a PoRep request of a 32 GiB sector.
pub(super) const POREP_BYTES: usize = 52_000_000;

/// The key of the C1 output in its wrapper.
const PHASE1: &str = "Phase1Out";

/// Returns the bundled request of a kind.
pub(super) fn bundled(kind: ProofKind) -> Result<SubmitProofRequest, Failure> {
    let request = read_request(bundled_json(kind).to_vec());
    request.map_err(|error| cuzk_core::Error::from(error).into())
}

/// Returns the bundled PoRep request with so much space in its C1 output that the message
/// has [`POREP_BYTES`], but for a few.
pub(super) fn large_porep() -> Result<SubmitProofRequest, Failure> {
    let mut request = bundled(ProofKind::Porep)?;
    let mut wrapper: serde_json::Value =
        serde_json::from_slice(&request.vanilla_proof).map_err(failed)?;
    let output = wrapper[PHASE1].as_str().unwrap_or_default();
    let mut output = STANDARD.decode(output).map_err(failed)?;
    // Base64 has four bytes for three.
    let padding = POREP_BYTES.saturating_sub(request.encoded_len()) / 4 * 3;
    // Behind the brace that opens the object.
    output.splice(1..1, std::iter::repeat_n(b' ', padding));
    wrapper[PHASE1] = STANDARD.encode(output).into();
    request.vanilla_proof = serde_json::to_vec(&wrapper).map_err(failed)?.into();
    Ok(request)
}

/// Returns the bytes by which an engine in this process gets a request. The client's name
/// for it is not among them, since the engine gets that as an option.
pub(super) fn input(request: &SubmitProofRequest) -> Vec<u8> {
    let mut request = request.clone();
    request.request_id.clear();
    request.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_request_has_its_length_and_the_statement_of_the_bundled_one() {
        let request = large_porep().unwrap();
        // Base64 comes in fours, and the length of a longer field takes one byte more.
        let difference = POREP_BYTES.abs_diff(request.encoded_len());
        assert!(difference < 8, "{difference}");
        let decode = cuzk_server::decoder();
        let [large, bundled] = [request, bundled(ProofKind::Porep).unwrap()]
            .map(|request| decode(&input(&request)).unwrap());
        assert_eq!(large.circuit(), bundled.circuit());
        for partition in 0..bundled.partitions() {
            let inputs = [&large, &bundled].map(|statement| statement.public_inputs(partition));
            let [large, bundled] = inputs.map(Result::unwrap);
            assert_eq!(large, bundled);
        }
    }
}
