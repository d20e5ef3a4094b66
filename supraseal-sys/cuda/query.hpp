// The bases that belong to the bits of a witness.
#pragma once

#include "launch.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The bases of the 64 aux variables of one word of a bitmap.
struct QueryWord {
    uint64_t mask;
    uint32_t first; // base of the first variable in the mask, counted from the
                    // first in memory; wraps below zero
    uint32_t num_bases;

    static CUZK_BODY QueryWord of(const Query &query, uint32_t word) {
        const uint32_t before = query.mask == nullptr ? word * 64 : query.ranks[word];
        return {query.mask == nullptr ? UINT64_MAX : query.mask[word],
                query.before + before - query.first_base, query.num_bases};
    }

    // The place in memory of a variable's base, or NO_BASE.
    CUZK_BODY uint32_t place(uint32_t bit) const {
        const uint32_t place = first + popcount(mask & ((uint64_t{1} << bit) - 1));
        return (mask >> bit & 1) != 0 && place < num_bases ? place : NO_BASE;
    }

    // Returns those of `bits` that have a base in memory.
    CUZK_BODY uint64_t selected(uint64_t bits) const {
        uint64_t selected = bits & mask;
        const uint32_t last = first + popcount(mask);
        if (first < num_bases && last <= num_bases) {
            return selected;
        }
        for (uint64_t left = selected; left != 0; left &= left - 1) {
            if (place(lowest_bit(left)) == NO_BASE) {
                selected &= ~(left & (0 - left));
            }
        }
        return selected;
    }
};

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
