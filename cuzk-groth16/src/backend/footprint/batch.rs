//! The memory of a pass over the bits of several partitions.

use cuzk_kernels::msm::MsmMemory;

use super::{CpuWorkspace, Footprint, Replay, replay_witness, writing_bytes};
use crate::circuit_sizes::CircuitSizes;

/// Blocks that a pass of the kernel over its points takes at once.
const BLOCKS_AT_ONCE: usize = 2;

/// Returns the footprint of adding up the bits of so many partitions. It has the witnesses of
/// all of them and the writing of one. It also has the bits of a query of each, and the
/// workspace of the sums. The vectors over the domain do not exist meanwhile, so many partitions of a
/// PoRep take less than the proof of one. Nothing is held afterwards.
#[must_use]
pub fn batch_footprint(
    circuit: &CircuitSizes,
    workspace: &CpuWorkspace,
    partitions: usize,
) -> Footprint {
    let mut pool = Replay::default();
    for _ in 0..partitions {
        replay_witness(circuit, workspace.threads, &mut pool);
    }
    let lengths = circuit.query_lengths();
    let in_g1 =
        |bases| MsmMemory::of_g1_columns(workspace.isa, partitions, bases, workspace.threads);
    let in_g2 =
        MsmMemory::of_g2_columns(workspace.isa, partitions, lengths.b, workspace.b_g2_threads);
    let sums = [
        (in_g1(lengths.l), 0),
        (in_g1(lengths.a), lengths.a),
        (in_g2, lengths.b),
    ];
    let mut heap_bytes = 0;
    for (sum, query_len) in sums {
        replay_sum(&mut pool, &sum, query_len, partitions);
        heap_bytes = heap_bytes.max(sum.heap_bytes);
    }
    let heap_bytes =
        writing_bytes(circuit, workspace.threads) + workspace.threads_bytes() + heap_bytes as u64;
    Footprint {
        peak_bytes: pool.mapped_bytes_max as u64 + heap_bytes,
        finish_bytes: 0,
        kept_blocks: pool.into_blocks(),
    }
}

/// Takes the blocks of a sum and gives them back. A query of more than 0 scalars takes a block
/// of bits for each partition, too.
fn replay_sum(pool: &mut Replay, sum: &MsmMemory, query_len: usize, partitions: usize) {
    let words_bytes = query_len.div_ceil(64) * size_of::<u64>();
    let query = vec![words_bytes; if query_len > 0 { partitions } else { 0 }];
    let query = pool.take(&query);
    for blocks in sum.blocks.chunks(BLOCKS_AT_ONCE) {
        let blocks = pool.take(blocks);
        pool.give_back(blocks);
    }
    pool.give_back(query);
}
