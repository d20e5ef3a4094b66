#include "device.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "device_circuit.hpp"
#include "plan.hpp"
#include "status.hpp"

namespace cuzk::CUZK_VARIANT {
namespace {

// The memory that the driver may take for code and streams, beside ours and the
// stacks. As plain C++ there is no driver.
#ifdef CUZK_EMULATED
constexpr uint64_t kReserveBytes = 0;
#else
constexpr uint64_t kReserveBytes = uint64_t{256} << 20;
#endif

// The further time for a device that reached the stall limit once already.
constexpr std::chrono::milliseconds kOverdueLimit(1000);

// The most that a kernel's thread keeps in local memory, as ptxas reports it. MSMs in
// G2 keep points there, and a large card has 2^18 threads: together that is more than
// the reserve.
#ifdef CUZK_EMULATED
constexpr std::size_t kStackBytes = 0;
#else
constexpr std::size_t kStackBytes = CUZK_STACK_BYTES;
#endif

// As plain C++ the arithmetic is the one that it would be compared with.
#ifdef CUZK_EMULATED
constexpr uint32_t kSelfTestRounds = 0;
#else
constexpr uint32_t kSelfTestRounds = 1;
#endif

} // namespace

Device::Device(std::unique_ptr<DeviceApi> api, const cuzk_device_options &asked,
               gpu_resources &shared)
    : options(asked), resources(shared), slots(asked.workers), api_(std::move(api)) {
    if (options.workers == 0 || options.workers > CUZK_THREADS_MAX) {
        throw Error(CUZK_INVALID_ARGUMENT, "workers: expected 1 to " +
                                               std::to_string(CUZK_THREADS_MAX) + ", got " +
                                               std::to_string(options.workers));
    }
    for (auto *stream : {&compute, &side, &transfer, &witnesses}) {
        *stream = api_->make_stream();
    }
    for (auto *event : {&begun, &quotient_done, &side_done, &sums_done, &settled,
                        &compute_marks[0], &compute_marks[1], &side_marks[0], &side_marks[1],
                        &piece_there[0], &piece_there[1], &piece_free[0], &piece_free[1]}) {
        *event = api_->make_event();
    }
    uploaded.resize(options.workers);
    for (auto &event : uploaded) {
        event = api_->make_event();
    }
    take_memory();
    self_test();
}

void Device::take_memory() {
    const auto free_beside = [&](uint64_t reserve) {
        const uint64_t free = api_->info().free_bytes;
        if (free <= reserve) {
            throw Error(CUZK_DEVICE_OUT_OF_MEMORY,
                        "the device has " + std::to_string(free) + " bytes free, and " +
                            std::to_string(reserve) +
                            " are left to its driver; end what else uses it");
        }
        return free - reserve;
    };
    const uint64_t before = free_beside(kReserveBytes + api_->keep_stacks(kStackBytes));
    load_kernels();
    // The kernels' code is loaded now. The stacks are there, or will be.
    const uint64_t usable = std::min(before, free_beside(kReserveBytes));
    const bool is_limited = options.memory_bytes != 0;
    options.memory_bytes = is_limited ? std::min(options.memory_bytes, usable) : usable;
    arena = DeviceMemory(*api_, options.memory_bytes, false);
    residency.set_bytes(options.memory_bytes / kAlign * kAlign);
}

Device::~Device() {
    settle();
    if (stalled_.load() || !api_->drain(std::chrono::milliseconds(options.stall_limit_ms))) {
        // The device may still write there.
        arena.leak();
        pinned.leak();
    }
}

template <class Work> void Device::at_start(DeviceMemory &memory, const Work &work) {
    try {
        work();
        api_->record(*settled, *compute);
        wait(*settled);
    } catch (...) {
        settle();
        if (stalled_.load()) {
            // Freeing would wait for the device.
            memory.leak();
            arena.leak();
        }
        throw;
    }
}

// The first launch of a kernel makes the driver take memory, which it would not
// find later, and time, which a proof would have to wait for.
void Device::load_kernels() {
    DeviceMemory word(*api_, sizeof(uint32_t), false);
    at_start(word, [&] {
        const auto *stop = reinterpret_cast<const uint32_t *>(word.at(0));
        api_->fill(*compute, word.at(0), 0xff, sizeof(uint32_t));
        api_->launch(*compute, "loading the kernels", [=](NativeStream stream) {
            return device::load_kernels(device::Stream(stream, stop));
        });
    });
}

void Device::self_test() {
    // Checks that this program's code runs on this device at all, before anything
    // depends on it.
    auto *failures = reinterpret_cast<uint32_t *>(arena.at(0));
    DeviceMemory answer(*api_, sizeof(uint32_t), true);
    at_start(answer, [&] {
        api_->fill(*compute, failures, 0, sizeof(uint32_t));
        api_->launch(*compute, "the self-test", [=](NativeStream stream) {
            return device::self_test(kSelfTestRounds, failures, stream);
        });
        api_->download(*compute, answer.at(0), failures, sizeof(uint32_t));
    });
    uint32_t differences = 0;
    std::memcpy(&differences, answer.at(0), sizeof(differences));
    if (differences != 0) {
        throw Error(CUZK_DEVICE_ERROR,
                    "the self-test: the device's arithmetic is wrong in " +
                        std::to_string(differences) + " places; do not use this card");
    }
}

void Device::check_alive() const {
    if (lost_.load()) {
        throw Error(CUZK_DEVICE_LOST,
                    "the device failed before and was given up; restart to use it again");
    }
}

void Device::wait(DeviceEvent &event, const cuzk_checkpoint &checkpoint) {
    try {
        wait_for(event, std::chrono::milliseconds(options.stall_limit_ms), checkpoint);
    } catch (const Error &error) {
        is_overdue_.store(error.code() == CUZK_DEVICE_STALLED);
        throw;
    }
}

void Device::wait_for(DeviceEvent &event, std::chrono::milliseconds limit,
                      const cuzk_checkpoint &checkpoint) {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
        pass(checkpoint);
        const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - start);
        const auto left = std::max(limit - waited, std::chrono::milliseconds::zero());
        if (api_->wait(event, checkpoint.pass == nullptr ? left : std::min(left, kCheckpointEvery))) {
            return;
        }
        if (std::chrono::steady_clock::now() - start >= limit) {
            throw Error(CUZK_DEVICE_STALLED, "the device did not end its work within " +
                                                 std::to_string(limit.count()) + " ms");
        }
    }
}

