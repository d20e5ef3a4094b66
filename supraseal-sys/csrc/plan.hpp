// How the memory of a device is used: a pure function of its size, the number
// of workers and the sizes of a circuit.
//
// ```text
// frame: | worker 0 | … | worker W-1 | side | b | overlay             |
//                                                a, scratch            (quotient)
//                                                MSM, decoded, raw x 2 (sums)
// block: | circuit | resident points |
// ```
//
// The frame begins where the device's memory does. A worker's part of it is its
// own from staging to its results, so it waits for no other; the rest belongs to
// whoever holds gpu_mtx: `side` to the sums beside the main ones, which begin
// while the transforms run. The block is what of a circuit stays, wherever there
// is room for it (residency.hpp): the points of each query from its first on,
// as many as fit. The rest is streamed a piece at a time through two raw buffers,
// and so is B in G1, which most proofs do without.
//
// Invariant: no two parts that are used at the same time overlap, and frame and
// block together take what was given or less.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "../wrapper.h"
#include "variant.hpp"

namespace cuzk::CUZK_VARIANT {

constexpr std::size_t kAlign = 256;
// The longest piece: 384 MiB of points, twice of which are pinned.
constexpr uint32_t kLogPieceMax = 22;
// Shorter pieces than this only where longer ones do not fit.
constexpr uint32_t kLogPieceGood = 18;
constexpr uint32_t kLogPieceMin = 6;
// The longest multiplication beside the main ones. Longer ones would save some
// additions, but take memory that points could have.
constexpr uint32_t kLogSideMax = 19;
// Where not all points of a circuit fit, this part of the memory is left to
// other circuits, so that a small one need not drive out a large one's.
constexpr uint64_t kPartOfOthers = 16;

struct Part {
    std::size_t offset = 0;
    std::size_t bytes = 0;

    std::size_t end() const { return offset + bytes; }
};

// A worker's, from its start.
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

// What sums are made in, one after the other.
struct SumsLayout {
    Part scratch;
    Part places; // of the wide values' bases
    // At most, of one multiplication and of one sum.
    uint32_t msm_points = 0;
    uint32_t sum_words = 0;
};

struct Plan {
    cuzk_device_plan summary{};
    uint32_t roots_low_log = 0;
    // In the frame.
    WorkerLayout worker;
    SumsLayout side;
    Part b;
    Part a;
    Part scratch;
    SumsLayout main;
    Part decoded;
    std::array<Part, 2> raw;
    // In the block.
    CircuitLayout circuit;
    std::array<Part, CUZK_QUERIES> resident;
    std::size_t results_max = 0;

    std::size_t frame_bytes() const { return summary.total_bytes - block_bytes(); }
    std::size_t block_bytes() const { return summary.circuit_bytes + summary.resident_bytes; }
    // Whether the query is summed on the device.
    bool on_device(uint32_t query) const {
        return query != CUZK_QUERY_B_G2 || summary.b_g2_on_device != 0;
    }

    std::size_t worker_offset(std::size_t worker) const { return worker * this->worker.bytes; }
    // Points of `query` that are streamed at a time.
    std::size_t piece_points(uint32_t query) const;
};

// Bytes of a point on the device, and encoded.
constexpr std::size_t point_bytes(uint32_t query) {
    return query == CUZK_QUERY_B_G2 ? 192 : 96;
}

// Throws CUZK_INVALID_ARGUMENT and CUZK_CIRCUIT_TOO_LARGE.
Plan make_plan(const cuzk_circuit_shape &shape, const cuzk_device_options &options);

} // namespace cuzk::CUZK_VARIANT
