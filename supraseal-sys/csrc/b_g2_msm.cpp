#include "b_g2_msm.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dealloc.hpp"
#include "resources.hpp"
#include "status.hpp"

namespace cuzk {
namespace {

constexpr std::size_t kScalarBits = 255;

// 2^14 buckets of 384 bytes: 6 MiB for each worker. With more, a worker's buckets
// exceed its share of the L3 cache, and synthesis, which runs at the same time,
// loses its own share.
constexpr std::size_t kWindowBitsMax = 15;

// For fewer points, blst's own routine for a few points, on one worker, is faster
// than filling any buckets.
constexpr std::size_t kTiledMin = 32;

// The least length of a range of scalars in the selection: at most half a MiB of
// them. So a range takes much longer than handing it out, and each worker gets a
// few of them for balance.
constexpr std::size_t kRangeLenMin = 1024;
constexpr std::size_t kRangeLenMax = 16384;
constexpr std::size_t kRangesPerWorker = 8;

// The least size of a buffer that is freed in the background. Freeing it unmaps
// pages; a smaller one goes back to the heap.
constexpr std::size_t kDeallocAsyncMinBytes = std::size_t{1} << 20;

// An array whose elements the workers will write. Zeroing gigabytes here first, on
// one thread, would cost more than the selection.
template <class T>
std::unique_ptr<T[]> uninitialised(std::size_t len) {
    static_assert(std::is_trivially_default_constructible_v<T>);
    return std::unique_ptr<T[]>(new T[len]);
}

constexpr std::size_t div_ceil(std::size_t a, std::size_t b) {
    return a / b + (a % b != 0);
}

enum class Class { zero, one, wide };

Class classify(const blst_fr &scalar, const blst_fr &one) {
    const uint64_t *l = scalar.l;
    if ((l[0] | l[1] | l[2] | l[3]) == 0) {
        return Class::zero;
    }
    return std::memcmp(&scalar, &one, sizeof(one)) == 0 ? Class::one : Class::wide;
}

// The part of the input that needs multiplications, and the sum of the rest.
struct Selection {
    std::unique_ptr<const blst_p2_affine *[]> points;
    std::unique_ptr<blst_scalar[]> scalars; // plain form, little endian
    std::size_t len = 0;
    blst_p2 ones{}; // all zero bytes is infinity
};

class Selector {
public:
    Selector(Pool &pool, const MsmInput &input, const std::function<void()> &before_work)
        : pool_(pool), input_(input), before_work_(before_work),
          range_len_(std::clamp(input.len / (kRangesPerWorker * pool.size()), kRangeLenMin,
                                kRangeLenMax)),
          ranges_(div_ceil(input.len, range_len_)), ones_(pool.size()) {
        const uint64_t one[4] = {1, 0, 0, 0};
        blst_fr_from_uint64(&one_, one);
    }

    // Counts first, so that the arrays have exactly the needed length, and each
    // range knows its place in them.
    Selection select() {
        pool_.for_each(ranges_.size(), [&](std::size_t range, std::size_t) { count(range); });
        Selection out;
        for (Range &range : ranges_) {
            range.offset = out.len;
            out.len += range.wide;
        }
        out.points = uninitialised<const blst_p2_affine *>(out.len);
        out.scalars = uninitialised<blst_scalar>(out.len);
        pool_.for_each(ranges_.size(), [&](std::size_t range, std::size_t worker) {
            fill(range, ones_[worker], out);
        });
        for (const Range &range : ranges_) {
            blst_p2_add_or_double(&out.ones, &out.ones, &range.ones);
        }
        return out;
    }

private:
    struct Range {
        std::size_t wide = 0;
        std::size_t offset = 0;
        blst_p2 ones{};
    };

    std::size_t end(std::size_t range) const {
        return std::min(input_.len, (range + 1) * range_len_);
    }

    void count(std::size_t range) {
        if (before_work_) {
            before_work_();
        }
        std::size_t wide = 0;
        for (std::size_t i = range * range_len_; i < end(range); ++i) {
            wide += classify(input_.scalars[i], one_) == Class::wide;
        }
        ranges_[range].wide = wide;
    }

