// Prefix sums: word i becomes the sum of the words 0 .. i − 1.
//
// There are three kernels: the sums within tiles, the sums over tiles, and their
// combination. They take two reads and two writes of a few megabytes, and nothing
// waits for them.
#pragma once

#include "launch.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

constexpr uint32_t SCAN_THREADS = 256;
constexpr uint32_t SCAN_EACH = 8; // words a thread
constexpr uint32_t SCAN_TILE = SCAN_THREADS * SCAN_EACH;

struct ScanShared {
    uint32_t sums[2][SCAN_THREADS];
    uint32_t total;
};

// Replaces each thread's sum by the sum of those before it. Returns the half of
// `sums` that contains them. Method: Hillis and Steele.
template <class B> CUZK_BODY uint32_t scan_in_block(B &block, ScanShared &shared) {
    uint32_t from = 0;
    for (uint32_t reach = 1; reach < SCAN_THREADS; reach *= 2) {
        block.each([&](uint32_t thread) {
            const uint32_t before = thread >= reach ? shared.sums[from][thread - reach] : 0;
            shared.sums[1 - from][thread] = shared.sums[from][thread] + before;
        });
        from = 1 - from;
    }
    block.each([&](uint32_t thread) {
        shared.sums[1 - from][thread] = thread > 0 ? shared.sums[from][thread - 1] : 0;
        if (thread == SCAN_THREADS - 1) {
            shared.total = shared.sums[from][thread];
        }
    });
    return 1 - from;
}

// One tile in place, after `carry`. Its total is in `shared` afterwards.
template <class B>
CUZK_BODY void scan_tile(B &block, ScanShared &shared, uint32_t *words, uint32_t length,
                         uint32_t carry) {
    block.each([&](uint32_t thread) {
        uint32_t sum = 0;
        for (uint32_t k = thread * SCAN_EACH; k < (thread + 1) * SCAN_EACH && k < length; ++k) {
            sum += words[k];
        }
        shared.sums[0][thread] = sum;
    });
    const uint32_t at = scan_in_block(block, shared);
    block.each([&](uint32_t thread) {
        uint32_t sum = carry + shared.sums[at][thread];
        for (uint32_t k = thread * SCAN_EACH; k < (thread + 1) * SCAN_EACH && k < length; ++k) {
            const uint32_t word = words[k];
            words[k] = sum;
            sum += word;
        }
    });
}

struct ScanTiles {
    static constexpr uint32_t THREADS = SCAN_THREADS;
    using Shared = ScanShared;
    uint32_t *words;
    uint32_t length;
    uint32_t *totals;

    template <class B> CUZK_BODY void run(B &block, Shared &shared) const {
        const uint32_t start = block.index * SCAN_TILE;
        scan_tile(block, shared, words + start, min_of(SCAN_TILE, length - start), 0);
        block.each([&](uint32_t thread) {
            if (thread == 0) {
                totals[block.index] = shared.total;
            }
        });
    }
};

// All in one block, tile by tile.
struct ScanTotals {
    static constexpr uint32_t THREADS = SCAN_THREADS;
    using Shared = ScanShared;
    uint32_t *totals;
    uint32_t length;

    template <class B> CUZK_BODY void run(B &block, Shared &shared) const {
        uint32_t carry = 0;
        for (uint32_t start = 0; start < length; start += SCAN_TILE) {
            scan_tile(block, shared, totals + start, min_of(SCAN_TILE, length - start), carry);
            carry += shared.total;
            block.each([](uint32_t) {}); // the total is read before it is written again
        }
    }
};

struct AddTotals {
    static constexpr uint32_t THREADS = SCAN_THREADS;
    using Shared = Nothing;
    uint32_t *words;
    uint32_t length;
    const uint32_t *totals;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        const uint32_t total = totals[block.index];
        block.each([&](uint32_t thread) {
            for (uint32_t k = 0; k < SCAN_EACH; ++k) {
                const uint32_t at = block.index * SCAN_TILE + k * THREADS + thread;
                if (at < length) {
                    words[at] += total;
                }
            }
        });
    }
};

inline size_t scan_totals(uint32_t length) { return div_ceil(length, SCAN_TILE); }

// `totals` has room for scan_totals(length) words.
inline Error scan(uint32_t *words, uint32_t length, uint32_t *totals, Stream stream) {
    const uint32_t tiles = div_ceil(length, SCAN_TILE);
    Error error = launch(ScanTiles{words, length, totals}, tiles, stream);
    if (error == OK) {
        error = launch(ScanTotals{totals, tiles}, 1, stream);
    }
    if (error == OK) {
        error = launch(AddTotals{words, length, totals}, tiles, stream);
    }
    return error;
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
