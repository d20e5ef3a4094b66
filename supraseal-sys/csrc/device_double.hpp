// A device in host memory, for tests of the host side.
//
// - Each stream is a thread. So work that needs a wait and has none may run in any
//   order.
// - Memory is limited as asked.
// - A stream refuses more than a thousand kernels that have not passed, where
//   CUDA's driver would block.
// - Each call can be made to fail in each way that a device fails.
// - The making of a circuit can be made to stand still.
// - A stream can be made as slow as possible: its work begins only when the host
//   waits and no other stream can go on. So all work that needs a wait for that
//   stream and has none runs too early in each run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "device_api.hpp"
#include "prover.hpp"

namespace cuzk {

// The effect of call number `call` (from 1) of the device's interface.
struct DoubleFault {
    std::atomic<uint64_t> call{0}; // 0: nothing
    std::atomic<int32_t> kind{CUZK_TEST_FAULT_NOTHING};
};

// The counts of the device. They outlive it.
struct DoubleSeen {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> allocations{0};
    std::atomic<uint64_t> live_allocations{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> bytes_max{0};
    std::atomic<uint64_t> uploaded_bytes{0};
    std::atomic<uint64_t> drains{0};
    // The longest limit of a wait for a device that stands still.
    std::atomic<uint64_t> stalled_wait_ms_max{0};
    // Streams of the device that was opened last.
    std::atomic<uint64_t> streams{0};
    // Operations that its streams were given and have not passed: copies, launches,
    // records and waits.
    std::atomic<uint64_t> under_way{0};
};

// Holds the making of a circuit, if a test asked for the next one to stand still.
class DoubleHold {
public:
    void hold_next();
    void release();
    void pass();
    uint64_t held();

private:
    enum class State { open, asked, held };
    std::mutex mtx_;
    std::condition_variable changed_;
    State state_ = State::open;
};

struct DoubleControls {
    DoubleFault fault;
    DoubleSeen seen;
    DoubleHold making;
    // The bytes that the stacks of kernels take.
    std::atomic<uint64_t> stacks_bytes{0};
    // The number of the stream that is slow on a device that is opened later.
    // Streams have numbers from 1 in the order of their making; 0 means none.
    std::atomic<uint64_t> slow_stream{0};
};

// Returns a device of this much memory.
std::unique_ptr<DeviceApi> open_double(uint64_t memory_bytes,
                                       std::shared_ptr<DoubleControls> controls);

// Returns a device whose circuits are made when the controls allow it.
std::unique_ptr<cuzk_device> holding(std::unique_ptr<cuzk_device> device,
                                     std::shared_ptr<DoubleControls> controls);

} // namespace cuzk
