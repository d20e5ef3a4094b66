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
//! | [`blank`] | circuits without values |

pub mod blank;
mod fault;
mod native;
mod porep;
mod post;
mod shape;
mod snap_deals;
mod statement;
mod visitor;
mod window_post;
mod winning_post;

pub use statement::{ReferenceStatement, Statement, Writer};
pub use visitor::CircuitVisitor;

use crate::Error;
use crate::request::ProofRequest;

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
