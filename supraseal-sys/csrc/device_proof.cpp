#include "device_proof.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "b_g2_packed.hpp"
#include "pool.hpp"
#include "region.hpp"

namespace cuzk::CUZK_VARIANT {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// The length that a multiplication's windows are chosen for, as in the plan.
uint32_t rounded(uint32_t n) {
    uint32_t power = 1;
    while (power < n) {
        power *= 2;
    }
    return power;
}

} // namespace

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
    // The last word that has no more than `begin` before it holds that one.
    const auto after = std::upper_bound(ranks->begin(), ranks->end(), begin);
    const auto last = std::lower_bound(ranks->begin(), ranks->end(), end);
    return {static_cast<uint32_t>(after - ranks->begin() - 1),
            std::min(num_words, static_cast<uint32_t>(last - ranks->begin()))};
}

Proof::Proof(Circuit &circuit, const cuzk_witness &witness)
    : circuit_(circuit), device_(circuit.device_), api_(*circuit.device_.api_),
      plan_(circuit.plan_), witness_(witness),
      wide_ranks_(ranks_of(witness.wide, circuit.num_words_)) {
    const uint32_t words = circuit_.num_words_;
    const uint64_t wide =
        words == 0 ? 0
                   : wide_ranks_.back() +
                         static_cast<uint64_t>(__builtin_popcountll(witness.wide[words - 1]));
    if (wide != witness.num_wide) {
        throw Error(CUZK_LENGTH_MISMATCH, "witness: " + std::to_string(wide) +
                                              " variables are wide, and there are " +
                                              std::to_string(witness.num_wide) + " values");
    }
    wide_ranks_.push_back(static_cast<uint32_t>(wide));
    const auto asked = Clock::now();
    worker_ = device_.slots.acquire(&circuit_, [&] { circuit_.load(); });
    has_worker_ = true;
    figures_.worker_wait_ms = ms_since(asked);
    try {
        device_.check_alive();
        upload();
    } catch (...) {
        release_worker();
        throw;
    }
}

Proof::~Proof() {
    join_b_g2();
    release_worker();
}

// After a run everything has passed; before, the witness may be on its way.
void Proof::release_worker() noexcept {
    if (!has_worker_) {
        return;
    }
    if (state_ != State::ran) {
        device_.settle_worker(worker_);
    }
    has_worker_ = false;
    device_.slots.release(worker_);
}

void Proof::expect(State state, const char *step) {
    if (state_ != state) {
        constexpr const char *names[] = {"staged", "run", "finished", "failed"};
        throw Error(CUZK_INVALID_STATE, std::string(step) + ": the proof is " +
                                            names[static_cast<int>(state_)] +
                                            "; stage, run and finish it once each, in this order");
    }
}

// One copy: the worker's memory has the same layout on both sides, and the wide
// values, of which there are fewer than there may be, are last.
void Proof::upload() {
    const WorkerLayout &parts = plan_.worker;
    const uint32_t words = circuit_.num_words_;
    const auto put = [&](const Part &part, const void *from, std::size_t bytes) {
        std::memcpy(circuit_.pinned_of_worker<uint8_t>(worker_, part), from, bytes);
    };
    put(parts.inputs, witness_.inputs, parts.inputs.bytes);
    for (const Part &part : {parts.bits, parts.wide}) {
        std::memset(circuit_.pinned_of_worker<uint8_t>(worker_, part), 0, part.bytes);
    }
    put(parts.bits, witness_.bits, words * sizeof(uint64_t));
    put(parts.wide, witness_.wide, words * sizeof(uint64_t));
    put(parts.ranks, wide_ranks_.data(), wide_ranks_.size() * sizeof(uint32_t));
    put(parts.wide_values, witness_.wide_values, witness_.num_wide * sizeof(Fr));
    const std::size_t bytes = parts.wide_values.offset + witness_.num_wide * sizeof(Fr);
    DeviceStream &stream = *device_.workers[worker_].stream;
    api_.upload(stream, circuit_.of_worker<uint8_t>(worker_, parts.inputs),
                circuit_.pinned_of_worker<uint8_t>(worker_, parts.inputs), bytes);
    api_.record(*device_.workers[worker_].uploaded, stream);
    figures_.uploaded_bytes = bytes;
}

