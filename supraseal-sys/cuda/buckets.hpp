// The buckets of an MSM: the sum of each bucket, and the weighted sum of a window's
// buckets.
//
// The list of digits is cut into equal pieces, one for each thread, wherever bucket
// borders fall. So no scalar distribution is worse than another. A thread writes the
// buckets that begin and end in its piece. The first and the last may go on
// elsewhere; they become *partials*. A list of partials is shorter by a factor and
// in the same order, so the same step reduces it until one thread is left. An
// addition is 10 multiplications, two of them in one sum: 2,856 products of limbs.
// By computation 63 M of them take 24 ms on an H100 (7.4 T wide multiply-adds/s: 132
// multiprocessors at 32 a cycle and 1.755 GHz), against 2 ms for 6 GB of points. So
// this step should decide the time.
#pragma once

#include "digit_sort.hpp"
#include "msm_layout.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The key of a partial that does not exist.
constexpr uint32_t NO_BUCKET = UINT32_MAX;

template <class F> CUZK_FN Affine<F> negated_if(const Affine<F> &p, bool is_negative) {
    return {p.x, is_negative ? neg(p.y) : p.y};
}

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

// Adds up one piece of the list by thread.
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

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
