//! Makes requests to try the engine with: small sectors are sealed, large ones
//! are written down.
//!
//! Not for sectors of a network: the data is random, and the challenges are
//! drawn here. The invariant: the same seed gives the same request, and the
//! proofs library's own verifiers accept its vanilla proofs.
//!
//! Reading order: [`make`] here, `sealed` for what the proofs library seals,
//! `sparse` for sectors that are too large for that, over the trees of `merkle`.

mod merkle;
mod parents;
mod sealed;
mod sparse;

use std::path::Path;

use cuzk_files::Scratch;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tracing::info_span;

use crate::Error;
use crate::proof_kind::ProofKind;
use crate::request::ProofRequest;
use crate::sector_size::SectorSize;

/// The miner that the sectors made here belong to.
const MINER_ID: u64 = 1000;

/// The largest sector that is sealed; those above are sparse.
pub const LARGEST_SEALED: SectorSize = SectorSize::MiB8;

/// Makes a request for a proof of `kind` over a sector of `size`, with data
/// drawn from `seed`, on the current rayon pool.
///
/// Up to 8 MiB the sector is sealed. That takes a tenth of a second for 2 KiB, a quarter of
/// a minute for 8 MiB, and some 50 MB of memory. Those above
/// [`LARGEST_SEALED`] are [sparse](make_sparse).
///
/// # Errors
///
/// [`Error::Io`] when a directory cannot be written, [`Error::Synthesis`] when
/// sealing fails.
pub fn make(kind: ProofKind, size: SectorSize, seed: u64) -> Result<ProofRequest, Error> {
    if size > LARGEST_SEALED {
        return make_sparse(kind, size, seed);
    }
    let folder = Scratch::new().map_err(|error| Error::io(std::env::temp_dir(), error))?;
    make_in(folder.path(), kind, size, seed)
}

/// Makes the request of [`make`] over a sealed sector of any `size`, whose files are made in
/// `folder`. The folder is empty, and the caller removes it. Sealing fails, after a while,
/// once the folder is gone: so another thread can end it.
///
/// # Errors
///
/// As [`make`].
pub fn make_in(
    folder: &Path,
    kind: ProofKind,
    size: SectorSize,
    seed: u64,
) -> Result<ProofRequest, Error> {
    let _span = info_span!("seal", %kind, %size).entered();
    sealed::make(kind, size, ChaCha8Rng::seed_from_u64(seed), folder)
}

/// Makes the requests of [`make`] for proofs of several kinds, in their order, over one sector that
/// is sealed once. That takes as long as one of them.
///
/// # Errors
///
/// As [`make`], [`Error::InvalidRequest`] for a size above [`LARGEST_SEALED`], and [`Error::Io`] if
/// a kind is there twice.
pub fn make_each(
    kinds: &[ProofKind],
    size: SectorSize,
    seed: u64,
) -> Result<Vec<ProofRequest>, Error> {
    check_sealed(size, "is not sealed here")?;
    let folder = Scratch::new().map_err(|error| Error::io(std::env::temp_dir(), error))?;
    let _span = info_span!("seal", %size).entered();
    sealed::make_each(kinds, size, ChaCha8Rng::seed_from_u64(seed), folder.path())
}

/// Makes a request for a non-interactive PoRep over a sector of `size` that is sealed, with data
/// drawn from `seed`, on the current rayon pool.
///
/// There is no such request over a sparse sector. Its challenges follow from the replica
/// commitment, which the values of challenged leaves change.
///
/// # Errors
///
/// As [`make`], and [`Error::InvalidRequest`] for a size above [`LARGEST_SEALED`].
pub fn make_non_interactive(size: SectorSize, seed: u64) -> Result<ProofRequest, Error> {
    let folder = Scratch::new().map_err(|error| Error::io(std::env::temp_dir(), error))?;
    make_non_interactive_in(folder.path(), size, seed)
}

/// Makes the request of [`make_non_interactive`] in `folder`, as [`make_in`] does.
///
/// # Errors
///
/// As [`make_non_interactive`].
pub fn make_non_interactive_in(
    folder: &Path,
    size: SectorSize,
    seed: u64,
) -> Result<ProofRequest, Error> {
    check_sealed(size, "is not sealed here, and its challenges need that")?;
    let _span = info_span!("seal", kind = %ProofKind::Porep, %size).entered();
    sealed::make_non_interactive(size, ChaCha8Rng::seed_from_u64(seed), folder)
}

/// Makes a request for a proof of `kind` over a sector of any `size` that was
/// never sealed. Its data and replica repeat, except at challenged leaves. So the trees
/// over them are known without a sector. The circuit and the
/// proofs library's verifiers accept it, since neither sees how the parents of
/// a challenged node got their labels. Full-size sectors take a second or two
/// and some 60 MB of memory; a WindowPoSt is of the first few sectors of its
/// partition.
///
/// # Errors
///
/// [`Error::Synthesis`] when the proofs library fails.
pub fn make_sparse(kind: ProofKind, size: SectorSize, seed: u64) -> Result<ProofRequest, Error> {
    let _span = info_span!("sparse", %kind, %size).entered();
    sparse::make(kind, size, ChaCha8Rng::seed_from_u64(seed))
}

/// Makes a request for a WindowPoSt over so many [sparse](make_sparse) sectors, or over as many
/// as its partition has room for if those are fewer.
///
/// # Errors
///
/// [`Error::InvalidRequest`] for no sectors, and as [`make_sparse`].
pub fn make_window_post(
    size: SectorSize,
    sectors: usize,
    seed: u64,
) -> Result<ProofRequest, Error> {
    if sectors == 0 {
        return Err(Error::request(
            "sectors",
            "is 0",
            "ask for at least one sector",
        ));
    }
    sparse::post::window(size, sectors, &mut ChaCha8Rng::seed_from_u64(seed))
}

fn check_sealed(size: SectorSize, problem: &str) -> Result<(), Error> {
    if size <= LARGEST_SEALED {
        return Ok(());
    }
    Err(Error::request(
        "sector_size",
        format!("a sector of {size} {problem}"),
        format!("ask for a sector of at most {LARGEST_SEALED}"),
    ))
}

/// 32 bytes below 2²⁵⁴, as the chain's randomness is.
fn field_element(rng: &mut ChaCha8Rng) -> [u8; 32] {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    bytes[31] &= 0x3f;
    bytes
}

fn failed(stage: &'static str, problem: &dyn std::fmt::Display) -> Error {
    Error::synthesis(stage, problem)
}
