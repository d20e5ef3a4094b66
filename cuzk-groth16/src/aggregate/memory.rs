//! The memory of an aggregation, known before anything of it is made.
//!
//! Not an allocator. The invariant: an aggregation takes no more than is said, and a test
//! counts its bytes.

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_kernels::Isa;
use cuzk_kernels::msm::{MsmMemory, MsmTermSize};

/// Bytes of a key for each of its proofs: two powers of both secrets in G1, and one in G2.
const KEY_BYTES: usize = 4 * size_of::<G1Affine>() + 2 * size_of::<G2Affine>();

/// Bytes for each proof while proofs are read, verified and folded, without public inputs.
/// The first fold takes most: all vectors, their halves side by side, and the new vectors.
const PROOF_BYTES: usize = 4 << 10;

/// Bytes of a prepared verifying key for each public input: multiples of a point.
const PREPARED_BYTES: usize = 256 * size_of::<G1Affine>();

/// Bytes for each thread: the lines of a Miller loop, and eight loops at a time.
const THREAD_BYTES: usize = 128 << 10;

/// Returns the bytes of all keys for up to `proofs` proofs.
#[must_use]
pub const fn keys_bytes(proofs: usize) -> u64 {
    // One key for each power of two, so all smaller ones are as large as the largest.
    proofs.saturating_mul(2 * KEY_BYTES) as u64
}

/// Returns the most bytes that an aggregation has at once on `threads` threads, without its
/// key: from reading the SRS to the verified aggregate. A proof has so many public `inputs`.
#[must_use]
pub fn work_bytes(isa: Isa, proofs: usize, inputs: usize, threads: usize) -> u64 {
    let of_proof = PROOF_BYTES + size_of::<Vec<Scalar>>() + inputs * size_of::<Scalar>();
    let bytes = proofs
        .saturating_mul(of_proof)
        .saturating_add(inputs.saturating_mul(PREPARED_BYTES))
        .saturating_add(threads.saturating_mul(THREAD_BYTES))
        .saturating_add(openings_bytes(isa, proofs, threads));
    bytes as u64
}

/// The working memory of the openings: four multi-scalar multiplications side by side.
fn openings_bytes(isa: Isa, proofs: usize, threads: usize) -> usize {
    let term = |wide| MsmTermSize {
        wide,
        is_plain: true,
        multiples: None,
    };
    let in_g1 = MsmMemory::of_g1(isa, &[term(2 * proofs)], threads);
    let in_g2 = MsmMemory::of_g2(isa, &[term(proofs)], threads);
    let bytes = |memory: MsmMemory| memory.heap_bytes + memory.blocks.iter().sum::<usize>();
    2 * (bytes(in_g1) + bytes(in_g2))
}
