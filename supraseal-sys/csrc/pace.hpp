// The limit on the distance of the host ahead of a stream. CUDA accepts about a
// thousand kernels of a stream that have not begun. A thread that enqueues more
// blocks inside the driver, where no checkpoint is asked and no limit ends the
// wait.
//
// Invariant: if all launches of a stream are steps, at most 2·kLaunchesOfMark of
// them have not passed. Half of that are still to do whenever the host waits.
#pragma once

#include "device.hpp"

namespace cuzk::CUZK_VARIANT {

// A multiplication is at most 24 kernels.
constexpr uint32_t kLaunchesOfMark = 16;

class Pace {
public:
    // `marks` have passed, or were never recorded.
    Pace(Device &device, DeviceStream &stream, std::unique_ptr<DeviceEvent> (&marks)[2])
        : device_(device), stream_(stream), marks_(marks) {}

    // Call it before a launch. Throws as Device::wait does.
    void step(const cuzk_checkpoint &checkpoint) {
        pass(checkpoint);
        if (launches_ == kLaunchesOfMark) {
            device_.api_->record(*marks_[turn_], stream_);
            turn_ = 1 - turn_;
            device_.wait(*marks_[turn_], checkpoint);
            launches_ = 0;
        }
        ++launches_;
    }

private:
    Device &device_;
    DeviceStream &stream_;
    std::unique_ptr<DeviceEvent> (&marks_)[2];
    uint32_t launches_ = 0; // since the last mark
    uint32_t turn_ = 0;
};

} // namespace cuzk::CUZK_VARIANT
