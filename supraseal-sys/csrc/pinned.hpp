// The pinned host memory through which a device's circuits, witnesses and results go. Not
// who uses which part of it (plan.hpp), and not that of intermediates (read_back.hpp).
//
// It is not taken when a device is opened: how much there has to be depends on the circuit,
// and none is known then; and it is the host's, charged to circuits that are there.
//
// Invariants: it changes only while no worker is busy; it grows with the first proof of a
// circuit that needs more than there is, so a proof of a circuit that was proved before
// takes none; what only circuits needed that have ended is given back, at once or, where a
// worker is busy then, before the next proof.
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

    // Sees that there is enough for a circuit and not too much. No worker is busy.
    // Afterwards there is none, if there was too little for this.
    void fit(DeviceApi &api, std::size_t bytes) {
        const std::size_t most = std::max(bytes, this->most());
        const bool is_more = memory_.bytes() > most;
        if (is_more || memory_.bytes() < bytes) {
            memory_ = DeviceMemory();
            memory_ = DeviceMemory(api, is_more ? most : bytes, true);
        }
    }

    // Gives all of it back if that is more than is needed, and says so: it has to be fitted
    // anew. No worker is busy.
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

    // That of the circuit that needs the most.
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
