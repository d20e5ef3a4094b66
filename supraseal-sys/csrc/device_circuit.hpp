// A circuit on a device: how its memory is used, its arrays and its points.
// Not a proof of it.
//
// Invariants: the host's arrays are the caller's and stay as they are; loading
// happens under gpu_mtx while no worker is busy.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
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

// The same code for both groups.
struct InG1 {
    using Affine = G1Affine;
    using Xyzz = G1Xyzz;
    using Sum = blst_p1;
    static constexpr auto decode = device::decode_g1;
    static constexpr auto sum = device::sum_g1;
    static constexpr auto msm = device::msm_g1;
    static constexpr auto msm_scratch_bytes = device::msm_g1_scratch_bytes;
    static blst_p1 finish(const Xyzz *sums, device::Windows windows) {
        return as<blst_p1>(windows.bits == 0 ? device::finish_g1(*sums)
                                                : device::finish_g1(sums, windows));
    }
    static void add(blst_p1 &to, const blst_p1 &value) { blst_p1_add_or_double(&to, &to, &value); }

    template <class To, class From> static To as(const From &from) {
        static_assert(sizeof(To) == sizeof(From), "one layout");
        To to;
        std::memcpy(&to, &from, sizeof(to));
        return to;
    }
};

struct InG2 {
    using Affine = G2Affine;
    using Xyzz = G2Xyzz;
    using Sum = blst_p2;
    static constexpr auto decode = device::decode_g2;
    static constexpr auto sum = device::sum_g2;
    static constexpr auto msm = device::msm_g2;
    static constexpr auto msm_scratch_bytes = device::msm_g2_scratch_bytes;
    static blst_p2 finish(const Xyzz *sums, device::Windows windows) {
        return InG1::as<blst_p2>(windows.bits == 0 ? device::finish_g2(*sums)
                                                      : device::finish_g2(sums, windows));
    }
    static void add(blst_p2 &to, const blst_p2 &value) { blst_p2_add_or_double(&to, &to, &value); }
};

inline const char *query_name(uint32_t query) {
    constexpr const char *names[CUZK_QUERIES] = {"H", "L", "A", "B in G1", "B in G2"};
    return names[query];
}

// A circuit with its plan.
class Circuit final : public cuzk_circuit {
public:
    Circuit(Device &device, const cuzk_circuit_data &data);
    ~Circuit() override { device_.slots.forget(this); }

    const cuzk_device_plan &plan() const override { return plan_.summary; }
    std::unique_ptr<cuzk_proof> stage(const cuzk_witness &witness) override;

    // Sends the circuit's arrays up. No worker is busy.
    void load();

    Device &device_;
    cuzk_circuit_data data_;
    Plan plan_;
    uint32_t num_words_;
    std::vector<uint32_t> a_ranks_;
    std::vector<uint32_t> b_ranks_;

    template <class T> T *on_device(const Part &part) const {
        return reinterpret_cast<T *>(device_.arena.at(part.offset));
    }
    template <class T> T *of_worker(std::size_t worker, const Part &part) const {
        return reinterpret_cast<T *>(device_.arena.at(plan_.worker_offset(worker) + part.offset));
    }
    template <class T> T *pinned_of_worker(std::size_t worker, const Part &part) const {
        return reinterpret_cast<T *>(
            device_.pinned.at(plan_.worker_offset(worker) + part.offset));
    }
    // The host's side of piece buffer `buffer`.
    uint8_t *pinned_piece(uint32_t buffer) const {
        return device_.pinned.at(plan_.worker.bytes * device_.options.workers +
                                 buffer * plan_.raw[0].bytes);
    }

    // Brings a piece of encoded points into raw buffer `buffer`.
    void send_piece(uint32_t query, uint64_t first, uint64_t len, uint32_t buffer);
    template <class Group>
    void decode_piece(uint64_t len, uint32_t buffer, typename Group::Affine *points,
                      uint32_t *bad);

private:
    void check() const;
    void send(const Part &part, const void *from, std::size_t bytes);
    template <class T> void send_vector(const Part &part, const std::vector<T> &from) {
        send(part, from.data(), from.size() * sizeof(T));
    }
    template <class Group> void load_points(uint32_t query, uint32_t &piece);

    uint64_t sent_ = 0; // of the current send
};

} // namespace cuzk::CUZK_VARIANT
