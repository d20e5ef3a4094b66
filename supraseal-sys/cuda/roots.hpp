// The twiddles of number-theoretic transforms.
//
// Write frac(j) for the bits of j, the lowest first, as a binary fraction, and e(x)
// = ω^(x·2^32). x^m − e(θ) is (x^(m/2) − e(θ/2))·(x^(m/2) + e(θ/2)). So if x^N − 1
// is split again and again, block j of a level is modulo x^m − e(frac(j)), whatever
// the level. Its twiddle is e(frac(j)/2): one table serves all levels and all
// domains.
//
// x^N + 1 is block 1 of the level above. So a transform on the coset of the root of
// order 2N is the same, with a one before the number of each block. It costs
// nothing more.
//
// The inverse of root j ≥ 1 is minus the root that has all bits of j but the
// highest flipped, because that one has the fraction 1 − frac(j).
#pragma once

#include "field.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The 2^32th root of unity that blst and bellperson use: 7^((r − 1)/2^32).
CUZK_FN constexpr Fr root_of_unity() {
    return {{0x5f0e466a, 0xb9b58d8c, 0x1819d7ec, 0x5b1b4c80, 0x52a31e64, 0x0af53ae3, 0x19e9b27b,
             0x5bf3adda}};
}

// 1/2, in Montgomery form.
CUZK_FN constexpr Fr half_of_one() {
    return {{0xffffffff, 0x00000000, 0x0001a401, 0xac425bfd, 0xf65e27fa, 0xccc627f7, 0xd66282b7,
             0x0c1258ac}};
}

CUZK_BODY Fr root(const Roots &roots, uint32_t j) {
    if (roots.low_log >= roots.log) {
        return roots.low[j];
    }
    const uint32_t high = j >> roots.low_log;
    const Fr low = roots.low[j & ((1U << roots.low_log) - 1)];
    return high == 0 ? low : mul(low, roots.high[high]);
}

// The j whose root is minus the inverse of root j. Not for j = 0.
CUZK_BODY uint32_t opposite(uint32_t j) {
    uint32_t below = j;
    below |= below >> 1;
    below |= below >> 2;
    below |= below >> 4;
    below |= below >> 8;
    below |= below >> 16;
    return j ^ (below >> 1);
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
