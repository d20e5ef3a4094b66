// MSMs by the bucket method (Pippenger; Bernstein, Doumen, Lange, Oosterwijk,
// "Faster batch forgery identification", eprint 2012/549, section 4) with signed
// digits.
//
// 1. A counting sort. The digits of all scalars are counted by bucket, the counts
//    are summed, and each scalar's place and sign are listed in each of its
//    buckets. For 2^22 scalars there are 63 M digits: 126 M atomic additions in 4
//    MB, which stay in L2, and 252 MB of scattered words. Digits are computed
//    twice, because that is a multiplication and some shifts; keeping them would
//    take 504 MB.
// 2. The list is cut into equal pieces, one for each thread, wherever bucket
//    borders fall. So no scalar distribution is worse than another. A thread writes
//    the buckets that begin and end in its piece. The first and the last may go on
//    elsewhere; they become *partials*. A list of partials is shorter by a factor
//    and in the same order, so the same step reduces it until one thread is left.
//    An addition is 10 multiplications, two of them in one sum: 2,856 products of
//    limbs. 63 M of them take 24 ms on an H100 (7.4 T wide multiply-adds/s: 132
//    multiprocessors at 32 a cycle and 1.755 GHz), against 2 ms for 6 GB of points.
//    So this step decides the time.
// 3. Σ k·bucket[k] by running sums over chunks of buckets, and a sum over the
//    chunks.
#pragma once

#include "digits.hpp"
#include "load.hpp"
#include "sum.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

constexpr uint32_t SIGN_BIT = 1U << 31;

// The key of a partial that does not exist.
constexpr uint32_t NO_BUCKET = UINT32_MAX;

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

// The layout of a multiplication of n scalars.
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

template <class F> CUZK_FN Affine<F> negated_if(const Affine<F> &p, bool is_negative) {
    return {p.x, is_negative ? neg(p.y) : p.y};
}

struct CountDigits {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Scalars scalars;
    Windows windows;
    uint32_t *counts; // by window and magnitude less one

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t at = block.index * THREADS + thread;
            if (at >= scalars.n ||
                (scalars.places != nullptr && scalars.places[at] == NO_BASE)) {
                return;
            }
            const uint32_t log_buckets = windows.bits - 1;
            uint32_t *const to = counts;
            for_each_digit(scalars.values[at], scalars.form, windows,
                           [&](uint32_t window, uint32_t magnitude, bool) {
                               atomic_add(to + ((window << log_buckets) + magnitude - 1), 1);
                           });
        });
    }
};

// Turns the start of each bucket into its end.
struct ListDigits {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Scalars scalars;
    Windows windows;
    uint32_t *starts;
    uint32_t *list;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t at = block.index * THREADS + thread;
            if (at >= scalars.n) {
                return;
            }
            const uint32_t place = scalars.places == nullptr ? at : scalars.places[at];
            if (place == NO_BASE) {
                return;
            }
            const uint32_t log_buckets = windows.bits - 1;
            uint32_t *const to = starts;
            uint32_t *const listed = list;
            for_each_digit(
                scalars.values[at], scalars.form, windows,
                [&](uint32_t window, uint32_t magnitude, bool is_negative) {
                    const uint32_t slot =
                        atomic_add(to + ((window << log_buckets) + magnitude - 1), 1);
                    listed[slot] = place | (is_negative ? SIGN_BIT : 0);
                });
        });
    }
};

// Writes the sums of a piece's buckets, in order.
template <class F> struct Flush {
    Xyzz<F> *buckets;
    uint32_t *keys; // of this thread's two partials
    Xyzz<F> *partials;
    bool has_first = false;

    CUZK_BODY Flush(Xyzz<F> *all_buckets, uint32_t *all_keys, Xyzz<F> *all_partials,
                    uint32_t thread)
        : buckets(all_buckets), keys(all_keys + 2 * size_t{thread}),
          partials(all_partials + 2 * size_t{thread}) {
        keys[0] = NO_BUCKET;
        keys[1] = NO_BUCKET;
    }

    CUZK_BODY void partial(uint32_t which, uint32_t key, const Xyzz<F> &sum) {
        keys[which] = key;
        partials[which] = sum;
    }

    // A bucket that others of this piece follow.
    CUZK_BODY void inner(uint32_t key, const Xyzz<F> &sum) {
        if (has_first) {
            buckets[key] = sum;
        } else {
            partial(0, key, sum);
            has_first = true;
        }
    }

    CUZK_BODY void last(uint32_t key, const Xyzz<F> &sum) { partial(has_first ? 1 : 0, key, sum); }
};