void Proof::start_b_g2() {
    if (on_device(CUZK_QUERY_B_G2, device_.options)) {
        return;
    }
    b_g2_ = std::thread([this] {
        const auto start = Clock::now();
        try {
            const cuzk_circuit_data &data = circuit_.data_;
            const PackedB bases{data.points[CUZK_QUERY_B_G2],
                                data.shape.num_points[CUZK_QUERY_B_G2],
                                data.b_inputs,
                                data.shape.num_b_inputs,
                                data.b_aux,
                                circuit_.b_ranks_.data(),
                                circuit_.num_words_};
            sums_.b_g2 = b_g2_packed(shared_pool(), device_.resources.membw_throttle, bases,
                                     witness_, wide_ranks_.data());
        } catch (...) {
            b_g2_failure_ = std::current_exception();
        }
        b_g2_ms_ = ms_since(start);
    });
}

void Proof::join_b_g2() noexcept {
    if (b_g2_.joinable()) {
        b_g2_.join();
    }
}

void Proof::run(cuzk_proof_figures &figures) {
    expect(State::staged, "run");
    try {
        start_b_g2();
        device_region();
        add_results();
    } catch (...) {
        state_ = State::failed;
        release_worker();
        throw;
    }
    state_ = State::ran;
    release_worker();
    figures = figures_;
}

void Proof::finish(cuzk_sums &sums, cuzk_proof_figures &figures) {
    expect(State::ran, "finish");
    join_b_g2();
    if (b_g2_failure_) {
        state_ = State::failed;
        std::rethrow_exception(b_g2_failure_);
    }
    state_ = State::finished;
    figures_.b_g2_ms = b_g2_ms_;
    sums = sums_;
    figures = figures_;
}

// Enqueues everything, and waits only for the pieces it sends and for the end.
void Proof::device_region() {
    const auto asked = Clock::now();
    const GpuRegion region(device_.resources);
    figures_.lock_wait_ms = ms_since(asked);
    device_.check_alive();
    try {
        results_end_ = plan_.results_max * sizeof(uint32_t);
        quotient();
        sum_h<InG1>();
        sum_packed<InG1>(CUZK_QUERY_L);
        sum_packed<InG1>(CUZK_QUERY_A);
        sum_packed<InG1>(CUZK_QUERY_B_G1);
        if (on_device(CUZK_QUERY_B_G2, device_.options)) {
            sum_packed<InG2>(CUZK_QUERY_B_G2);
        }
        api_.download(*device_.compute,
                      circuit_.pinned_of_worker<uint8_t>(worker_, plan_.worker.results),
                      circuit_.of_worker<uint8_t>(worker_, plan_.worker.results), results_end_);
        api_.record(*device_.sums_done, *device_.compute);
        device_.wait(*device_.sums_done);
        figures_.quotient_ms = api_.elapsed_ms(*device_.begun, *device_.quotient_done);
        figures_.sums_ms = api_.elapsed_ms(*device_.quotient_done, *device_.sums_done);
    } catch (...) {
        device_.settle();
        throw;
    }
}

void Proof::quotient() {
    const Circuit &circuit = circuit_;
    const CircuitLayout &parts = plan_.circuit;
    const WorkerLayout &own = plan_.worker;
    const cuzk_circuit_shape &shape = circuit.data_.shape;
    const device::Program program{circuit.on_device<Fr>(parts.coefficients),
                                  circuit.on_device<int32_t>(parts.integers),
                                  circuit.on_device<Fr>(parts.halves),
                                  circuit.on_device<uint32_t>(parts.part_ends),
                                  circuit.on_device<uint32_t>(parts.items),
                                  circuit.on_device<uint32_t>(parts.shapes),
                                  circuit.on_device<uint32_t>(parts.unit_rows),
                                  circuit.on_device<uint32_t>(parts.references),
                                  circuit.on_device<uint32_t>(parts.block_references),
                                  shape.rows,
                                  shape.num_inputs};
    const device::Witness witness{circuit.of_worker<Fr>(worker_, own.inputs),
                                  circuit.of_worker<uint64_t>(worker_, own.bits),
                                  circuit.of_worker<uint64_t>(worker_, own.wide),
                                  circuit.of_worker<uint32_t>(worker_, own.ranks),
                                  circuit.of_worker<Fr>(worker_, own.wide_values)};
    const device::Roots roots{circuit.on_device<Fr>(parts.roots_low),
                              circuit.on_device<Fr>(parts.roots_high), plan_.roots_low_log,
                              shape.log_domain};
    Fr *a = circuit.on_device<Fr>(plan_.a);
    Fr *b = circuit.on_device<Fr>(plan_.b);
    Fr *scratch = circuit.on_device<Fr>(plan_.scratch);
    const uint32_t log = shape.log_domain;
    DeviceStream &compute = *device_.compute;
    api_.stream_waits(compute, *device_.workers[worker_].uploaded);
    api_.record(*device_.begun, compute);
    api_.launch(compute, "evaluation", [=](NativeStream stream) {
        return device::evaluate(program, witness, log, device::Order::bit_reversed, a, b, stream);
    });
    api_.launch(compute, "the quotient", [=](NativeStream stream) {
        return device::quotient(roots, log, a, b, scratch, device::Form::canonical, stream);
    });
    api_.record(*device_.quotient_done, compute);
    // The pieces come to where a and scratch were.
    api_.stream_waits(*device_.transfer, *device_.quotient_done);
}

