// A circuit on a device: the use of its memory, its arrays and its points. Its
// proofs are in device_proof.hpp.
//
// Invariants: the host's arrays belong to the caller and stay unchanged. The
// circuit of the proofs changes, and a circuit is loaded, only while no worker is
// busy. The data of a circuit on the device stays unchanged until another circuit
// needs the room.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "../cuda/kernels.hpp"
#include "device.hpp"
#include "plan.hpp"

namespace cuzk::CUZK_VARIANT {

using device::Fr;
using device::G1Affine;
using device::G1Xyzz;
using device::G2Affine;
using device::G2Xyzz;

// A group over the field F. The host has its points as S.
template <class F, class S, void (*ADD)(S *, const S *, const S *)> struct Group {
    using Field = F;
    using Affine = device::Affine<F>;
    using Xyzz = device::Xyzz<F>;

    static void add(S &to, const Xyzz *sums, device::Windows windows) {
        const device::Jacobian<F> value = device::finish(sums, windows);
        static_assert(sizeof(S) == sizeof(value), "one layout");
        S point;
        std::memcpy(&point, &value, sizeof(point));
        ADD(&to, &to, &point);
    }
};

using InG1 = Group<device::Fp, blst_p1, blst_p1_add_or_double>;
using InG2 = Group<device::Fp2, blst_p2, blst_p2_add_or_double>;

inline const char *query_name(uint32_t query) {
    constexpr const char *names[CUZK_QUERIES] = {"H", "L", "A", "B in G1", "B in G2"};
    return names[query];
}

// A circuit with its plan.
class Circuit final : public cuzk_circuit {
public:
    Circuit(Device &device, const cuzk_circuit_data &data);
    ~Circuit() override;

    const cuzk_device_plan &plan() const override { return plan_.summary; }
    std::unique_ptr<cuzk_proof> stage(const cuzk_witness &witness,
                                      const cuzk_checkpoint &checkpoint) override;

    // Makes sure that the circuit is on the device. No worker may be busy.
    void activate(const cuzk_checkpoint &checkpoint);

    Device &device_;
    cuzk_circuit_data data_;
    Plan plan_;
    uint32_t num_words_;
    std::vector<uint32_t> a_ranks_;
    std::vector<uint32_t> b_ranks_;

    template <class T> T *in_frame(const Part &part) const {
        return reinterpret_cast<T *>(device_.arena.at(part.offset));
    }
    template <class T> T *in_block(const Part &part) const {
        return reinterpret_cast<T *>(device_.arena.at(block_offset_ + part.offset));
    }
    template <class T> T *of_worker(std::size_t worker, const Part &part) const {
        return reinterpret_cast<T *>(device_.arena.at(plan_.worker_offset(worker) + part.offset));
    }
    template <class T> T *pinned_of_worker(std::size_t worker, const Part &part) const {
        return reinterpret_cast<T *>(
            device_.pinned.at(plan_.worker_offset(worker) + part.offset));
    }
    device::Roots roots() const;

    // Enqueues kernels of a proof. The worker's word `stop` stops them.
    template <class Kernels>
    void launch(std::size_t worker, DeviceStream &stream, const char *what,
                const Kernels &kernels) const {
        const auto *stop = of_worker<uint32_t>(worker, plan_.worker.stop);
        device_.api_->launch(stream, what, [=](NativeStream raw) {
            return kernels(device::Stream(raw, stop));
        });
    }

    // The host's side of piece buffer `buffer`.
    uint8_t *pinned_piece(uint32_t buffer) const {
        return device_.pinned.at(plan_.worker.bytes * device_.options.workers +
                                 buffer * plan_.raw[0].bytes);
    }

    // Copies a piece of encoded points into raw buffer `buffer`, which is free. If
    // the checkpoint stops it, nothing has begun on the device.
    void send_piece(uint32_t query, uint64_t first, uint64_t len, uint32_t buffer,
                    const cuzk_checkpoint &checkpoint);
    template <class Group>
    void decode_piece(uint64_t len, uint32_t buffer, typename Group::Affine *points,
                      uint32_t *bad);

private:
    // Points that are on their way to stay.
    struct Sent {
        uint32_t query;
        uint64_t first;
    };

    // The upload of a circuit: the checkpoint that may stop it, the number of
    // pieces of arrays and of points that went through the piece buffers, and the
    // points in each buffer.
    struct Load {
        const cuzk_checkpoint &checkpoint;
        uint64_t sent = 0;
        uint32_t pieces = 0;
        std::optional<Sent> points[2] = {};
    };

    void check() const;
    void bring(Load load);
    void send_arrays(Load &load);
    void send(Load &load, const Part &part, const void *from, std::size_t bytes);
    template <class T>
    void send_vector(Load &load, const Part &part, const std::vector<T> &from) {
        send(load, part, from.data(), from.size() * sizeof(T));
    }
    template <class Group> void send_points(Load &load, uint32_t query);
    void receive_points(Load &load, uint32_t buffer);

    std::size_t block_offset_ = 0;
};

} // namespace cuzk::CUZK_VARIANT
