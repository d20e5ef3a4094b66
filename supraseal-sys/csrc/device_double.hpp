// A device in host memory, for tests of the host side: each stream is a thread,
// so that a missing wait is a race that sanitizers and results show; memory is
// limited as asked; any call can be made to fail in any way that a device fails.
#pragma once

#include <atomic>
#include <memory>

#include "device_api.hpp"

namespace cuzk {

// What happens to call number `call` (from 1) of the device's interface.
struct DoubleFault {
    std::atomic<uint64_t> call{0}; // 0: nothing
    std::atomic<int32_t> kind{CUZK_TEST_FAULT_NOTHING};
};

// What the device saw. Outlives it.
struct DoubleSeen {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> allocations{0};
    std::atomic<uint64_t> live_allocations{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> bytes_max{0};
    std::atomic<uint64_t> uploaded_bytes{0};
    std::atomic<uint64_t> drains{0};
};

struct DoubleControls {
    DoubleFault fault;
    DoubleSeen seen;
};

std::unique_ptr<DeviceApi> open_double(uint64_t memory_bytes,
                                       std::shared_ptr<DoubleControls> controls);

} // namespace cuzk
