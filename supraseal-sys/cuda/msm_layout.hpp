// The layout of an MSM: its numbers of buckets, threads and partials, and its
// scratch memory.
#pragma once

#include "sum.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The number of partials of which one thread makes two.
constexpr uint32_t PARTIALS_EACH = 8;

// The number of buckets that one thread adds up: two additions each, and some 25
// more to multiply by the number of the first.
constexpr uint32_t CHUNK_BUCKETS = 16;

// The number of listed digits that a thread adds up. Some 2^17 threads fill a large
// card twice. More than EACH_MAX digits for each thread would only save partials,
// which are 2 % of the work then.
constexpr uint32_t LOG_THREADS = 17;
constexpr uint32_t EACH_MIN = PARTIALS_EACH;
constexpr uint32_t EACH_MAX = 128;

// The layout of an MSM of n scalars.
struct Layout {
    uint32_t buckets;  // of a window
    uint32_t total;    // buckets of all windows
    uint32_t each;     // listed digits a thread
    uint32_t threads;  // that have listed digits
    uint32_t partials; // that the first reduction takes
    uint32_t chunks;   // of a window

    static Layout of(uint32_t n, Windows windows) {
        Layout layout;
        layout.buckets = 1U << (windows.bits - 1);
        layout.total = layout.buckets * windows.windows;
        const uint64_t digits = uint64_t{n} * windows.windows;
        layout.each = static_cast<uint32_t>(
            min_of<uint64_t>(max_of<uint64_t>(digits >> LOG_THREADS, EACH_MIN), EACH_MAX));
        layout.threads = static_cast<uint32_t>(div_ceil<uint64_t>(digits, layout.each));
        layout.partials = 2 * layout.threads;
        layout.chunks = div_ceil(layout.buckets, CHUNK_BUCKETS);
        return layout;
    }

    // The number of partials that there is room for. It never shrinks as scalars
    // are added, although threads may have fewer digits each then. With at least
    // EACH_MIN digits each they are at most (EACH_MIN + 1) / EACH_MIN ·
    // 2^LOG_THREADS, or have EACH_MAX each.
    static uint32_t room(uint32_t n, Windows windows) {
        const uint64_t digits = uint64_t{n} * windows.windows;
        const uint64_t few = min_of<uint64_t>(div_ceil<uint64_t>(digits, EACH_MIN),
                                              ((EACH_MIN + 1) << LOG_THREADS) / EACH_MIN);
        return static_cast<uint32_t>(2 * max_of(few, div_ceil<uint64_t>(digits, EACH_MAX)));
    }
};

// The parts of the scratch memory.
template <class F> struct MsmScratch {
    uint32_t *ends, *totals, *list;
    Xyzz<F> *buckets, *partials[2], *chunks, *spare;
    uint32_t *keys[2];

    static constexpr size_t spare_points(uint32_t windows, uint32_t chunks) {
        return 2 * size_t{windows} * div_ceil(chunks, SUM_TILE<F>);
    }

    static uint32_t after(uint32_t partials) { return 2 * div_ceil(partials, PARTIALS_EACH); }

    static size_t bytes(uint32_t n, Windows windows) {
        const Layout layout = Layout::of(n, windows);
        const uint32_t room = Layout::room(n, windows);
        const uint32_t chunks = layout.chunks * windows.windows;
        return Arena::bytes<uint32_t>(layout.total) +
               Arena::bytes<uint32_t>(scan_totals(layout.total)) +
               Arena::bytes<uint32_t>(size_t{n} * windows.windows) +
               Arena::bytes<Xyzz<F>>(layout.total) + Arena::bytes<Xyzz<F>>(room) +
               Arena::bytes<Xyzz<F>>(after(room)) + Arena::bytes<uint32_t>(room) +
               Arena::bytes<uint32_t>(after(room)) + Arena::bytes<Xyzz<F>>(chunks) +
               Arena::bytes<Xyzz<F>>(spare_points(windows.windows, layout.chunks));
    }

    MsmScratch(void *scratch, uint32_t n, Windows windows) {
        const Layout layout = Layout::of(n, windows);
        const uint32_t room = Layout::room(n, windows);
        Arena arena(scratch);
        ends = arena.take<uint32_t>(layout.total);
        totals = arena.take<uint32_t>(scan_totals(layout.total));
        list = arena.take<uint32_t>(size_t{n} * windows.windows);
        buckets = arena.take<Xyzz<F>>(layout.total);
        partials[0] = arena.take<Xyzz<F>>(room);
        partials[1] = arena.take<Xyzz<F>>(after(room));
        keys[0] = arena.take<uint32_t>(room);
        keys[1] = arena.take<uint32_t>(after(room));
        chunks = arena.take<Xyzz<F>>(size_t{layout.chunks} * windows.windows);
        spare = arena.take<Xyzz<F>>(spare_points(windows.windows, layout.chunks));
    }
};

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
