// The pinned host memory through which a device's circuits, witnesses and results
// go. plan.hpp divides it into parts. The memory of intermediates is separate
// (read_back.hpp).
//
// It is not taken when a device is opened, for two reasons. Its size depends on the
// circuit, and none is known then. And it is host memory, which is charged to
// circuits that are there.
//
// Invariants: it changes only while no worker is busy. It grows with the first
// proof of a circuit that needs more than there is, so later proofs of that circuit
// take none. Memory that only ended circuits needed is given back at once. If a
// worker is busy then, it is given back before the next proof.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "device_api.hpp"

namespace cuzk {

class Pinned {
public:
    uint8_t *at(std::size_t offset) const { return memory_.at(offset); }

    void add(const void *circuit, std::size_t bytes) {
        const std::lock_guard<std::mutex> lock(mtx_);
        needs_.push_back({circuit, bytes});
    }
    void remove(const void *circuit) noexcept {
        const std::lock_guard<std::mutex> lock(mtx_);
        needs_.erase(std::remove_if(needs_.begin(), needs_.end(),
                                    [&](const Need &need) { return need.circuit == circuit; }),
                     needs_.end());
    }

    // Makes sure that there is enough for a circuit and not too much. No worker may
    // be busy. If there was too little for this, there is none afterwards.
    void fit(DeviceApi &api, std::size_t bytes) {
        const std::size_t most = std::max(bytes, this->most());
        const bool is_more = memory_.bytes() > most;
        if (is_more || memory_.bytes() < bytes) {
            memory_ = DeviceMemory();
            memory_ = DeviceMemory(api, is_more ? most : bytes, true);
        }
    }

    // Gives all of it back if that is more than is needed. Returns true if it did;
    // then it must be fitted anew. No worker may be busy.
    bool give_back() noexcept {
        if (memory_.bytes() <= most()) {
            return false;
        }
        memory_ = DeviceMemory();
        return true;
    }

    void leak() noexcept { memory_.leak(); }

private:
    struct Need {
        const void *circuit;
        std::size_t bytes;
    };

    // Returns the need of the circuit that needs the most.
    std::size_t most() const noexcept {
        const std::lock_guard<std::mutex> lock(mtx_);
        std::size_t most = 0;
        for (const Need &need : needs_) {
            most = std::max(most, need.bytes);
        }
        return most;
    }

    mutable std::mutex mtx_;
    std::vector<Need> needs_;
    DeviceMemory memory_;
};

} // namespace cuzk
