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

uint64_t ns_between(Clock::time_point start, Clock::time_point end) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
}

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
    // The last word that has no more than `begin` before it contains `begin`.
    const auto after = std::upper_bound(ranks->begin(), ranks->end(), begin);
    const auto last = std::lower_bound(ranks->begin(), ranks->end(), end);
    return {static_cast<uint32_t>(after - ranks->begin() - 1),
            std::min(num_words, static_cast<uint32_t>(last - ranks->begin()))};
}

Proof::Proof(Circuit &circuit, const cuzk_witness &witness, const cuzk_checkpoint &checkpoint)
    : circuit_(circuit), device_(circuit.device_), api_(*circuit.device_.api_),
      plan_(circuit.plan_), witness_(witness),
      compute_pace_(device_, *device_.compute, device_.compute_marks),
      side_pace_(device_, *device_.side, device_.side_marks),
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
    worker_ = device_.slots.acquire(&circuit_, checkpoint,
                                    [&] { circuit_.activate(checkpoint); });
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
    end_b_g2();
    release_worker();
}

// After a run everything has passed. Before a run, the witness may be on its way.
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

// Makes one copy. The worker's memory has the same layout on both sides. The wide
// values are last, because there may be fewer of them than their memory holds.
void Proof::upload() {
    const WorkerLayout &parts = plan_.worker;
    const uint32_t words = circuit_.num_words_;
    const auto put = [&](const Part &part, const void *from, std::size_t bytes) {
        std::memcpy(circuit_.pinned_of_worker<uint8_t>(worker_, part), from, bytes);
    };
    const uint32_t stop[2] = {0, 1};
    put(parts.stop, stop, sizeof(stop));
    put(parts.inputs, witness_.inputs, parts.inputs.bytes);
    for (const Part &part : {parts.bits, parts.wide}) {
        std::memset(circuit_.pinned_of_worker<uint8_t>(worker_, part), 0, part.bytes);
    }
    put(parts.bits, witness_.bits, words * sizeof(uint64_t));
    put(parts.wide, witness_.wide, words * sizeof(uint64_t));
    put(parts.ranks, wide_ranks_.data(), wide_ranks_.size() * sizeof(uint32_t));
    put(parts.wide_values, witness_.wide_values, witness_.num_wide * sizeof(Fr));
    const std::size_t bytes = parts.wide_values.offset + witness_.num_wide * sizeof(Fr);
    api_.upload(*device_.witnesses, circuit_.of_worker<uint8_t>(worker_, parts.stop),
                circuit_.pinned_of_worker<uint8_t>(worker_, parts.stop), bytes);
    api_.record(*device_.uploaded[worker_], *device_.witnesses);
    figures_.uploaded_bytes = bytes;
}

void Proof::start_b_g2() {
    if (!plan_.on_device(CUZK_QUERY_B_G2)) {
        b_g2_ = std::async(std::launch::async, [this] { return b_g2(); });
    }
}

Proof::InG2OnCpu Proof::b_g2() const {
    const auto start = Clock::now();
    const cuzk_circuit_data &data = circuit_.data_;
    const PackedB bases{data.points[CUZK_QUERY_B_G2],
                        data.shape.num_points[CUZK_QUERY_B_G2],
                        data.b_inputs,
                        data.shape.num_b_inputs,
                        data.b_aux,
                        circuit_.b_ranks_.data(),
                        circuit_.num_words_};
    const blst_p2 sum = b_g2_packed(shared_pool(), device_.resources.membw_throttle, bases,
                                    witness_, wide_ranks_.data(), [this] {
                                        if (b_g2_stop_.load(std::memory_order_relaxed)) {
                                            throw Error(CUZK_STOPPED, "the proof was stopped");
                                        }
                                    });
    return {sum, ms_since(start)};
}

// Waits until b_g2_msm does not read the witness any more.
void Proof::end_b_g2() noexcept {
    b_g2_stop_.store(true, std::memory_order_relaxed);
    if (b_g2_.valid()) {
        b_g2_.wait();
    }
}