template <class F> struct Accumulate {
    static constexpr uint32_t THREADS = 128;
    using Shared = Nothing;
    const Affine<F> *bases;
    const uint32_t *list;
    const uint32_t *ends; // by bucket
    Layout layout;
    Xyzz<F> *buckets;
    uint32_t *keys;
    Xyzz<F> *partials;

    // The first bucket from `from` on that ends after `position`.
    CUZK_BODY uint32_t bucket_of(uint32_t position, uint32_t from) const {
        uint32_t low = from;
        uint32_t high = layout.total - 1;
        if (ends[low] > position) {
            return low;
        }
        while (high - low > 1) {
            const uint32_t middle = low + (high - low) / 2;
            if (ends[middle] > position) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return high;
    }

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t in_block) {
            const uint32_t thread = block.index * THREADS + in_block;
            if (thread >= layout.threads) {
                return;
            }
            Flush<F> flush(buckets, keys, partials, thread);
            const uint32_t count = ends[layout.total - 1];
            const uint64_t start = uint64_t{thread} * layout.each;
            if (start >= count) {
                return;
            }
            const auto end = static_cast<uint32_t>(min_of<uint64_t>(start + layout.each, count));
            auto position = static_cast<uint32_t>(start);
            uint32_t bucket = bucket_of(position, 0);
            uint32_t bucket_end = ends[bucket];
            Xyzz<F> sum = infinity<F>();
            // One loop over all digits, so that the lanes of a warp add at the same
            // time wherever their borders are.
            for (; position < end; ++position) {
                if (position == bucket_end) {
                    flush.inner(bucket, sum);
                    sum = infinity<F>();
                    bucket = bucket_of(position, bucket + 1);
                    bucket_end = ends[bucket];
                }
                const uint32_t entry = list[position];
                const Affine<F> base = bases[entry & ~SIGN_BIT];
                sum = add_affine(sum, negated_if(base, (entry & SIGN_BIT) != 0));
            }
            flush.last(bucket, sum);
        });
    }
};

// Reduces PARTIALS_EACH partials to two, by thread. The last reduction has one
// thread with all of them, and leaves none.
template <class F> struct ReducePartials {
    static constexpr uint32_t THREADS = POINT_THREADS<F>;
    using Shared = Nothing;
    const uint32_t *keys;
    const Xyzz<F> *partials;
    uint32_t length;
    Xyzz<F> *buckets;
    uint32_t *out_keys;
    Xyzz<F> *out_partials;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t in_block) {
            const uint32_t thread = block.index * THREADS + in_block;
            const uint32_t start = thread * PARTIALS_EACH;
            if (start >= length) {
                return;
            }
            Flush<F> flush(buckets, out_keys, out_partials, thread);
            const bool is_last = length <= PARTIALS_EACH;
            flush.has_first = is_last;
            uint32_t bucket = NO_BUCKET;
            Xyzz<F> sum = infinity<F>();
            for (uint32_t k = start; k < start + PARTIALS_EACH && k < length; ++k) {
                const uint32_t key = keys[k];
                if (key == NO_BUCKET) {
                    continue;
                }
                if (key == bucket) {
                    sum = add(sum, partials[k]);
                    continue;
                }
                if (bucket != NO_BUCKET) {
                    flush.inner(bucket, sum);
                }
                bucket = key;
                sum = partials[k];
            }
            if (bucket != NO_BUCKET && is_last) {
                flush.inner(bucket, sum);
            } else if (bucket != NO_BUCKET) {
                flush.last(bucket, sum);
            }
        });
    }
};

// Σ (number of the bucket + 1)·bucket over one chunk of a window's buckets.
template <class F> struct ReduceBuckets {
    static constexpr uint32_t THREADS = POINT_THREADS<F>;
    using Shared = Nothing;
    const Xyzz<F> *buckets;
    Layout layout;
    uint32_t chunks; // of all windows
    Xyzz<F> *sums;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t in_block) {
            const uint32_t chunk = block.index * THREADS + in_block;
            if (chunk >= chunks) {
                return;
            }
            const uint32_t first = chunk % layout.chunks * CHUNK_BUCKETS;
            const size_t window = size_t{chunk / layout.chunks} * layout.buckets;
            Xyzz<F> running = infinity<F>();
            Xyzz<F> weighted = infinity<F>();
            for (uint32_t k = min_of(CHUNK_BUCKETS, layout.buckets - first); k-- > 0;) {
                running = add(running, buckets[window + first + k]);
                weighted = add(weighted, running);
            }
            sums[chunk] = add(weighted, times(running, first));
        });
    }
};

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

