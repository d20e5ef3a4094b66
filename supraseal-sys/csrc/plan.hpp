// The plan of a device's memory: a pure function of its size, the number of workers
// and the sizes of a circuit.
//
// ```text
// frame: | worker 0 | … | worker W-1 | side | b | overlay             |
//                                                a, scratch            (quotient)
//                                                MSM, decoded, raw x 2 (sums)
// block: | circuit | resident points |
// ```
//
// The frame begins at the start of the device's memory. A worker's part of it
// belongs to that worker from staging to its results, so it waits for no other. The
// rest belongs to the holder of gpu_mtx. `side` belongs to the MSMs that begin
// while the transforms run.
//
// The block is the part of a circuit that stays, wherever there is room for it
// (residency.hpp). It has as many points of each query as fit, from its first on.
// The rest is streamed a piece at a time through two raw buffers. B in G1 is
// streamed, too, because most proofs do without it.
//
// Invariant: no two parts that are used at the same time overlap. Frame and block
// together take at most the given memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "../wrapper.h"
#include "variant.hpp"

namespace cuzk::CUZK_VARIANT {

constexpr std::size_t kAlign = 256;
// The longest piece: 384 MiB of points, and twice that is pinned.
constexpr uint32_t kLogPieceMax = 22;
// Shorter pieces than this are used only where longer ones do not fit.
constexpr uint32_t kLogPieceGood = 18;
constexpr uint32_t kLogPieceMin = 6;
// The longest MSM beside the transforms. Longer ones would save some additions, but
// take memory that points could have.
constexpr uint32_t kLogSideMax = 19;
// If not all points of a circuit fit, this part of the memory is left to other
// circuits. So a small circuit need not evict a large one's points.
constexpr uint64_t kPartOfOthers = 16;

struct Part {
    std::size_t offset = 0;
    std::size_t bytes = 0;

    std::size_t end() const { return offset + bytes; }
};

// The parts of a worker, from its start.
struct WorkerLayout {
    Part stop; // a word that is 0, and what it becomes
    Part inputs;
    Part bits;
    Part wide;
    Part ranks;
    Part wide_values;
    Part results;
    std::size_t bytes = 0;
};

struct CircuitLayout {
    Part coefficients;
    Part integers;
    Part halves;
    Part part_ends;
    Part items;
    Part shapes;
    Part unit_rows;
    Part references;
    Part block_references;
    Part a_mask;
    Part a_ranks;
    Part b_mask;
    Part b_ranks;
    // By input: the place of its base, in the queries over A and over B.
    Part a_inputs;
    Part b_inputs;
    Part roots_low;
    Part roots_high;
};

// The memory in which MSMs are computed, one after the other.
struct SumsLayout {
    Part scratch;
    Part places; // of the wide values' bases
    // The most points of one MSM and of one sum of points.
    uint32_t msm_points = 0;
    uint32_t sum_words = 0;
};

struct Plan {
    cuzk_device_plan summary{};
    uint32_t roots_low_log = 0;
    // Parts of the frame.
    WorkerLayout worker;
    SumsLayout side;
    Part b;
    Part a;
    Part scratch;
    SumsLayout main;
    Part decoded;
    std::array<Part, 2> raw;
    // Parts of the block.
    CircuitLayout circuit;
    std::array<Part, CUZK_QUERIES> resident;
    std::size_t results_max = 0;

    std::size_t frame_bytes() const { return summary.total_bytes - block_bytes(); }
    std::size_t block_bytes() const { return summary.circuit_bytes + summary.resident_bytes; }
    // Returns true if the MSM of the query runs on the device.
    bool on_device(uint32_t query) const {
        return query != CUZK_QUERY_B_G2 || summary.b_g2_on_device != 0;
    }

    std::size_t worker_offset(std::size_t worker) const { return worker * this->worker.bytes; }
    // The number of points of `query` that are streamed at a time.
    std::size_t piece_points(uint32_t query) const;
};

// The bytes of a point on the device, and encoded.
constexpr std::size_t point_bytes(uint32_t query) {
    return query == CUZK_QUERY_B_G2 ? 192 : 96;
}

// Throws CUZK_INVALID_ARGUMENT and CUZK_CIRCUIT_TOO_LARGE.
Plan make_plan(const cuzk_circuit_shape &shape, const cuzk_device_options &options);

} // namespace cuzk::CUZK_VARIANT
