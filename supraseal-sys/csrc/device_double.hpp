// A device in host memory, for tests of the host side: each stream is a thread,
// so that without a wait what it orders may come in any order; memory is
// limited as asked; a stream refuses more than a thousand kernels that have not passed,
// where CUDA's driver would block; any call can be made to fail in any way that a device fails,
// the making of a circuit to stand still, and a stream to be as slow as can be: what is on it
// begins only when the host waits and no other stream can go on. So whatever needs a wait for
// that stream and has none comes too early in every run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "device_api.hpp"
#include "prover.hpp"

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
    // The longest limit of a wait for a device that stands still.
    std::atomic<uint64_t> stalled_wait_ms_max{0};
    // Of the device that was opened last.
    std::atomic<uint64_t> streams{0};
    // What its streams were given and have not passed: copies, launches, records and waits.
    std::atomic<uint64_t> under_way{0};
};

// Where the making of a circuit stands still, if a test asked for the next to.
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
    // What the stacks of kernels take.
    std::atomic<uint64_t> stacks_bytes{0};
    // The number, from 1 in the order of their making, of the stream that is slow on a
    // device that is opened afterwards; 0 for none.
    std::atomic<uint64_t> slow_stream{0};
};

std::unique_ptr<DeviceApi> open_double(uint64_t memory_bytes,
                                       std::shared_ptr<DoubleControls> controls);

// The same device, whose circuits are made when the controls let them.
std::unique_ptr<cuzk_device> holding(std::unique_ptr<cuzk_device> device,
                                     std::shared_ptr<DoubleControls> controls);

} // namespace cuzk
