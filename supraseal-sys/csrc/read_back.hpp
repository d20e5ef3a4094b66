// Vectors of a device in the middle of a proof, copied out to compare provers. The
// results, which every proof copies, do not go through here.
//
// Invariants: pinned memory is taken before the device's lock and given back after
// it. It is leaked if the device may still write to it. The caller gets nothing
// before the copies have passed.
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "device_circuit.hpp"

namespace cuzk::CUZK_VARIANT {

class ReadBack {
public:
    // A vector of `len` values, by its place.
    enum What : std::size_t { a, b, h };

    // `to` may be null: then nothing is copied.
    ReadBack(Device &device, const cuzk_intermediates *to, uint64_t len) : device_(device) {
        if (to == nullptr) {
            return;
        }
        if (to->len != len) {
            throw Error(CUZK_LENGTH_MISMATCH, "intermediates: expected " + std::to_string(len) +
                                                  " values, got " + std::to_string(to->len));
        }
        to_ = {to->a, to->b, to->h};
        bytes_ = len * sizeof(Fr);
        pinned_ = DeviceMemory(*device.api_, to_.size() * bytes_, true);
    }
    ~ReadBack() {
        if (device_.may_be_at_work()) {
            pinned_.leak();
        }
    }
    ReadBack(const ReadBack &) = delete;
    ReadBack &operator=(const ReadBack &) = delete;

    // Copies the vector as it is when the stream reaches this copy.
    void copy(DeviceStream &stream, What what, const Fr *from) {
        if (bytes_ != 0) {
            device_.api_->download(stream, pinned_.at(what * bytes_), from, bytes_);
        }
    }

    // Call it when the stream has passed.
    void deliver() const {
        for (std::size_t what = 0; bytes_ != 0 && what < to_.size(); ++what) {
            std::memcpy(to_[what], pinned_.at(what * bytes_), bytes_);
        }
    }

private:
    Device &device_;
    std::array<blst_fr *, 3> to_{};
    std::size_t bytes_ = 0; // of one vector; 0 if nobody asks
    DeviceMemory pinned_;
};

} // namespace cuzk::CUZK_VARIANT
