//! The four kinds of proof: what each proves, and what verifies it.
//!
//! Not a prover: a kind turns a request into circuits, witnesses and public
//! inputs, and says whether proof bytes verify. The invariant: a [`Job`] holds
//! a vanilla proof that was decoded, checked for shape and verified, so nothing
//! that a client sends reaches a circuit unchecked.
//!
//! Reading order: [`decode`] here, then one kind (`porep` is the largest),
//! `shape` for what is checked before the proofs library sees a byte, `fault`
//! for what its verifiers do not say, `native` for what the writers of
//! witnesses take, and [`mod@verify`] for proofs.

mod circuit;
mod fault;
mod job;
mod native;
mod porep;
mod post;
pub mod reference;
pub(crate) mod registered;
mod sector_size;
mod shape;
mod snap_deals;
pub(crate) mod tree;
pub mod verify;
mod window_post;
mod winning_post;

use std::fmt;
use std::str::FromStr;

pub use circuit::{CircuitId, CircuitVisitor};
pub use cuzk_witness::Context as WitnessContext;
pub use job::{Job, Writer};
pub use sector_size::SectorSize;

use crate::{Error, ProofRequest};

/// What is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofKind {
    /// A sector was sealed.
    Porep,
    /// A sector that won an election is still stored.
    WinningPost,
    /// A partition of sectors is still stored.
    WindowPost,
    /// A sector's data was replaced.
    SnapDeals,
}

impl ProofKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Porep,
        Self::WinningPost,
        Self::WindowPost,
        Self::SnapDeals,
    ];

    /// The kind's name, as [`FromStr`] reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Porep => "porep",
            Self::WinningPost => "winning-post",
            Self::WindowPost => "window-post",
            Self::SnapDeals => "snap-deals",
        }
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ProofKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| {
                Error::request(
                    "kind",
                    format!("no such kind of proof: {name:?}"),
                    "use one of porep, winning-post, window-post, snap-deals",
                )
            })
    }
}

/// Decodes a request's vanilla proof and verifies it, on the current rayon
/// pool.
///
/// # Errors
///
/// [`Error::InvalidRequest`] when the vanilla proof does not decode, has
/// another shape than its circuit, or does not verify.
pub fn decode(request: &ProofRequest) -> Result<Box<dyn Job>, Error> {
    match request {
        ProofRequest::PorepC2(request) => porep::decode(request),
        ProofRequest::WinningPost(request) => winning_post::decode(request),
        ProofRequest::WindowPost(request) => window_post::decode(request),
        ProofRequest::SnapDeals(request) => snap_deals::decode(request),
    }
}

#[cfg(test)]
mod tests {
    use super::{ProofKind, SectorSize};

    #[test]
    fn names_read_back() {
        for kind in ProofKind::ALL {
            assert_eq!(kind.to_string().parse::<ProofKind>().unwrap(), kind);
        }
        for size in SectorSize::ALL {
            assert_eq!(size.to_string().parse::<SectorSize>().unwrap(), size);
        }
        for bad in ["", "PoRep", "porep ", "winning"] {
            assert!(bad.parse::<ProofKind>().is_err(), "{bad}");
        }
        for bad in ["", "2kib", "4KiB", "2048"] {
            assert!(bad.parse::<SectorSize>().is_err(), "{bad}");
        }
    }
}