    void fill(std::size_t range, std::vector<const blst_p2_affine *> &ones, Selection &out) {
        ones.clear();
        std::size_t at = ranges_[range].offset;
        for (std::size_t i = range * range_len_; i < end(range); ++i) {
            const Class scalar_class = classify(input_.scalars[i], one_);
            if (scalar_class == Class::zero) {
                continue;
            }
            const blst_p2_affine *base = &input_.bases[i];
            const bool infinity = blst_p2_affine_is_inf(base);
            if (scalar_class == Class::wide) {
                out.points[at] = base;
                // A scalar of zero keeps a point at infinity out of each bucket. So
                // nothing depends on the way in which the bucket additions treat
                // one.
                if (infinity) {
                    out.scalars[at] = blst_scalar{};
                } else {
                    blst_scalar_from_fr(&out.scalars[at], &input_.scalars[i]);
                }
                ++at;
            } else if (!infinity) {
                ones.push_back(base);
            }
        }
        blst_p2s_add(&ranges_[range].ones, ones.data(), ones.size());
    }

    Pool &pool_;
    const MsmInput &input_;
    const std::function<void()> &before_work_;
    blst_fr one_;
    std::size_t range_len_;
    std::vector<Range> ranges_;
    std::vector<std::vector<const blst_p2_affine *>> ones_; // by worker, reused
};

// The bytes of one worker's buckets.
std::size_t bucket_bytes(std::size_t window_bits) {
    // blst's size for "0 points" is that of its narrowest window, 1 bit.
    return blst_p2s_mult_pippenger_scratch_sizeof(0) << (window_bits - 1);
}

// The widest window allowed for this many points. It grows with the points and
// stays above the best window (about log2(points) - 4). So a bound for all points
// is a bound for the selected ones.
std::size_t window_bits_max(std::size_t points) {
    std::size_t log = 0;
    while (points >>= 1) {
        ++log;
    }
    return std::clamp<std::size_t>(log < 2 ? 0 : log - 2, 2, kWindowBitsMax);
}

// The field multiplications of one tile: one addition of an affine point to a
// bucket for each point (8M + 2S), and two additions to a running sum for each
// bucket (12M + 2S each).
std::size_t tile_cost(std::size_t points, std::size_t window_bits) {
    return 10 * points + 28 * (std::size_t{1} << (window_bits - 1));
}

class Pippenger {
public:
    Pippenger(Pool &pool, const Selection &selection, const std::function<void()> &before_work)
        : pool_(pool), selection_(selection), before_work_(before_work),
          tiling_(choose_tiling(selection.len, pool.size())),
          tiles_(tiling_.windows * tiling_.slices), scratch_(pool.size()) {}

    blst_p2 sum() {
        pool_.for_each(tiles_.size(),
                       [&](std::size_t tile, std::size_t worker) { run_tile(tile, worker); });
        // Horner's rule over the windows, the most significant first.
        blst_p2 sum{};
        for (std::size_t window = tiling_.windows; window-- > 0;) {
            for (std::size_t slice = 0; slice < tiling_.slices; ++slice) {
                const blst_p2 &tile = tiles_[window * tiling_.slices + slice];
                blst_p2_add_or_double(&sum, &sum, &tile);
            }
            for (std::size_t bit = 0; window != 0 && bit < tiling_.window_bits; ++bit) {
                blst_p2_double(&sum, &sum);
            }
        }
        return sum;
    }

private:
    void run_tile(std::size_t tile, std::size_t worker) {
        if (before_work_) {
            before_work_();
        }
        const std::size_t slice = tile % tiling_.slices;
        const std::size_t begin = selection_.len * slice / tiling_.slices;
        const std::size_t end = selection_.len * (slice + 1) / tiling_.slices;
        const byte *scalars[2] = {selection_.scalars[begin].b, nullptr};
        blst_p2s_tile_pippenger(&tiles_[tile], &selection_.points[begin], end - begin, scalars,
                                kScalarBits, buckets(worker),
                                tile / tiling_.slices * tiling_.window_bits, tiling_.window_bits);
    }