void Proof::run(bool b_g1, const cuzk_intermediates *intermediates,
                const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures) {
    expect(State::staged, "run");
    checkpoint_ = checkpoint;
    try {
        ReadBack read_back(device_, intermediates,
                           uint64_t{1} << circuit_.data_.shape.log_domain);
        start_b_g2();
        device_region(b_g1, read_back);
        read_back.deliver();
        add_results();
    } catch (...) {
        state_ = State::failed;
        b_g2_stop_.store(true, std::memory_order_relaxed);
        release_worker();
        throw;
    }
    state_ = State::ran;
    release_worker();
    figures = figures_;
}

void Proof::finish(const cuzk_checkpoint &checkpoint, cuzk_sums &sums,
                   cuzk_proof_figures &figures) {
    expect(State::ran, "finish");
    state_ = State::failed;
    if (b_g2_.valid()) {
        while (b_g2_.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
            pass(checkpoint);
        }
        const InG2OnCpu result = b_g2_.get();
        sums_.b_g2 = result.sum;
        figures_.b_g2_ms = result.ms;
    }
    state_ = State::finished;
    sums = sums_;
    figures = figures_;
}

// Enqueues everything. Waits only for the pieces that it sends if it is too far
// ahead of the device, and for the end.
void Proof::device_region(bool b_g1, ReadBack &read_back) {
    const auto asked = Clock::now();
    const GpuRegion region(device_.resources, checkpoint_);
    const auto locked = Clock::now();
    figures_.lock_wait_ms = std::chrono::duration<double, std::milli>(locked - asked).count();
    figures_.locked_at_ns = ns_between({}, locked);
    device_.check_alive();
    try {
        pass(checkpoint_);
        evaluate();
        read_back.copy(*device_.compute, ReadBack::a, circuit_.in_frame<Fr>(plan_.a));
        read_back.copy(*device_.compute, ReadBack::b, circuit_.in_frame<Fr>(plan_.b));
        quotient();
        read_back.copy(*device_.compute, ReadBack::h, circuit_.in_frame<Fr>(plan_.b));
        sums(b_g1);
        api_.download(*device_.compute,
                      circuit_.pinned_of_worker<uint8_t>(worker_, plan_.worker.results),
                      circuit_.of_worker<uint8_t>(worker_, plan_.worker.results), results_end_);
        api_.record(*device_.sums_done, *device_.compute);
        device_.wait(*device_.sums_done, checkpoint_);
        figures_.quotient_ms = api_.elapsed_ms(*device_.begun, *device_.quotient_done);
        figures_.sums_ms = api_.elapsed_ms(*device_.quotient_done, *device_.sums_done);
        figures_.region_ns = ns_between(locked, Clock::now());
    } catch (...) {
        stop_device();
        device_.settle();
        throw;
    }
}

// Makes kernels that have not begun do nothing. The word is written on the
// witnesses' stream, which overtakes the others. It comes after this proof's own
// witness on that stream, whose copy sets the word to 0. The device copies it,
// because a kernel would wait for those that are to be stopped.
void Proof::stop_device() noexcept {
    guard([&] {
        const Part &stop = plan_.worker.stop;
        const auto *stopped = circuit_.pinned_of_worker<uint32_t>(worker_, stop) + 1;
        api_.upload(*device_.witnesses, circuit_.of_worker<uint32_t>(worker_, stop), stopped,
                    sizeof(*stopped));
    });
}

template <class Enqueue>
void Proof::launch(DeviceStream &stream, const char *what, const Enqueue &enqueue) {
    const auto *stop = circuit_.of_worker<uint32_t>(worker_, plan_.worker.stop);
    api_.launch(stream, what,
                [=](NativeStream raw) { return enqueue(device::Stream(raw, stop)); });
}