// Lists the digits by bucket.
inline Error sort_digits(const Scalars &scalars, Windows windows, uint32_t total, uint32_t *ends,
                         uint32_t *totals, uint32_t *list, Stream stream) {
    const uint32_t blocks = div_ceil(scalars.n, CountDigits::THREADS);
    Error error = zero(ends, size_t{total} * sizeof *ends, stream);
    if (error == OK) {
        error = launch(CountDigits{scalars, windows, ends}, blocks, stream);
    }
    if (error == OK) {
        error = scan(ends, total, totals, stream);
    }
    if (error == OK) {
        error = launch(ListDigits{scalars, windows, ends, list}, blocks, stream);
    }
    return error;
}

// Adds up partials until all are in their buckets.
template <class F>
Error reduce_partials(const MsmScratch<F> &scratch, uint32_t partials, Stream stream) {
    for (int turn = 0;; turn = 1 - turn) {
        const uint32_t threads = div_ceil(partials, PARTIALS_EACH);
        const int out = 1 - turn;
        const Error error =
            launch(ReducePartials<F>{scratch.keys[turn], scratch.partials[turn], partials,
                                     scratch.buckets, scratch.keys[out], scratch.partials[out]},
                   div_ceil(threads, ReducePartials<F>::THREADS), stream);
        if (error != OK || threads <= 1) {
            return error;
        }
        partials = 2 * threads;
    }
}

inline bool is_valid(const Scalars &scalars, Windows windows) {
    return windows.bits >= WINDOW_BITS_MIN && windows.bits <= WINDOW_BITS_MAX &&
           windows.windows == div_ceil(255U, windows.bits) &&
           uint64_t{scalars.n} * windows.windows <= UINT32_MAX && scalars.n < SIGN_BIT;
}

template <class F> size_t msm_scratch_bytes(uint32_t n, Windows windows) {
    return MsmScratch<F>::bytes(n, windows);
}

template <class F>
Error msm(const Affine<F> *bases, const Scalars &scalars, Windows windows, void *memory,
          Xyzz<F> *sums, Stream stream) {
    if (!is_valid(scalars, windows)) {
        return INVALID_VALUE;
    }
    const Layout layout = Layout::of(scalars.n, windows);
    const MsmScratch<F> scratch(memory, scalars.n, windows);
    Error error = sort_digits(scalars, windows, layout.total, scratch.ends, scratch.totals,
                              scratch.list, stream);
    if (error == OK) {
        error = zero(scratch.buckets, layout.total * sizeof *scratch.buckets, stream);
    }
    if (error == OK) {
        error = launch(Accumulate<F>{bases, scratch.list, scratch.ends, layout, scratch.buckets,
                                     scratch.keys[0], scratch.partials[0]},
                       div_ceil(layout.threads, Accumulate<F>::THREADS), stream);
    }
    if (error == OK) {
        error = reduce_partials(scratch, layout.partials, stream);
    }
    const uint32_t chunks = layout.chunks * windows.windows;
    if (error == OK) {
        error = launch(ReduceBuckets<F>{scratch.buckets, layout, chunks, scratch.chunks},
                       div_ceil(chunks, ReduceBuckets<F>::THREADS), stream);
    }
    if (error == OK) {
        error = sum_points(scratch.chunks, windows.windows, layout.chunks, scratch.spare, sums,
                           stream);
    }
    return error;
}

// Horner's rule, on the host.
template <class F> Jacobian<F> finish(const Xyzz<F> *sums, Windows windows) {
    Xyzz<F> result = infinity<F>();
    for (uint32_t window = windows.windows; window-- > 0;) {
        for (uint32_t bit = 0; bit < windows.bits; ++bit) {
            result = dbl(result);
        }
        result = add(result, sums[window]);
    }
    return to_jacobian(result);
}

// The files of both groups contain the kernels, too, that do not know the group.
template <class F> Error load_sums(Stream stream) {
    return load<CountDigits, ListDigits, Accumulate<F>, ReducePartials<F>, ReduceBuckets<F>,
                ScanTiles, ScanTotals, AddTotals, CountSelected, ListSelected, SumListed<F>,
                SumPoints<F>>(stream);
}

// All sums and multiplications of one group.
#define CUZK_INSTANTIATE_SUMS(F)                                                                   \
    template size_t sum_scratch_bytes<F>(uint32_t);                                                \
    template Error sum(const Affine<F> *, const Query &, const uint64_t *, uint32_t, void *,       \
                       Xyzz<F> *, Stream);                                                         \
    template size_t msm_scratch_bytes<F>(uint32_t, Windows);                                       \
    template Error msm(const Affine<F> *, const Scalars &, Windows, void *, Xyzz<F> *, Stream);    \
    template Jacobian<F> finish(const Xyzz<F> *, Windows);

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