template <class Group, class Use> void Proof::for_each_span(uint32_t query, const Use &use) {
    using Affine = typename Group::Affine;
    const uint64_t all = circuit_.data_.shape.num_points[query];
    const uint64_t resident = plan_.summary.resident_points[query];
    if (resident != 0) {
        use(Span{0, resident}, circuit_.on_device<Affine>(plan_.resident[query]));
    }
    auto *bad = circuit_.of_worker<uint32_t>(worker_, plan_.worker.results);
    auto *points = circuit_.on_device<Affine>(plan_.decoded);
    const uint64_t step = plan_.piece_points(query);
    for (uint64_t first = resident; first < all; first += step) {
        const uint64_t len = std::min(step, all - first);
        const auto piece = static_cast<uint32_t>(pieces_.size());
        const uint32_t buffer = piece % 2;
        if (piece >= 2) {
            device_.wait(*device_.piece_free[buffer]);
        }
        circuit_.send_piece(query, first, len, buffer);
        circuit_.decode_piece<Group>(len, buffer, points, bad + piece);
        pieces_.push_back({query, first});
        figures_.streamed_bytes += len * point_bytes(query);
        use(Span{first, len}, points);
    }
}

template <class Group> void Proof::sum_h() {
    const Fr *h = circuit_.on_device<Fr>(plan_.b);
    for_each_span<Group>(CUZK_QUERY_H, [&](const Span &span,
                                           const typename Group::Affine *bases) {
        for (uint64_t done = 0; done < span.len; done += plan_.msm_points) {
            const uint64_t n = std::min<uint64_t>(plan_.msm_points, span.len - done);
            msm<Group>(CUZK_QUERY_H, bases + done, h + span.first + done, nullptr, n,
                       device::Form::canonical);
        }
    });
}

template <class Group> void Proof::sum_packed(uint32_t query) {
    for_each_span<Group>(query,
                         [&](const Span &span, const typename Group::Affine *bases) {
                             sum_span<Group>(query, span, bases);
                         });
}