void Proof::evaluate() {
    const Circuit &circuit = circuit_;
    const CircuitLayout &parts = plan_.circuit;
    const WorkerLayout &own = plan_.worker;
    const cuzk_circuit_shape &shape = circuit.data_.shape;
    const device::Program program{circuit.in_block<Fr>(parts.coefficients),
                                  circuit.in_block<int32_t>(parts.integers),
                                  circuit.in_block<Fr>(parts.halves),
                                  circuit.in_block<uint32_t>(parts.part_ends),
                                  circuit.in_block<uint32_t>(parts.items),
                                  circuit.in_block<uint32_t>(parts.shapes),
                                  circuit.in_block<uint32_t>(parts.unit_rows),
                                  circuit.in_block<uint32_t>(parts.references),
                                  circuit.in_block<uint32_t>(parts.block_references),
                                  shape.rows,
                                  shape.num_inputs};
    const device::Witness witness{circuit.of_worker<Fr>(worker_, own.inputs),
                                  circuit.of_worker<uint64_t>(worker_, own.bits),
                                  circuit.of_worker<uint64_t>(worker_, own.wide),
                                  circuit.of_worker<uint32_t>(worker_, own.ranks),
                                  circuit.of_worker<Fr>(worker_, own.wide_values)};
    Fr *a = circuit.in_frame<Fr>(plan_.a);
    Fr *b = circuit.in_frame<Fr>(plan_.b);
    const uint32_t log = shape.log_domain;
    DeviceStream &compute = *device_.compute;
    api_.stream_waits(compute, *device_.uploaded[worker_]);
    api_.record(*device_.begun, compute);
    launch(compute, "evaluation", [=](const device::Stream &stream) {
        return device::evaluate(program, witness, log, device::Order::bit_reversed, a, b, stream);
    });
}

// Computes h in the place of b.
void Proof::quotient() {
    const device::Roots roots = circuit_.roots();
    Fr *a = circuit_.in_frame<Fr>(plan_.a);
    Fr *b = circuit_.in_frame<Fr>(plan_.b);
    Fr *scratch = circuit_.in_frame<Fr>(plan_.scratch);
    launch(*device_.compute, "the quotient", [=](const device::Stream &stream) {
        return device::quotient(roots, roots.log, a, b, scratch, device::Form::canonical, stream);
    });
    api_.record(*device_.quotient_done, *device_.compute);
    // The pieces are written to the memory of a and scratch.
    api_.stream_waits(*device_.transfer, *device_.quotient_done);
}

// MSMs that need only the witness and points that stay begin at once, beside the
// transforms. Those that need the quotient, or pieces, come after the transforms.
void Proof::sums(bool b_g1) {
    results_end_ = plan_.results_max * sizeof(uint32_t);
    const bool b_g2 = plan_.on_device(CUZK_QUERY_B_G2);
    api_.stream_waits(*device_.side, *device_.begun);
    sum_resident<InG1>(CUZK_QUERY_L);
    sum_resident<InG1>(CUZK_QUERY_A);
    if (b_g2) {
        sum_resident<InG2>(CUZK_QUERY_B_G2);
    }
    api_.record(*device_.side_done, *device_.side);
    sum_h<InG1>();
    sum_streamed<InG1>(CUZK_QUERY_L);
    sum_streamed<InG1>(CUZK_QUERY_A);
    if (b_g1) {
        sum_streamed<InG1>(CUZK_QUERY_B_G1);
    }
    if (b_g2) {
        sum_streamed<InG2>(CUZK_QUERY_B_G2);
    }
    api_.stream_waits(*device_.compute, *device_.side_done);
}