    // A worker's buckets. The worker zeroes them on first use, and each tile leaves
    // them zero.
    limb_t *buckets(std::size_t worker) {
        std::vector<limb_t> &scratch = scratch_[worker];
        if (scratch.empty()) {
            scratch.resize(bucket_bytes(tiling_.window_bits) / sizeof(limb_t));
        }
        return scratch.data();
    }

    Pool &pool_;
    const Selection &selection_;
    const std::function<void()> &before_work_;
    Tiling tiling_;
    std::vector<blst_p2> tiles_;
    std::vector<std::vector<limb_t>> scratch_;
};

// The MSM over too few points for tiles, as one task.
blst_p2 sum_of_few(Pool &pool, const Selection &selection) {
    blst_p2 sum{};
    pool.for_each(selection.len == 0 ? 0 : 1, [&](std::size_t, std::size_t) {
        const byte *scalars[2] = {selection.scalars[0].b, nullptr};
        std::vector<limb_t> scratch(blst_p2s_mult_pippenger_scratch_sizeof(selection.len) /
                                    sizeof(limb_t));
        blst_p2s_mult_pippenger(&sum, selection.points.get(), selection.len, scalars, kScalarBits,
                                scratch.data());
    });
    return sum;
}

} // namespace

// Tries each window and each useful number of slices: 28 products for each worker.
Tiling choose_tiling(std::size_t points, std::size_t workers) {
    Tiling best{};
    std::size_t best_cost = SIZE_MAX;
    const std::size_t slices_max = std::min(2 * workers, std::max<std::size_t>(points / 2, 1));
    for (std::size_t bits = 2; bits <= window_bits_max(points); ++bits) {
        // Signed digits carry, so the windows need one bit more than a scalar.
        const std::size_t windows = kScalarBits / bits + 1;
        for (std::size_t slices = 1; slices <= slices_max; ++slices) {
            const std::size_t rounds = div_ceil(windows * slices, workers);
            const std::size_t cost = rounds * tile_cost(div_ceil(points, slices), bits);
            if (cost < best_cost) {
                best_cost = cost;
                best = {bits, windows, slices};
            }
        }
    }
    return best;
}

blst_p2 b_g2_msm(Pool &pool, std::atomic<int> &throttle, const MsmInput &input,
                 const std::function<void()> &before_work) {
    const ThrottleRaise raise(throttle);
    return b_g2_msm_unraised(pool, input, before_work);
}

blst_p2 b_g2_msm_unraised(Pool &pool, const MsmInput &input,
                          const std::function<void()> &before_work) {
    Selection selection = Selector(pool, input, before_work).select();
    blst_p2 sum = selection.len < kTiledMin ? sum_of_few(pool, selection)
                                            : Pippenger(pool, selection, before_work).sum();
    blst_p2_add_or_double(&sum, &sum, &selection.ones);
    if (selection.len * sizeof(blst_scalar) >= kDeallocAsyncMinBytes) {
        dealloc_async_owners(std::move(selection.points), std::move(selection.scalars));
    }
    return sum;
}

} // namespace cuzk

extern "C" cuzk_status cuzk_b_g2_msm(gpu_resources *resources, const blst_p2_affine *bases,
                                     size_t num_bases, const blst_fr *scalars, size_t num_scalars,
                                     blst_p2 *out) noexcept {
    return cuzk::guard([&] {
        if (num_bases != num_scalars) {
            throw cuzk::Error(CUZK_LENGTH_MISMATCH,
                              "b_g2_msm: expected one base a scalar, got " +
                                  std::to_string(num_bases) + " bases and " +
                                  std::to_string(num_scalars) + " scalars");
        }
        *out = cuzk::b_g2_msm(cuzk::shared_pool(), resources->membw_throttle,
                              {bases, scalars, num_scalars});
    });
}

extern "C" cuzk_msm_scratch cuzk_b_g2_msm_scratch(size_t num_scalars, uint32_t threads) noexcept {
    if (num_scalars == 0) {
        return {0, 0};
    }
    const std::size_t selected_bytes = sizeof(blst_scalar) + sizeof(blst_p2_affine *);
    return {threads * cuzk::bucket_bytes(cuzk::window_bits_max(num_scalars)),
            num_scalars > SIZE_MAX / selected_bytes ? SIZE_MAX : num_scalars * selected_bytes};
}
