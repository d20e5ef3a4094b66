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

} // namespace

Proof::Proof(Circuit &circuit, const cuzk_witness &witness, const cuzk_checkpoint &checkpoint)
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

void Proof::start_b_g2(bool on_host) {
    if (on_host && !plan_.on_device(CUZK_QUERY_B_G2)) {
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

void Proof::run(bool b_g1, bool host_b_g2, const cuzk_intermediates *intermediates,
                const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures) {
    expect(State::staged, "run");
    checkpoint_ = checkpoint;
    try {
        ReadBack read_back(device_, intermediates,
                           uint64_t{1} << circuit_.data_.shape.log_domain);
        Msms msms(circuit_, worker_, wide_ranks_, checkpoint_, figures_);
        start_b_g2(host_b_g2);
        device_region(b_g1, read_back, msms);
        read_back.deliver();
        msms.add_results(sums_);
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
void Proof::device_region(bool b_g1, ReadBack &read_back, Msms &msms) {
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
        msms.enqueue(b_g1);
        msms.download_results();
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
    circuit.launch(worker_, compute, "evaluation", [=](const device::Stream &stream) {
        return device::evaluate(program, witness, log, device::Order::bit_reversed, a, b, stream);
    });
}

// Computes h in the place of b.
void Proof::quotient() {
    const device::Roots roots = circuit_.roots();
    Fr *a = circuit_.in_frame<Fr>(plan_.a);
    Fr *b = circuit_.in_frame<Fr>(plan_.b);
    Fr *scratch = circuit_.in_frame<Fr>(plan_.scratch);
    circuit_.launch(worker_, *device_.compute, "the quotient", [=](const device::Stream &stream) {
        return device::quotient(roots, roots.log, a, b, scratch, device::Form::canonical, stream);
    });
    api_.record(*device_.quotient_done, *device_.compute);
    // The pieces are written to the memory of a and scratch.
    api_.stream_waits(*device_.transfer, *device_.quotient_done);
}

} // namespace cuzk::CUZK_VARIANT
