#include "device_msms.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace cuzk::CUZK_VARIANT {
namespace {

// The length for which the windows of an MSM are chosen, as in the plan.
uint32_t rounded(uint32_t n) {
    uint32_t power = 1;
    while (power < n) {
        power *= 2;
    }
    return power;
}

// Returns the words whose auxiliaries have their bases in `span`. `ranks` is null if
// all auxiliaries are in the query. `before` is the number of bases that come before.
Words words_of(const std::vector<uint32_t> *ranks, uint64_t before, const Span &span,
               uint32_t num_words) {
    const uint64_t begin = std::max(span.first, before) - before;
    const uint64_t end = std::max(span.first + span.len, before) - before;
    if (begin == end) {
        return {};
    }
    if (ranks == nullptr) {
        return {static_cast<uint32_t>(begin / 64), static_cast<uint32_t>((end + 63) / 64)};
    }
    // The last word that has no more than `begin` before it contains `begin`.
    const auto after = std::upper_bound(ranks->begin(), ranks->end(), begin);
    const auto last = std::lower_bound(ranks->begin(), ranks->end(), end);
    return {static_cast<uint32_t>(after - ranks->begin() - 1),
            std::min(num_words, static_cast<uint32_t>(last - ranks->begin()))};
}

} // namespace

Msms::Msms(Circuit &circuit, std::size_t worker, const std::vector<uint32_t> &wide_ranks,
           const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures)
    : circuit_(circuit), device_(circuit.device_), api_(*circuit.device_.api_),
      plan_(circuit.plan_), worker_(worker), wide_ranks_(wide_ranks), checkpoint_(checkpoint),
      figures_(figures), compute_pace_(device_, *device_.compute, device_.compute_marks),
      side_pace_(device_, *device_.side, device_.side_marks),
      results_end_(plan_.results_max * sizeof(uint32_t)) {}

void Msms::enqueue(bool b_g1) {
    const bool b_g2 = plan_.on_device(CUZK_QUERY_B_G2);
    api_.stream_waits(*device_.side, *device_.begun);
    enqueue_resident<InG1>(CUZK_QUERY_L);
    enqueue_resident<InG1>(CUZK_QUERY_A);
    if (b_g2) {
        enqueue_resident<InG2>(CUZK_QUERY_B_G2);
    }
    api_.record(*device_.side_done, *device_.side);
    enqueue_h<InG1>();
    enqueue_streamed<InG1>(CUZK_QUERY_L);
    enqueue_streamed<InG1>(CUZK_QUERY_A);
    if (b_g1) {
        enqueue_streamed<InG1>(CUZK_QUERY_B_G1);
    }
    if (b_g2) {
        enqueue_streamed<InG2>(CUZK_QUERY_B_G2);
    }
    api_.stream_waits(*device_.compute, *device_.side_done);
}

template <class Group, class Use> void Msms::for_each_piece(uint32_t query, const Use &use) {
    const uint64_t all = circuit_.data_.shape.num_points[query];
    auto *bad = circuit_.of_worker<uint32_t>(worker_, plan_.worker.results);
    auto *points = circuit_.in_frame<typename Group::Affine>(plan_.decoded);
    const uint64_t step = plan_.piece_points(query);
    for (uint64_t first = plan_.summary.resident_points[query]; first < all; first += step) {
        const uint64_t len = std::min(step, all - first);
        const auto piece = static_cast<uint32_t>(pieces_.size());
        const uint32_t buffer = piece % 2;
        if (piece >= 2) {
            device_.wait(*device_.piece_free[buffer], checkpoint_);
        }
        pass(checkpoint_);
        circuit_.send_piece(query, first, len, buffer, checkpoint_);
        circuit_.decode_piece<Group>(len, buffer, points, bad + piece);
        pieces_.push_back({query, first});
        figures_.streamed_bytes += len * point_bytes(query);
        use(Span{first, len}, points);
    }
}

