// Sums of selected points.
//
// The places of the selected bases are listed first, so that each thread gets
// equally many, and neighbours read neighbouring bases. With one bit for each
// thread instead, a warp would wait for its fullest word. Each base takes 10
// multiplications and 96 bytes (192 in G2). By computation that is 386 ps on
// an H100 (2,856 products of limbs, 7.4 T/s) against 29 ps (3.3 TB/s), so arithmetic
// should decide the time.
#pragma once

#include "curve.hpp"
#include "query.hpp"
#include "scan.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The number of bases that each word of the bitmap selects.
struct CountSelected {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Query query;
    const uint64_t *bits;
    uint32_t words;
    uint32_t *counts; // words + 1, the last of them zero

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t word = block.index * THREADS + thread;
            if (word < words) {
                counts[word] = popcount(QueryWord::of(query, word).selected(bits[word]));
            } else if (word == words) {
                counts[word] = 0;
            }
        });
    }
};

struct ListSelected {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Query query;
    const uint64_t *bits;
    uint32_t words;
    const uint32_t *offsets;
    uint32_t *places;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t word = block.index * THREADS + thread;
            if (word >= words) {
                return;
            }
            const QueryWord bases = QueryWord::of(query, word);
            uint32_t at = offsets[word];
            for (uint64_t left = bases.selected(bits[word]); left != 0; left &= left - 1) {
                places[at++] = bases.place(lowest_bit(left));
            }
        });
    }
};

// The threads of a block whose threads share a point each: 24 KiB in either group.
template <class F> constexpr uint32_t POINT_THREADS = 128 * sizeof(Fp) / sizeof(F);

template <class F> struct PointsShared {
    Xyzz<F> points[POINT_THREADS<F>];
};

// Each block adds up an equal share of the listed bases.
template <class F> struct SumListed {
    static constexpr uint32_t THREADS = POINT_THREADS<F>;
    using Shared = PointsShared<F>;
    const Affine<F> *bases;
    const uint32_t *places;
    const uint32_t *count;
    uint32_t blocks;
    Xyzz<F> *sums; // by block

    template <class B> CUZK_BODY void run(B &block, Shared &shared) const {
        block.each([&](uint32_t thread) {
            Xyzz<F> sum = infinity<F>();
            const uint32_t stride = blocks * THREADS;
            for (uint32_t at = block.index * THREADS + thread; at < *count; at += stride) {
                sum = add_affine(sum, bases[places[at]]);
            }
            shared.points[thread] = sum;
        });
        sum_in_block(block, shared.points, THREADS);
        block.each([&](uint32_t thread) {
            if (thread == 0) {
                sums[block.index] = shared.points[0];
            }
        });
    }
};

// The number of points that one block of SumPoints adds up.
template <class F> constexpr uint32_t SUM_TILE = 4 * POINT_THREADS<F>;

// Adds up groups of `length` points, SUM_TILE of them in each block: sums[g·tiles +
// t] is tile t of group g.
template <class F> struct SumPoints {
    static constexpr uint32_t THREADS = POINT_THREADS<F>;
    using Shared = PointsShared<F>;
    const Xyzz<F> *points;
    uint32_t length;
    uint32_t tiles; // of a group
    Xyzz<F> *sums;

    template <class B> CUZK_BODY void run(B &block, Shared &shared) const {
        const uint32_t start = block.index % tiles * SUM_TILE<F>;
        const Xyzz<F> *group = points + static_cast<size_t>(block.index / tiles) * length;
        block.each([&](uint32_t thread) {
            Xyzz<F> sum = infinity<F>();
            for (uint32_t k = 0; k < SUM_TILE<F>; k += THREADS) {
                const uint32_t at = start + k + thread;
                if (at < length) {
                    sum = add(sum, group[at]);
                }
            }
            shared.points[thread] = sum;
        });
        sum_in_block(block, shared.points, THREADS);
        block.each([&](uint32_t thread) {
            if (thread == 0) {
                sums[block.index] = shared.points[0];
            }
        });
    }
};

// Adds up `groups` groups of `length` points into `sums`. `spare` has room for
// twice groups · ceil(length / SUM_TILE) points.
template <class F>
Error sum_points(const Xyzz<F> *points, uint32_t groups, uint32_t length, Xyzz<F> *spare,
                 Xyzz<F> *sums, Stream stream) {
    Xyzz<F> *halves[2] = {spare,
                          spare + static_cast<size_t>(groups) * div_ceil(length, SUM_TILE<F>)};
    for (int turn = 0;; turn = 1 - turn) {
        const uint32_t tiles = max_of(div_ceil(length, SUM_TILE<F>), 1U);
        Xyzz<F> *out = tiles == 1 ? sums : halves[turn];
        const Error error = launch(SumPoints<F>{points, length, tiles, out},
                                   static_cast<uint64_t>(groups) * tiles, stream);
        if (error != OK || tiles == 1) {
            return error;
        }
        points = out;
        length = tiles;
    }
}

// A few waves of a large card. More blocks would only leave more to add up.
constexpr uint32_t SUM_BLOCKS_MAX = 1024;

template <class F> uint32_t sum_blocks(uint32_t words) {
    // Eight bases for each thread, if all bits are set.
    return min_of(max_of(div_ceil(words * uint64_t{8}, uint64_t{POINT_THREADS<F>}), uint64_t{1}),
                  uint64_t{SUM_BLOCKS_MAX});
}

template <class F> size_t sum_scratch_bytes(uint32_t words) {
    const uint32_t length = words + 1;
    const uint32_t blocks = sum_blocks<F>(words);
    return Arena::bytes<uint32_t>(length) + Arena::bytes<uint32_t>(scan_totals(length)) +
           Arena::bytes<uint32_t>(size_t{words} * 64) + Arena::bytes<Xyzz<F>>(blocks) +
           Arena::bytes<Xyzz<F>>(2 * div_ceil(blocks, SUM_TILE<F>));
}

template <class F>
Error sum(const Affine<F> *bases, const Query &query, const uint64_t *bits, uint32_t words,
          void *scratch, Xyzz<F> *result, Stream stream) {
    if (words > SUM_WORDS_MAX) {
        return INVALID_VALUE;
    }
    const uint32_t length = words + 1;
    const uint32_t blocks = sum_blocks<F>(words);
    Arena arena(scratch);
    auto *offsets = arena.take<uint32_t>(length);
    auto *totals = arena.take<uint32_t>(scan_totals(length));
    auto *places = arena.take<uint32_t>(size_t{words} * 64);
    auto *sums = arena.take<Xyzz<F>>(blocks);
    auto *spare = arena.take<Xyzz<F>>(2 * div_ceil(blocks, SUM_TILE<F>));
    Error error = launch(CountSelected{query, bits, words, offsets},
                         div_ceil(length, CountSelected::THREADS), stream);
    if (error == OK) {
        error = scan(offsets, length, totals, stream);
    }
    if (error == OK) {
        error = launch(ListSelected{query, bits, words, offsets, places},
                       div_ceil(words, ListSelected::THREADS), stream);
    }
    if (error == OK) {
        error = launch(SumListed<F>{bases, places, offsets + words, blocks, sums}, blocks, stream);
    }
    if (error == OK) {
        error = sum_points(sums, 1, blocks, spare, result, stream);
    }
    return error;
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