// The bits of a span as a sum, its wide values as a multiplication, and with
// the first span the inputs.
template <class Group>
void Proof::sum_span(uint32_t query, const Span &span, const typename Group::Affine *bases) {
    const CircuitLayout &parts = plan_.circuit;
    const WorkerLayout &own = plan_.worker;
    const cuzk_circuit_shape &shape = circuit_.data_.shape;
    const bool all = query == CUZK_QUERY_L;
    const bool of_a = query == CUZK_QUERY_A;
    const Part &mask_part = of_a ? parts.a_mask : parts.b_mask;
    const Part &ranks_part = of_a ? parts.a_ranks : parts.b_ranks;
    const auto *mask = all ? nullptr : circuit_.on_device<uint64_t>(mask_part);
    const auto *ranks = all ? nullptr : circuit_.on_device<uint32_t>(ranks_part);
    const uint32_t before = all ? 0 : of_a ? shape.num_inputs : shape.num_b_inputs;
    const auto *bits = circuit_.of_worker<uint64_t>(worker_, own.bits);
    const auto *wide = circuit_.of_worker<uint64_t>(worker_, own.wide);
    const auto *wide_ranks = circuit_.of_worker<uint32_t>(worker_, own.ranks);
    auto *places = circuit_.on_device<uint32_t>(plan_.places);
    auto *scratch = circuit_.on_device<uint8_t>(plan_.msm);
    const auto first_base = static_cast<uint32_t>(span.first);
    const auto num_bases = static_cast<uint32_t>(span.len);

    if (!all && span.first == 0) {
        const Part &inputs = of_a ? parts.a_inputs : parts.b_inputs;
        msm<Group>(query, bases, circuit_.of_worker<Fr>(worker_, own.inputs),
                   circuit_.on_device<uint32_t>(inputs), shape.num_inputs,
                   device::Form::montgomery);
    }
    const Words words = words_of(all ? nullptr : of_a ? &circuit_.a_ranks_ : &circuit_.b_ranks_,
                                 before, span, circuit_.num_words_);
    for (uint32_t word = words.begin; word < words.end; word += plan_.sum_words) {
        const uint32_t len = std::min(plan_.sum_words, words.end - word);
        // Without a mask the bases before are those of the words before.
        const device::Query part{all ? nullptr : mask + word, all ? nullptr : ranks + word,
                                 all ? word * 64 : before, first_base, num_bases};
        auto *sum = take_result<typename Group::Xyzz>(query, {0, 1});
        api_.launch(*device_.compute, "a sum of points", [=](NativeStream stream) {
            return Group::sum(bases, part, bits + word, len, scratch, sum, stream);
        });
    }
    const uint32_t begin = wide_ranks_[words.begin];
    const uint32_t end = wide_ranks_[words.end];
    if (begin == end) {
        return;
    }
    const device::Query whole{mask, ranks, before, first_base, num_bases};
    const uint32_t num_words = circuit_.num_words_;
    api_.launch(*device_.compute, "finding the bases of wide values", [=](NativeStream stream) {
        return device::wide_bases(whole, wide, wide_ranks, num_words, places, stream);
    });
    const auto *values = circuit_.of_worker<Fr>(worker_, own.wide_values);
    for (uint32_t at = begin; at < end; at += plan_.msm_points) {
        msm<Group>(query, bases, values + at, places + at, std::min(plan_.msm_points, end - at),
                   device::Form::montgomery);
    }
}

template <class Group>
void Proof::msm(uint32_t query, const typename Group::Affine *bases, const Fr *values,
                const uint32_t *places, uint64_t n, device::Form form) {
    const device::Scalars scalars{values, places, static_cast<uint32_t>(n), form};
    const device::Windows windows = device::choose_windows(rounded(scalars.n));
    const std::size_t scratch_bytes = Group::msm_scratch_bytes(scalars.n, windows);
    if (scratch_bytes > plan_.msm.bytes) {
        throw Error(CUZK_DEVICE_ERROR, "a multiplication of " + std::to_string(n) +
                                           " points needs " + std::to_string(scratch_bytes) +
                                           " bytes, and " + std::to_string(plan_.msm.bytes) +
                                           " were planned");
    }
    auto *sums = take_result<typename Group::Xyzz>(query, windows);
    auto *scratch = circuit_.on_device<uint8_t>(plan_.msm);
    api_.launch(*device_.compute, "a multi-scalar multiplication", [=](NativeStream stream) {
        return Group::msm(bases, scalars, windows, scratch, sums, stream);
    });
}

template <class Xyzz> Xyzz *Proof::take_result(uint32_t query, device::Windows windows) {
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

// From the worker's pinned memory, outside the lock.
void Proof::add_results() {
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
    blst_p1 *in_g1[] = {&sums_.h, &sums_.l, &sums_.a, &sums_.b_g1};
    for (const Result &result : results_) {
        const uint8_t *at = results + result.offset;
        if (result.query == CUZK_QUERY_B_G2) {
            InG2::add(sums_.b_g2,
                      InG2::finish(reinterpret_cast<const G2Xyzz *>(at), result.windows));
        } else {
            InG1::add(*in_g1[result.query],
                      InG1::finish(reinterpret_cast<const G1Xyzz *>(at), result.windows));
        }
    }
}

} // namespace cuzk::CUZK_VARIANT