void Device::settle() noexcept {
    for (DeviceStream *stream : {compute.get(), side.get(), transfer.get()}) {
        settle(*stream, *settled);
    }
    is_overdue_.store(false);
}

void Device::settle_worker(std::size_t worker) noexcept {
    settle(*witnesses, *uploaded[worker]);
}

void Device::settle(DeviceStream &stream, DeviceEvent &event) noexcept {
    const std::chrono::milliseconds stall_limit(options.stall_limit_ms);
    const auto limit = is_overdue_.load() ? std::min(stall_limit, kOverdueLimit) : stall_limit;
    // An earlier failure may be reported here once more. Only if it is reported
    // again and again, the device does not work.
    for (int attempt = 0; !lost_.load(); ++attempt) {
        cuzk_status status = guard([&] {
            api_->record(event, stream);
            wait_for(event, limit, {});
        });
        if (status.code == CUZK_OK) {
            return;
        }
        if (status.code == CUZK_DEVICE_STALLED) {
            stalled_.store(true);
        }
        if (status.code == CUZK_DEVICE_LOST || status.code == CUZK_DEVICE_STALLED || attempt == 2) {
            lost_.store(true);
        }
    }
}

std::unique_ptr<cuzk_circuit> Device::make_circuit(const cuzk_circuit_data &data) {
    check_alive();
    return std::make_unique<Circuit>(*this, data);
}

std::unique_ptr<cuzk_device> open_device(std::unique_ptr<DeviceApi> api,
                                         const cuzk_device_options &options,
                                         gpu_resources &resources) {
    return std::make_unique<Device>(std::move(api), options, resources);
}

cuzk_device_plan plan_summary(const cuzk_circuit_shape &shape, const cuzk_device_options &options) {
    return make_plan(shape, options).summary;
}

} // namespace cuzk::CUZK_VARIANT
