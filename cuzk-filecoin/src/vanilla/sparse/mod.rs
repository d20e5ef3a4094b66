//! Vanilla proofs over sectors that repeat, except where a challenge asks.
//!
//! Not sealing: no label but a challenged node's is computed from its parents,
//! and no replica exists. The invariant: whatever a circuit can see is as in a
//! sealed sector, namely paths, columns, challenged labels and encodings.
//!
//! The values of challenged leaves must not change the challenges. The challenges of a
//! PoRep follow from the data's root, and those of an update from the new replica's. So
//! these two trees only repeat. The others hold values of their own for the challenged
//! leaves.

mod labels;
mod porep;
pub(super) mod post;
mod snap_deals;

use filecoin_hashers::Domain;
use rand_chacha::ChaCha8Rng;

use super::field_element;
use crate::Error;
use crate::proof_kind::ProofKind;
use crate::request::ProofRequest;
use crate::sector_size::SectorSize;

/// How many leaves are drawn before they repeat: enough for the siblings of a
/// leaf to differ.
const PATTERN_LEAVES: usize = 8;

/// Makes a request for a proof of `kind` over a sector drawn from `rng`.
pub(super) fn make(
    kind: ProofKind,
    size: SectorSize,
    mut rng: ChaCha8Rng,
) -> Result<ProofRequest, Error> {
    match kind {
        ProofKind::Porep => porep::make(size, &mut rng),
        ProofKind::WinningPost => post::winning(size, &mut rng),
        ProofKind::WindowPost => post::window(size, post::WINDOW_SECTORS, &mut rng),
        ProofKind::SnapDeals => snap_deals::make(size, &mut rng),
    }
}

/// A node drawn from `rng`.
fn node<D: Domain>(rng: &mut ChaCha8Rng) -> D {
    field_element(rng).into()
}

fn pattern<D: Domain>(rng: &mut ChaCha8Rng) -> Vec<D> {
    (0..PATTERN_LEAVES).map(|_| node(rng)).collect()
}
