//! The kind of a proof, from the first bytes of its request.
//!
//! Not a decoder. The invariant: bytes that cannot be read say [`Class::Sealing`], which
//! has no privilege.

use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::policy::Class;
use crate::wire::v1::ProofKind;

/// The number of `ProveRequest.submit`.
const SUBMIT: u32 = 1;

/// The number of `SubmitProofRequest.proof_kind`.
const PROOF_KIND: u32 = 2;

/// Returns the class of a request. `is_nested` says that it is a `ProveRequest`, whose
/// first field is the `SubmitProofRequest`.
pub(super) fn class(mut start: &[u8], is_nested: bool) -> Class {
    let start = &mut start;
    let inside = !is_nested || enter(start).is_some();
    let kind = inside.then(|| kind(start)).flatten();
    let posts = [ProofKind::WindowPostPartition, ProofKind::WinningPost];
    if kind.is_some_and(|kind| posts.iter().any(|&post| post as u64 == kind)) {
        Class::Post
    } else {
        Class::Sealing
    }
}

/// Goes into the first field.
fn enter(start: &mut &[u8]) -> Option<()> {
    let key = decode_key(start).ok()?;
    decode_varint(start).ok()?;
    (key == (SUBMIT, WireType::LengthDelimited)).then_some(())
}

fn kind(start: &mut &[u8]) -> Option<u64> {
    while start.has_remaining() {
        let (field, wire) = decode_key(start).ok()?;
        let skipped = match wire {
            WireType::Varint => {
                let value = decode_varint(start).ok()?;
                if field == PROOF_KIND {
                    return Some(value);
                }
                0
            }
            WireType::LengthDelimited => decode_varint(start).ok()?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        *start = start.get(usize::try_from(skipped).ok()?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::wire::v1::{ProveRequest, SubmitProofRequest};

    fn request(kind: ProofKind) -> SubmitProofRequest {
        SubmitProofRequest {
            request_id: "wdpost-1000-0-[0 1 2]".to_owned(),
            proof_kind: kind.into(),
            sector_size: 32 << 30,
            vanilla_proofs: vec![vec![7; 100_000].into()],
            ..SubmitProofRequest::default()
        }
    }

    #[test]
    fn the_first_bytes_tell_a_post() {
        for (kind, expected) in [
            (ProofKind::Unspecified, Class::Sealing),
            (ProofKind::PorepSealCommit, Class::Sealing),
            (ProofKind::SnapDealsUpdate, Class::Sealing),
            (ProofKind::WindowPostPartition, Class::Post),
            (ProofKind::WinningPost, Class::Post),
        ] {
            let submit = request(kind).encode_to_vec();
            assert_eq!(class(&submit[..40], false), expected, "{kind:?}");
            let prove = ProveRequest {
                submit: Some(request(kind)),
            }
            .encode_to_vec();
            assert_eq!(class(&prove[..40], true), expected, "{kind:?}");
            assert_eq!(class(&prove[..10], true), Class::Sealing, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40), nested: bool) {
            class(&bytes, nested);
        }
    }
}
