// How the memory of a device is used: a pure function of its size, the number
// of workers and the sizes of a circuit.
//
// ```text
// | worker 0 | … | worker W-1 | circuit | b | overlay              | resident |
//                                            a, scratch            (quotient)
//                                            MSM, decoded, raw x 2 (sums)
// ```
//
// A worker's part is its own from staging to its results, so it waits for no
// other; circuit, b and overlay belong to whoever holds gpu_mtx. The points of
// each query stay on the device from its first on, as many as fit; the rest is
// streamed a piece at a time through two raw buffers.
//
// Invariant: no two parts that are used at the same time overlap, and
// everything is within total_bytes, which is at most what was given.
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

struct Part {
    std::size_t offset = 0;
    std::size_t bytes = 0;

    std::size_t end() const { return offset + bytes; }
};

// A worker's, from its start.
struct WorkerLayout {
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

struct Plan {
    cuzk_device_plan summary{};
    uint32_t roots_low_log = 0;
    WorkerLayout worker;
    CircuitLayout circuit;
    Part b;
    Part a;
    Part scratch;
    Part msm;
    Part places;
    Part decoded;
    std::array<Part, 2> raw;
    std::array<Part, CUZK_QUERIES> resident;
    // At most, of one multiplication and of one sum.
    uint32_t msm_points = 0;
    uint32_t sum_words = 0;
    std::size_t results_max = 0;

    std::size_t worker_offset(std::size_t worker) const { return worker * this->worker.bytes; }
    // Points of `query` that are streamed at a time.
    std::size_t piece_points(uint32_t query) const;
};

// Bytes of a point on the device, and encoded.
constexpr std::size_t point_bytes(uint32_t query) {
    return query == CUZK_QUERY_B_G2 ? 192 : 96;
}

// Whether the query is summed on the device.
inline bool on_device(uint32_t query, const cuzk_device_options &options) {
    return query != CUZK_QUERY_B_G2 || options.b_g2_on_device != 0;
}

// Throws CUZK_INVALID_ARGUMENT and CUZK_CIRCUIT_TOO_LARGE.
Plan make_plan(const cuzk_circuit_shape &shape, const cuzk_device_options &options);

} // namespace cuzk::CUZK_VARIANT