template <class Group> void Msms::enqueue_h() {
    const Lane lane = main_lane();
    const Fr *h = circuit_.in_frame<Fr>(plan_.b);
    const auto sum = [&](const Span &span, const typename Group::Affine *bases) {
        for (uint64_t done = 0; done < span.len; done += lane.layout.msm_points) {
            const uint64_t n = std::min<uint64_t>(lane.layout.msm_points, span.len - done);
            enqueue_msm<Group>(lane, CUZK_QUERY_H, bases + done, h + span.first + done, nullptr,
                               n, device::Form::canonical);
        }
    };
    sum({0, plan_.summary.resident_points[CUZK_QUERY_H]},
        circuit_.in_block<typename Group::Affine>(plan_.resident[CUZK_QUERY_H]));
    for_each_piece<Group>(CUZK_QUERY_H, sum);
}

template <class Group> void Msms::enqueue_resident(uint32_t query) {
    const uint64_t resident = plan_.summary.resident_points[query];
    if (resident != 0) {
        enqueue_span<Group>(side_lane(), query, {0, resident},
                            circuit_.in_block<typename Group::Affine>(plan_.resident[query]));
    }
}

template <class Group> void Msms::enqueue_streamed(uint32_t query) {
    for_each_piece<Group>(query, [&](const Span &span, const typename Group::Affine *bases) {
        enqueue_span<Group>(main_lane(), query, span, bases);
    });
}

// Adds up the bits of a span, and multiplies its wide values. The inputs belong to
// the first span.
template <class Group>
void Msms::enqueue_span(const Lane &lane, uint32_t query, const Span &span,
                        const typename Group::Affine *bases) {
    const CircuitLayout &parts = plan_.circuit;
    const cuzk_circuit_shape &shape = circuit_.data_.shape;
    const bool all = query == CUZK_QUERY_L;
    const bool of_a = query == CUZK_QUERY_A;
    const auto *mask =
        all ? nullptr : circuit_.in_block<uint64_t>(of_a ? parts.a_mask : parts.b_mask);
    const auto *ranks =
        all ? nullptr : circuit_.in_block<uint32_t>(of_a ? parts.a_ranks : parts.b_ranks);
    const uint32_t before = all ? 0 : of_a ? shape.num_inputs : shape.num_b_inputs;
    const device::Query of{mask, ranks, before, static_cast<uint32_t>(span.first),
                           static_cast<uint32_t>(span.len)};

    if (!all && span.first == 0) {
        const Part &inputs = of_a ? parts.a_inputs : parts.b_inputs;
        enqueue_msm<Group>(lane, query, bases,
                           circuit_.of_worker<Fr>(worker_, plan_.worker.inputs),
                           circuit_.in_block<uint32_t>(inputs), shape.num_inputs,
                           device::Form::montgomery);
    }
    const Words words = words_of(all ? nullptr : of_a ? &circuit_.a_ranks_ : &circuit_.b_ranks_,
                                 before, span, circuit_.num_words_);
    enqueue_bits<Group>(lane, query, of, words, bases);
    enqueue_wide<Group>(lane, query, of, words, bases);
}

template <class Group>
void Msms::enqueue_bits(const Lane &lane, uint32_t query, const device::Query &of,
                        const Words &words, const typename Group::Affine *bases) {
    const auto *bits = circuit_.of_worker<uint64_t>(worker_, plan_.worker.bits);
    auto *scratch = circuit_.in_frame<uint8_t>(lane.layout.scratch);
    const bool all = of.mask == nullptr;
    const uint32_t words_max = lane.layout.sum_words;
    for (uint32_t word = words.begin; word < words.end; word += words_max) {
        const uint32_t len = std::min(words_max, words.end - word);
        // Without a mask the bases before are those of the words before.
        const device::Query part{all ? nullptr : of.mask + word, all ? nullptr : of.ranks + word,
                                 all ? word * 64 : of.before, of.first_base, of.num_bases};
        auto *sum = take_result<typename Group::Xyzz>(query, device::ONE_SUM);
        launch(lane, "a sum of points", [=](const device::Stream &stream) {
            return device::sum(bases, part, bits + word, len, scratch, sum, stream);
        });
    }
}

