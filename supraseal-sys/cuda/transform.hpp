// Passes of number-theoretic transforms (Cooley–Tukey down, Gentleman–Sande up)
// over tiles that fit into shared memory.
//
// A pass does `levels` of a transform's levels. A tile is 2^levels rows, which
// those levels mix, by 2^columns neighbouring columns, which keep reads of global
// memory together (at least 128 bytes). Coefficients are in natural order and
// values in bit-reversed order, so nothing is ever permuted. A pass can go up and
// down again, and multiply on its way. Its steps, each of which may be left out,
// are
//
//     read [· factor] · up (domain) · down · [· factor] · up · write
//
// Computed bounds on an H100 for N = 2^22: 46 M butterflies of a transform at 54 G
// multiplications/s (136 products of limbs, 7.4 T/s) take 0.85 ms. A pass over 134
// MB, there and back, at 3.3 TB/s takes 0.08 ms. So three passes of a transform
// suffice, and few multiplications matter more than few passes: none is spent on
// the coset or on order.
#pragma once

#include "roots.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

constexpr uint32_t TILE_LOG = 10;
constexpr uint32_t LEVELS_MAX = 8; // of a pass with columns, so that those are 4

struct alignas(16) Quad {
    uint32_t words[4];
};

// The halves of elements are kept apart: accesses of 16 bytes for each lane, in
// turn, have no bank conflicts, and 16 of every 32 bytes have.
struct Tile {
    Quad halves[2][1 << TILE_LOG];

    CUZK_BODY Fr get(uint32_t at) const {
        const Quad low = halves[0][at];
        const Quad high = halves[1][at];
        return {{low.words[0], low.words[1], low.words[2], low.words[3], high.words[0],
                 high.words[1], high.words[2], high.words[3]}};
    }

    CUZK_BODY void set(uint32_t at, const Fr &value) {
        const uint32_t *x = value.limbs;
        halves[0][at] = {{x[0], x[1], x[2], x[3]}};
        halves[1][at] = {{x[4], x[5], x[6], x[7]}};
    }
};

// The multiplications of a pass by `factor`, element by element.
enum class Factor : uint32_t { none, first, between };

// The part of a transform's levels that a pass does.
struct Levels {
    uint32_t log;     // of the transform
    uint32_t above;   // levels before these, going down
    uint32_t levels;
    uint32_t columns; // log

    CUZK_FN uint32_t tile_log() const { return levels + columns; }
};

struct Pass {
    static constexpr uint32_t THREADS = 1 << (TILE_LOG - 2);
    using Shared = Tile;
    Roots roots;
    Levels part;
    const Fr *in;
    Fr *out;
    const Fr *factor;
    Factor use_factor;
    bool up_first; // on the domain
    bool down;     // on the domain, or its coset
    bool down_coset;
    bool up;
    bool up_coset;
    // Instead of the result x, writes finish_scale·finish − scale·x.
    const Fr *finish;
    Fr finish_scale, scale;

    // The place of a tile in the vector.
    struct Place {
        uint32_t block; // of the first of its levels
        uint32_t start;
        uint32_t below; // log of the distance between rows
        uint32_t columns;

        CUZK_BODY uint32_t of(uint32_t at) const {
            return start + ((at >> columns) << below) + (at & ((1U << columns) - 1));
        }
    };

    CUZK_BODY Place place(uint32_t tile) const {
        const uint32_t below = part.log - part.above - part.levels;
        const uint32_t groups_log = below - part.columns;
        const uint32_t block = tile >> groups_log;
        const uint32_t group = tile & ((1U << groups_log) - 1);
        const uint32_t start = (block << (part.log - part.above)) + (group << part.columns);
        return {block, start, below, part.columns};
    }

    // The number of a block, with a one before it on the coset.
    CUZK_BODY uint32_t number(uint32_t block, uint32_t level, uint32_t row, bool coset) const {
        const uint32_t first = (coset ? 1U << part.above : 0) | block;
        const uint32_t within = level == 0 ? 0 : row >> (part.levels - level);
        return (first << level) | within;
    }

    // (u, v) → (u + ζ·v, u − ζ·v)
    CUZK_BODY void butterfly_down(Fr &u, Fr &v, uint32_t block) const {
        const Fr product = block == 0 ? v : mul(v, root(roots, block));
        v = sub(u, product);
        u = add(u, product);
    }

    // (u, v) → (u + v, (u − v)/ζ)
    CUZK_BODY void butterfly_up(Fr &u, Fr &v, uint32_t block) const {
        const Fr sum = add(u, v);
        v = block == 0 ? sub(u, v) : mul(sub(v, u), root(roots, opposite(block)));
        u = sum;
    }

