// b_g2_msm over the engine's data: encoded points, and scalars of which most are
// bits. The algorithm is the same: this decodes the points whose scalars are not
// zero, adds those whose scalars are one, and leaves the rest to b_g2_msm.
//
// Invariants: those of b_g2_msm. A point is decoded only if its scalar is not zero.
// It is checked then to be on the curve and not at infinity.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "../wrapper.h"
#include "pool.hpp"

namespace cuzk {

struct PackedB {
    const uint8_t *points; // encoded, 192 bytes each
    std::size_t num_points;
    // The inputs in the query, whose points come first.
    const uint32_t *inputs;
    std::size_t num_inputs;
    // By word of 64 auxiliaries: the bits of those in the query, and the number of
    // those before.
    const uint64_t *mask;
    const uint32_t *ranks;
    std::size_t num_words;
};

// `wide_ranks`: by word, the number of wide values before it. `before_work` runs on
// a worker before each piece of work. An exception from it ends the MSM.
blst_p2 b_g2_packed(Pool &pool, std::atomic<int> &throttle, const PackedB &bases,
                    const cuzk_witness &witness, const uint32_t *wide_ranks,
                    const std::function<void()> &before_work = {});

// By word, the number of bits set before it.
std::vector<uint32_t> ranks_of(const uint64_t *words, std::size_t num_words);

} // namespace cuzk