template <class Group>
void Msms::enqueue_wide(const Lane &lane, uint32_t query, const device::Query &of,
                        const Words &words, const typename Group::Affine *bases) {
    const WorkerLayout &own = plan_.worker;
    const uint32_t begin = wide_ranks_[words.begin];
    const uint32_t end = wide_ranks_[words.end];
    if (begin == end) {
        return;
    }
    const auto *wide = circuit_.of_worker<uint64_t>(worker_, own.wide);
    const auto *ranks = circuit_.of_worker<uint32_t>(worker_, own.ranks);
    auto *places = circuit_.in_frame<uint32_t>(lane.layout.places);
    const uint32_t num_words = circuit_.num_words_;
    launch(lane, "finding the bases of wide values", [=](const device::Stream &stream) {
        return device::wide_bases(of, wide, ranks, num_words, places, stream);
    });
    const auto *values = circuit_.of_worker<Fr>(worker_, own.wide_values);
    const uint32_t most = lane.layout.msm_points;
    for (uint32_t at = begin; at < end; at += most) {
        enqueue_msm<Group>(lane, query, bases, values + at, places + at,
                           std::min(most, end - at), device::Form::montgomery);
    }
}

// Handles no more values than the lane takes at once.
template <class Group>
void Msms::enqueue_msm(const Lane &lane, uint32_t query, const typename Group::Affine *bases,
                       const Fr *values, const uint32_t *places, uint64_t n, device::Form form) {
    const device::Scalars scalars{values, places, static_cast<uint32_t>(n), form};
    const device::Windows windows = device::choose_windows(rounded(scalars.n));
    const std::size_t scratch_bytes =
        device::msm_scratch_bytes<typename Group::Field>(scalars.n, windows);
    const Part &room = lane.layout.scratch;
    if (scratch_bytes > room.bytes) {
        throw Error(CUZK_DEVICE_ERROR, "an MSM of " + std::to_string(n) + " points needs " +
                                           std::to_string(scratch_bytes) + " bytes, and " +
                                           std::to_string(room.bytes) + " were planned");
    }
    auto *sums = take_result<typename Group::Xyzz>(query, windows);
    auto *scratch = circuit_.in_frame<uint8_t>(room);
    launch(lane, "an MSM", [=](const device::Stream &stream) {
        return device::msm(bases, scalars, windows, scratch, sums, stream);
    });
}

template <class Xyzz> Xyzz *Msms::take_result(uint32_t query, device::Windows windows) {
    const std::size_t bytes = sizeof(Xyzz) * (windows.bits == 0 ? 1 : device::WINDOWS_MAX);
    results_end_ = (results_end_ + alignof(Xyzz) - 1) / alignof(Xyzz) * alignof(Xyzz);
    if (results_.size() == plan_.results_max || bytes > plan_.worker.results.bytes - results_end_) {
        throw Error(CUZK_DEVICE_ERROR, "more results than the " +
                                           std::to_string(plan_.results_max) + " planned");
    }
    results_.push_back({query, results_end_, windows});
    auto *start = circuit_.of_worker<uint8_t>(worker_, plan_.worker.results) + results_end_;
    results_end_ += bytes;
    return reinterpret_cast<Xyzz *>(start);
}

void Msms::download_results() {
    const Part &results = plan_.worker.results;
    api_.download(*device_.compute, circuit_.pinned_of_worker<uint8_t>(worker_, results),
                  circuit_.of_worker<uint8_t>(worker_, results), results_end_);
}

void Msms::add_results(cuzk_sums &sums) const {
    const uint8_t *results = circuit_.pinned_of_worker<uint8_t>(worker_, plan_.worker.results);
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
        uint32_t bad = 0;
        std::memcpy(&bad, results + piece * sizeof(bad), sizeof(bad));
        if (bad != UINT32_MAX) {
            throw Error(CUZK_INVALID_POINT,
                        std::string("the query ") + query_name(pieces_[piece].query) + ": point " +
                            std::to_string(pieces_[piece].first + bad) +
                            " is not an uncompressed point of the curve");
        }
    }
    blst_p1 *in_g1[] = {&sums.h, &sums.l, &sums.a, &sums.b_g1};
    for (const Result &result : results_) {
        const uint8_t *at = results + result.offset;
        if (result.query == CUZK_QUERY_B_G2) {
            InG2::add(sums.b_g2, reinterpret_cast<const G2Xyzz *>(at), result.windows);
        } else {
            InG1::add(*in_g1[result.query], reinterpret_cast<const G1Xyzz *>(at), result.windows);
        }
    }
}

} // namespace cuzk::CUZK_VARIANT