    // One level: two pairs for each thread.
    template <bool DOWN>
    CUZK_BODY void level(Tile &tile, const Place &at, uint32_t level, bool coset,
                         uint32_t thread) const {
        const uint32_t distance_log = part.columns + part.levels - 1 - level;
        const uint32_t pairs = 1U << (part.tile_log() - 1);
        for (uint32_t pair = thread; pair < pairs; pair += THREADS) {
            const uint32_t low = pair & ((1U << distance_log) - 1);
            const uint32_t i = (pair - low) * 2 + low;
            const uint32_t k = i + (1U << distance_log);
            const uint32_t block = number(at.block, level, i >> part.columns, coset);
            Fr u = tile.get(i);
            Fr v = tile.get(k);
            if (DOWN) {
                butterfly_down(u, v, block);
            } else {
                butterfly_up(u, v, block);
            }
            tile.set(i, u);
            tile.set(k, v);
        }
    }

    // Levels `level` and `level` + 1, in registers: four elements for each thread.
    template <bool DOWN>
    CUZK_BODY void two_levels(Tile &tile, const Place &at, uint32_t level, bool coset,
                              uint32_t thread) const {
        if (thread >= 1U << (part.tile_log() - 2)) {
            return;
        }
        const uint32_t distance_log = part.columns + part.levels - 2 - level;
        const uint32_t distance = 1U << distance_log;
        const uint32_t low = thread & (distance - 1);
        const uint32_t first = (thread - low) * 4 + low;
        const uint32_t block = number(at.block, level, first >> part.columns, coset);
        Fr x[4];
        CUZK_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
            x[i] = tile.get(first + i * distance);
        }
        if (DOWN) {
            butterfly_down(x[0], x[2], block);
            butterfly_down(x[1], x[3], block);
            butterfly_down(x[0], x[1], 2 * block);
            butterfly_down(x[2], x[3], 2 * block + 1);
        } else {
            butterfly_up(x[0], x[1], 2 * block);
            butterfly_up(x[2], x[3], 2 * block + 1);
            butterfly_up(x[0], x[2], block);
            butterfly_up(x[1], x[3], block);
        }
        CUZK_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
            tile.set(first + i * distance, x[i]);
        }
    }

    template <class B>
    CUZK_BODY void all_down(B &block, Tile &tile, const Place &at, bool coset) const {
        const uint32_t odd = part.levels % 2;
        if (odd == 1) {
            block.each([&](uint32_t thread) { level<true>(tile, at, 0, coset, thread); });
        }
        for (uint32_t k = odd; k < part.levels; k += 2) {
            block.each([&](uint32_t thread) { two_levels<true>(tile, at, k, coset, thread); });
        }
    }

    template <class B>
    CUZK_BODY void all_up(B &block, Tile &tile, const Place &at, bool coset) const {
        const uint32_t odd = part.levels % 2;
        for (uint32_t k = part.levels; k > odd; k -= 2) {
            block.each(
                [&](uint32_t thread) { two_levels<false>(tile, at, k - 2, coset, thread); });
        }
        if (odd == 1) {
            block.each([&](uint32_t thread) { level<false>(tile, at, 0, coset, thread); });
        }
    }

    template <class B> CUZK_BODY void run(B &block, Shared &tile) const {
        const Place at = place(block.index);
        const uint32_t size = 1U << part.tile_log();
        block.each([&](uint32_t thread) {
            for (uint32_t i = thread; i < size; i += THREADS) {
                Fr value = in[at.of(i)];
                if (use_factor == Factor::first) {
                    value = mul(value, factor[at.of(i)]);
                }
                tile.set(i, value);
            }
        });
        if (up_first) {
            all_up(block, tile, at, false);
        }
        if (down) {
            all_down(block, tile, at, down_coset);
        }
        if (use_factor == Factor::between) {
            block.each([&](uint32_t thread) {
                for (uint32_t i = thread; i < size; i += THREADS) {
                    tile.set(i, mul(tile.get(i), factor[at.of(i)]));
                }
            });
        }
        if (up) {
            all_up(block, tile, at, up_coset);
        }
        block.each([&](uint32_t thread) {
            for (uint32_t i = thread; i < size; i += THREADS) {
                Fr value = tile.get(i);
                if (finish != nullptr) {
                    value = sub(mul(finish[at.of(i)], finish_scale), mul(value, scale));
                }
                out[at.of(i)] = value;
            }
        });
    }
};

// The passes of a transform, from the top down.
struct Plan {
    uint32_t count;
    Levels parts[4];

    static Plan of(uint32_t log) {
        Plan plan{};
        const uint32_t last = min_of(log, TILE_LOG);
        const uint32_t above = log - last;
        const uint32_t passes = div_ceil(above, LEVELS_MAX);
        uint32_t done = 0;
        for (uint32_t i = 0; i < passes; ++i) {
            const uint32_t levels = (above - done) / (passes - i);
            plan.parts[i] = {log, done, levels, TILE_LOG - levels};
            done += levels;
        }
        plan.parts[passes] = {log, done, last, 0};
        plan.count = passes + 1;
        return plan;
    }

    uint32_t last() const { return count - 1; }
};

static_assert(LOG_DOMAIN_MAX <= TILE_LOG + 3 * LEVELS_MAX);

inline Error launch_pass(const Pass &pass, Stream stream) {
    return launch(pass, uint64_t{1} << (pass.part.log - pass.part.tile_log()), stream);
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
