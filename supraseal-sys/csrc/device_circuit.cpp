#include "device_circuit.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "b_g2_packed.hpp"
#include "copy.hpp"
#include "device_proof.hpp"
#include "region.hpp"

namespace cuzk::CUZK_VARIANT {
namespace {

// 2^-k for k < 256.
std::vector<blst_fr> halves() {
    const uint64_t two[4] = {2, 0, 0, 0};
    const uint64_t one[4] = {1, 0, 0, 0};
    blst_fr half;
    blst_fr_from_uint64(&half, two);
    blst_fr_inverse(&half, &half);
    std::vector<blst_fr> halves(256);
    blst_fr_from_uint64(&halves[0], one);
    for (std::size_t k = 1; k < halves.size(); ++k) {
        blst_fr_mul(&halves[k], &halves[k - 1], &half);
    }
    return halves;
}

} // namespace

Circuit::Circuit(Device &device, const cuzk_circuit_data &data)
    : device_(device), data_(data), plan_(make_plan(data.shape, device.options)),
      num_words_((data.shape.num_aux + 63) / 64), a_ranks_(ranks_of(data.a_aux, num_words_)),
      b_ranks_(ranks_of(data.b_aux, num_words_)) {
    check();
    device_.pinned.add(this, plan_.summary.pinned_bytes);
}

Circuit::~Circuit() {
    device_.slots.forget(this);
    device_.residency.remove(this);
    device_.pinned.remove(this);
    device_.slots.change_if_idle(
        [&] { return !device_.is_given_up() && device_.pinned.give_back(); });
}

// Checks the properties of the arrays that the plan and the kernels rely on.
void Circuit::check() const {
    const auto count = [&](const std::vector<uint32_t> &ranks, const uint64_t *mask) {
        return num_words_ == 0 ? 0
                               : ranks.back() + static_cast<uint64_t>(
                                                    __builtin_popcountll(mask[num_words_ - 1]));
    };
    const cuzk_circuit_shape &shape = data_.shape;
    const uint64_t a = shape.num_inputs + count(a_ranks_, data_.a_aux);
    const uint64_t b = shape.num_b_inputs + count(b_ranks_, data_.b_aux);
    if (a != shape.num_points[CUZK_QUERY_A] || b != shape.num_points[CUZK_QUERY_B_G1]) {
        throw Error(CUZK_LENGTH_MISMATCH,
                    "circuit: its queries over A and B have " + std::to_string(a) + " and " +
                        std::to_string(b) + " variables, its parameters " +
                        std::to_string(shape.num_points[CUZK_QUERY_A]) + " and " +
                        std::to_string(shape.num_points[CUZK_QUERY_B_G1]) + " points");
    }
    for (uint32_t i = 0; i < shape.num_b_inputs; ++i) {
        if (data_.b_inputs[i] >= shape.num_inputs) {
            throw Error(CUZK_INVALID_ARGUMENT, "circuit: b_inputs names input " +
                                                   std::to_string(data_.b_inputs[i]) + " of " +
                                                   std::to_string(shape.num_inputs));
        }
    }
}

// Sends an array through the pinned piece buffers, as points are sent.
void Circuit::send(Load &load, const Part &part, const void *from, std::size_t bytes) {
    const std::size_t step = plan_.raw[0].bytes;
    for (std::size_t done = 0; done < bytes; done += step, ++load.sent) {
        const std::size_t now = std::min(step, bytes - done);
        const auto buffer = static_cast<uint32_t>(load.sent % 2);
        if (load.sent >= 2) {
            device_.wait(*device_.piece_free[buffer], load.checkpoint);
        }
        std::memcpy(pinned_piece(buffer), static_cast<const uint8_t *>(from) + done, now);
        device_.api_->upload(*device_.transfer, in_block<uint8_t>(part) + done,
                             pinned_piece(buffer), now);
        device_.api_->record(*device_.piece_free[buffer], *device_.transfer);
    }
}

void Circuit::activate(const cuzk_checkpoint &checkpoint) {
    device_.check_alive();
    device_.pinned.fit(*device_.api_, plan_.summary.pinned_bytes);
    Residency &residency = device_.residency;
    if (const auto offset = residency.use(this, plan_.frame_bytes())) {
        block_offset_ = *offset;
        return;
    }
    block_offset_ = residency.place(this, plan_.frame_bytes(), plan_.block_bytes());
    try {
        bring({checkpoint});
    } catch (...) {
        residency.remove(this);
        throw;
    }
}

void Circuit::bring(Load load) {
    const GpuRegion region(device_.resources, load.checkpoint);
    DeviceApi &api = *device_.api_;
    try {
        send_arrays(load);
        // Another count uses the piece buffers from here on.
        api.record(*device_.settled, *device_.transfer);
        device_.wait(*device_.settled, load.checkpoint);
        for (uint32_t query = 0; query < CUZK_QUERIES; ++query) {
            if (query == CUZK_QUERY_B_G2) {
                send_points<InG2>(load, query);
            } else {
                send_points<InG1>(load, query);
            }
        }
        // The older ones first.
        receive_points(load, load.pieces % 2);
        receive_points(load, (load.pieces + 1) % 2);
        api.record(*device_.settled, *device_.compute);
        device_.wait(*device_.settled, load.checkpoint);
    } catch (...) {
        device_.settle();
        throw;
    }
}

void Circuit::send_arrays(Load &load) {
    const cuzk_circuit_shape &shape = data_.shape;
    const CircuitLayout &parts = plan_.circuit;
    const auto words = [](std::size_t count) { return count * sizeof(uint32_t); };
    send(load, parts.coefficients, data_.coefficients, parts.coefficients.bytes);
    send(load, parts.integers, data_.integers, parts.integers.bytes);
    send(load, parts.part_ends, data_.part_ends, parts.part_ends.bytes);
    send(load, parts.items, data_.items, parts.items.bytes);
    send(load, parts.shapes, data_.shapes, parts.shapes.bytes);
    send(load, parts.unit_rows, data_.unit_rows, parts.unit_rows.bytes);
    send(load, parts.references, data_.references, parts.references.bytes);
    send(load, parts.block_references, data_.block_references, parts.block_references.bytes);
    send(load, parts.a_mask, data_.a_aux, num_words_ * sizeof(uint64_t));
    send(load, parts.b_mask, data_.b_aux, num_words_ * sizeof(uint64_t));
    send(load, parts.a_ranks, a_ranks_.data(), words(num_words_));
    send(load, parts.b_ranks, b_ranks_.data(), words(num_words_));
    send_vector(load, parts.halves, halves());
    std::vector<uint32_t> places(shape.num_inputs);
    for (uint32_t input = 0; input < shape.num_inputs; ++input) {
        places[input] = input;
    }
    send_vector(load, parts.a_inputs, places);
    std::fill(places.begin(), places.end(), device::NO_BASE);
    for (uint32_t place = 0; place < shape.num_b_inputs; ++place) {
        places[data_.b_inputs[place]] = place;
    }
    send_vector(load, parts.b_inputs, places);
    const device::Roots roots = this->roots();
    device_.api_->launch(*device_.compute, "making the roots of unity",
                         [=](NativeStream stream) { return device::make_roots(roots, stream); });
}

device::Roots Circuit::roots() const {
    return {in_block<Fr>(plan_.circuit.roots_low), in_block<Fr>(plan_.circuit.roots_high),
            plan_.roots_low_log, data_.shape.log_domain};
}

// Decodes the points of `query` that stay on the device. The words that tell the
// bad points, by piece buffer, are those of the first worker, which is free.
template <class Group> void Circuit::send_points(Load &load, uint32_t query) {
    DeviceApi &api = *device_.api_;
    const uint64_t all = plan_.summary.resident_points[query];
    const uint64_t step = plan_.piece_points(query);
    for (uint64_t first = 0; first < all; first += step, ++load.pieces) {
        const uint64_t len = std::min(step, all - first);
        const uint32_t buffer = load.pieces % 2;
        receive_points(load, buffer);
        send_piece(query, first, len, buffer, load.checkpoint);
        auto *bad = of_worker<uint32_t>(0, plan_.worker.results) + buffer;
        decode_piece<Group>(len, buffer,
                            in_block<typename Group::Affine>(plan_.resident[query]) + first, bad);
        api.download(*device_.compute,
                     pinned_of_worker<uint32_t>(0, plan_.worker.results) + buffer, bad,
                     sizeof(uint32_t));
        api.record(*device_.piece_free[buffer], *device_.compute);
        load.points[buffer] = Sent{query, first};
    }
}

// Waits until the points in the buffer are decoded, if there are any.
void Circuit::receive_points(Load &load, uint32_t buffer) {
    if (!load.points[buffer]) {
        return;
    }
    const Sent sent = *std::exchange(load.points[buffer], std::nullopt);
    device_.wait(*device_.piece_free[buffer], load.checkpoint);
    const uint32_t bad = pinned_of_worker<uint32_t>(0, plan_.worker.results)[buffer];
    if (bad != UINT32_MAX) {
        throw Error(CUZK_INVALID_POINT, std::string("the query ") + query_name(sent.query) +
                                            ": point " + std::to_string(sent.first + bad) +
                                            " is not an uncompressed point of the curve");
    }
}

void Circuit::send_piece(uint32_t query, uint64_t first, uint64_t len, uint32_t buffer,
                         const cuzk_checkpoint &checkpoint) {
    const std::size_t bytes = len * point_bytes(query);
    const uint8_t *from = data_.points[query] + first * point_bytes(query);
    uint8_t *to = pinned_piece(buffer);
    copy_at_once(to, from, bytes, checkpoint);
    DeviceApi &api = *device_.api_;
    api.upload(*device_.transfer, in_frame<uint8_t>(plan_.raw[buffer]), to, bytes);
    api.record(*device_.piece_there[buffer], *device_.transfer);
    api.stream_waits(*device_.compute, *device_.piece_there[buffer]);
}

template <class Group>
void Circuit::decode_piece(uint64_t len, uint32_t buffer, typename Group::Affine *points,
                           uint32_t *bad) {
    DeviceApi &api = *device_.api_;
    const auto *raw = in_frame<uint8_t>(plan_.raw[buffer]);
    api.fill(*device_.compute, bad, 0xff, sizeof(uint32_t));
    api.launch(*device_.compute, "decoding points", [=](NativeStream stream) {
        return device::decode(raw, static_cast<uint32_t>(len), points, bad, stream);
    });
    api.record(*device_.piece_free[buffer], *device_.compute);
}

std::unique_ptr<cuzk_proof> Circuit::stage(const cuzk_witness &witness,
                                           const cuzk_checkpoint &checkpoint) {
    device_.check_alive();
    if (witness.num_words < num_words_ || witness.num_wide > data_.shape.max_wide) {
        throw Error(CUZK_LENGTH_MISMATCH,
                    "witness: expected at least " + std::to_string(num_words_) +
                        " words and at most " + std::to_string(data_.shape.max_wide) +
                        " wide values, got " + std::to_string(witness.num_words) + " and " +
                        std::to_string(witness.num_wide));
    }
    return std::make_unique<Proof>(*this, witness, checkpoint);
}

} // namespace cuzk::CUZK_VARIANT