template <class Group, class Use> void Proof::for_each_piece(uint32_t query, const Use &use) {
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

template <class Group> void Proof::sum_h() {
    const Lane lane = main_lane();
    const Fr *h = circuit_.in_frame<Fr>(plan_.b);
    const auto sum = [&](const Span &span, const typename Group::Affine *bases) {
        for (uint64_t done = 0; done < span.len; done += lane.layout.msm_points) {
            const uint64_t n = std::min<uint64_t>(lane.layout.msm_points, span.len - done);
            msm<Group>(lane, CUZK_QUERY_H, bases + done, h + span.first + done, nullptr, n,
                       device::Form::canonical);
        }
    };
    sum({0, plan_.summary.resident_points[CUZK_QUERY_H]},
        circuit_.in_block<typename Group::Affine>(plan_.resident[CUZK_QUERY_H]));
    for_each_piece<Group>(CUZK_QUERY_H, sum);
}

template <class Group> void Proof::sum_resident(uint32_t query) {
    const uint64_t resident = plan_.summary.resident_points[query];
    if (resident != 0) {
        sum_span<Group>(side_lane(), query, {0, resident},
                        circuit_.in_block<typename Group::Affine>(plan_.resident[query]));
    }
}

template <class Group> void Proof::sum_streamed(uint32_t query) {
    for_each_piece<Group>(query, [&](const Span &span, const typename Group::Affine *bases) {
        sum_span<Group>(main_lane(), query, span, bases);
    });
}

// Computes the bits of a span as a sum, and its wide values as a multiplication,
// together with the inputs in the first span.
template <class Group>
void Proof::sum_span(const Lane &lane, uint32_t query, const Span &span,
                     const typename Group::Affine *bases) {
    const CircuitLayout &parts = plan_.circuit;
    const WorkerLayout &own = plan_.worker;
    const cuzk_circuit_shape &shape = circuit_.data_.shape;
    const bool all = query == CUZK_QUERY_L;
    const bool of_a = query == CUZK_QUERY_A;
    const auto *mask = all ? nullptr : circuit_.in_block<uint64_t>(of_a ? parts.a_mask : parts.b_mask);
    const auto *ranks =
        all ? nullptr : circuit_.in_block<uint32_t>(of_a ? parts.a_ranks : parts.b_ranks);
    const uint32_t before = all ? 0 : of_a ? shape.num_inputs : shape.num_b_inputs;
    const auto first_base = static_cast<uint32_t>(span.first);
    const auto num_bases = static_cast<uint32_t>(span.len);

    if (!all && span.first == 0) {
        const Part &inputs = of_a ? parts.a_inputs : parts.b_inputs;
        msm<Group>(lane, query, bases, circuit_.of_worker<Fr>(worker_, own.inputs),
                   circuit_.in_block<uint32_t>(inputs), shape.num_inputs,
                   device::Form::montgomery);
    }
    const auto *bits = circuit_.of_worker<uint64_t>(worker_, own.bits);
    auto *scratch = circuit_.in_frame<uint8_t>(lane.layout.scratch);
    const uint32_t words_max = lane.layout.sum_words;
    const Words words = words_of(all ? nullptr : of_a ? &circuit_.a_ranks_ : &circuit_.b_ranks_,
                                 before, span, circuit_.num_words_);
    for (uint32_t word = words.begin; word < words.end; word += words_max) {
        const uint32_t len = std::min(words_max, words.end - word);
        // Without a mask the bases before are those of the words before.
        const device::Query part{all ? nullptr : mask + word, all ? nullptr : ranks + word,
                                 all ? word * 64 : before, first_base, num_bases};
        auto *sum = take_result<typename Group::Xyzz>(query, device::ONE_SUM);
        launch(lane, "a sum of points", [=](const device::Stream &stream) {
            return device::sum(bases, part, bits + word, len, scratch, sum, stream);
        });
    }
    sum_wide<Group>(lane, query, {mask, ranks, before, first_base, num_bases}, words, bases);
}

template <class Group>
void Proof::sum_wide(const Lane &lane, uint32_t query, const device::Query &of, const Words &words,
                     const typename Group::Affine *bases) {
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
        msm<Group>(lane, query, bases, values + at, places + at, std::min(most, end - at),
                   device::Form::montgomery);
    }
}

// Handles no more values than the lane takes at once.
template <class Group>
void Proof::msm(const Lane &lane, uint32_t query, const typename Group::Affine *bases,
                const Fr *values, const uint32_t *places, uint64_t n, device::Form form) {
    const device::Scalars scalars{values, places, static_cast<uint32_t>(n), form};
    const device::Windows windows = device::choose_windows(rounded(scalars.n));
    const std::size_t scratch_bytes = device::msm_scratch_bytes<typename Group::Field>(scalars.n, windows);
    const Part &room = lane.layout.scratch;
    if (scratch_bytes > room.bytes) {
        throw Error(CUZK_DEVICE_ERROR, "a multiplication of " + std::to_string(n) +
                                           " points needs " + std::to_string(scratch_bytes) +
                                           " bytes, and " + std::to_string(room.bytes) +
                                           " were planned");
    }
    auto *sums = take_result<typename Group::Xyzz>(query, windows);
    auto *scratch = circuit_.in_frame<uint8_t>(room);
    launch(lane, "a multi-scalar multiplication", [=](const device::Stream &stream) {
        return device::msm(bases, scalars, windows, scratch, sums, stream);
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

// Reads them from the worker's pinned memory, outside the lock.
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
            InG2::add(sums_.b_g2, reinterpret_cast<const G2Xyzz *>(at), result.windows);
        } else {
            InG1::add(*in_g1[result.query], reinterpret_cast<const G1Xyzz *>(at), result.windows);
        }
    }
}

} // namespace cuzk::CUZK_VARIANT
