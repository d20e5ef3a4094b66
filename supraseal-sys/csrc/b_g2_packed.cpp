#include "b_g2_packed.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "b_g2_msm.hpp"
#include "dealloc.hpp"
#include "resources.hpp"
#include "status.hpp"

namespace cuzk {
namespace {

constexpr std::size_t kPointBytes = 192;
// The number of words of a task: some 4000 points, half a MiB of them decoded.
constexpr std::size_t kTaskWords = 64;
// The flags of a point: compressed, infinity, and the sign of a compressed point.
constexpr uint8_t kFlags = 0xe0;

std::size_t popcount(uint64_t word) {
    return static_cast<std::size_t>(__builtin_popcountll(word));
}

// Calls body(bit) for each bit that is set.
template <class Body> void for_each_bit(uint64_t word, const Body &body) {
    for (; word != 0; word &= word - 1) {
        body(static_cast<unsigned>(__builtin_ctzll(word)));
    }
}

uint64_t below(unsigned bit) {
    return (uint64_t{1} << bit) - 1;
}

class Sum {
public:
    Sum(Pool &pool, const PackedB &bases, const cuzk_witness &witness, const uint32_t *wide_ranks,
        const std::function<void()> &before_work)
        : pool_(pool), bases_(bases), witness_(witness), wide_ranks_(wide_ranks),
          before_work_(before_work),
          words_(std::min(bases.num_words, witness.num_words)),
          tasks_((words_ + kTaskWords - 1) / kTaskWords), wide_before_(tasks_ + 1),
          ones_(tasks_), scratch_(pool.size()) {}

    blst_p2 sum() {
        count_wide();
        points_.reset(new blst_p2_affine[wide_before_[tasks_]]);
        scalars_.reset(new blst_fr[wide_before_[tasks_]]);
        take_inputs();
        pool_.for_each(tasks_,
                       [&](std::size_t task, std::size_t worker) { take(task, scratch_[worker]); });
        blst_p2 sum = b_g2_msm_unraised(
            pool_, {points_.get(), scalars_.get(), wide_before_[tasks_]}, before_work_);
        for (const blst_p2 &ones : ones_) {
            blst_p2_add_or_double(&sum, &sum, &ones);
        }
        dealloc_async_owners(std::move(points_), std::move(scalars_));
        return sum;
    }

private:
    std::size_t end(std::size_t task) const { return std::min(words_, (task + 1) * kTaskWords); }

    // Computes the place of each task's wide values: after the inputs and the
    // values before it.
    void count_wide() {
        std::size_t wide = bases_.num_inputs;
        for (std::size_t task = 0; task < tasks_; ++task) {
            wide_before_[task] = wide;
            for (std::size_t word = task * kTaskWords; word < end(task); ++word) {
                wide += popcount(witness_.wide[word] & bases_.mask[word]);
            }
        }
        wide_before_[tasks_] = wide;
    }

    void take_inputs() {
        for (std::size_t i = 0; i < bases_.num_inputs; ++i) {
            decode(i, points_[i]);
            scalars_[i] = witness_.inputs[bases_.inputs[i]];
        }
    }

    void take(std::size_t task, std::vector<blst_p2_affine> &ones) {
        if (before_work_) {
            before_work_();
        }
        ones.clear();
        std::size_t at = wide_before_[task];
        for (std::size_t word = task * kTaskWords; word < end(task); ++word) {
            const uint64_t mask = bases_.mask[word];
            const uint64_t wide = witness_.wide[word];
            const std::size_t first = bases_.num_inputs + bases_.ranks[word];
            for_each_bit(witness_.bits[word] & mask, [&](unsigned bit) {
                ones.emplace_back();
                decode(first + popcount(mask & below(bit)), ones.back());
            });
            for_each_bit(wide & mask, [&](unsigned bit) {
                decode(first + popcount(mask & below(bit)), points_[at]);
                scalars_[at] =
                    witness_.wide_values[wide_ranks_[word] + popcount(wide & below(bit))];
                ++at;
            });
        }
        std::vector<const blst_p2_affine *> pointers(ones.size());
        std::transform(ones.begin(), ones.end(), pointers.begin(),
                       [](const blst_p2_affine &point) { return &point; });
        blst_p2s_add(&ones_[task], pointers.data(), pointers.size());
    }

    void decode(std::size_t index, blst_p2_affine &point) const {
        const uint8_t *bytes = bases_.points + index * kPointBytes;
        // blst would take the first half of a compressed point for all of it.
        if (index >= bases_.num_points || (bytes[0] & kFlags) != 0 ||
            blst_p2_deserialize(&point, bytes) != BLST_SUCCESS) {
            throw Error(CUZK_INVALID_POINT, "the query B in G2: point " + std::to_string(index) +
                                                " is not an uncompressed point of the curve");
        }
    }

    Pool &pool_;
    const PackedB &bases_;
    const cuzk_witness &witness_;
    const uint32_t *wide_ranks_;
    const std::function<void()> &before_work_;
    std::size_t words_;
    std::size_t tasks_;
    std::vector<std::size_t> wide_before_; // by task, and all
    std::vector<blst_p2> ones_;            // by task
    std::vector<std::vector<blst_p2_affine>> scratch_; // by worker, reused
    std::unique_ptr<blst_p2_affine[]> points_;
    std::unique_ptr<blst_fr[]> scalars_;
};

} // namespace

std::vector<uint32_t> ranks_of(const uint64_t *words, std::size_t num_words) {
    std::vector<uint32_t> ranks(num_words);
    uint32_t before = 0;
    for (std::size_t word = 0; word < num_words; ++word) {
        ranks[word] = before;
        before += static_cast<uint32_t>(popcount(words[word]));
    }
    return ranks;
}

blst_p2 b_g2_packed(Pool &pool, std::atomic<int> &throttle, const PackedB &bases,
                    const cuzk_witness &witness, const uint32_t *wide_ranks,
                    const std::function<void()> &before_work) {
    const ThrottleRaise raise(throttle);
    return Sum(pool, bases, witness, wide_ranks, before_work).sum();
}

} // namespace cuzk
