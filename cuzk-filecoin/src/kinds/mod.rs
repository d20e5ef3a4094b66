//! The four kinds of proof and their statements.
//!
//! Not a prover: a kind turns a request into circuits, witnesses and public
//! inputs. The invariant: the vanilla proof of a [decoded](decode) [`Statement`] was checked
//! for shape and verified. So nothing that a client sends reaches a circuit unchecked.
//!
//! Reading order: [`decode`] here, then one kind; `porep` is the largest. Then:
//!
//! | module | content |
//! |---|---|
//! | `shape` | the checks before the proofs library sees a byte |
//! | `fault` | the faults that the library's verifiers do not name |
//! | `native` | the input of the writers of witnesses |
//! | `partition` | one partition as bytes, for another machine |
//! | [`blank`] | circuits without values |

pub mod blank;
mod fault;
mod native;
mod partition;
mod porep;
mod post;
mod shape;
mod snap_deals;
mod statement;
mod window_post;
mod winning_post;

pub use partition::{PARTITION_FORMAT, PartitionHeader};
pub use statement::{ReferenceStatement, Statement, Writer};

use self::partition::Registered;
use crate::Error;
use crate::circuit_id::CircuitId;
use crate::proof_kind::ProofKind;
use crate::request::ProofRequest;
use crate::tree::with_tree;

/// Decodes a request's vanilla proof and verifies it, on the current rayon
/// pool.
///
/// # Errors
///
/// [`Error::InvalidRequest`] when the vanilla proof does not decode, has
/// another shape than its circuit, or does not verify.
pub fn decode(request: &ProofRequest) -> Result<Box<dyn Statement>, Error> {
    Ok(decode_reference(request)?)
}

/// Decodes the request of one partition, as [`Statement::partition_request`] writes it, and
/// verifies its vanilla proof, on the current rayon pool. The statement has this partition
/// alone, as number 0, with the partition's own witness and public inputs.
///
/// # Errors
///
/// [`Error::InvalidRequest`] for bytes of another format, and for a partition that the kind does
/// not have. The same error for a vanilla proof that does not decode or does not verify.
pub fn decode_partition(bytes: &[u8]) -> Result<Box<dyn Statement>, Error> {
    let (header, body) = partition::split(bytes)?;
    let statement = match header.proof {
        Registered::Porep(proof) => porep::decode_partition(proof, &header, body),
        Registered::WinningPost(proof) => winning_post::decode_partition(proof, &header, body),
        Registered::WindowPost(proof) => window_post::decode_partition(proof, &header, body),
        Registered::SnapDeals(_) => snap_deals::decode_partition(&header, body),
    };
    Ok(statement?)
}

/// Returns how many auxiliary variables of a witness of this circuit are apart for each thread
/// while it is written. Returns none if all of them may be: the witnesses of the other kinds are
/// much smaller.
///
/// # Errors
///
/// [`Error::Synthesis`] when the proofs library cannot say.
pub fn variables_apart(id: CircuitId) -> Result<Option<usize>, Error> {
    let size = id.sector_size;
    match id.kind {
        ProofKind::WindowPost => with_tree!(size, window_post::variables_apart(size)).map(Some),
        ProofKind::Porep | ProofKind::WinningPost | ProofKind::SnapDeals => Ok(None),
    }
}

/// Decodes a request as [`decode`] does, into a statement that bellperson can prove too.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_reference(request: &ProofRequest) -> Result<Box<dyn ReferenceStatement>, Error> {
    match request {
        ProofRequest::PorepC2(request) => porep::decode(request),
        ProofRequest::WinningPost(request) => winning_post::decode(request),
        ProofRequest::WindowPost(request) => window_post::decode(request),
        ProofRequest::SnapDeals(request) => snap_deals::decode(request),
    }
}
