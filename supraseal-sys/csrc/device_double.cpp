#include "device_double.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "double_stream.hpp"

namespace cuzk {
namespace {

// The number of kernels of a launch: the most that any launch has.
constexpr uint32_t kKernelsOfLaunch = 24;

class Double final : public DeviceApi {
public:
    Double(uint64_t memory_bytes, std::shared_ptr<DoubleControls> controls)
        : memory_bytes_(memory_bytes), controls_(std::move(controls)),
          machine_(std::make_shared<DoubleMachine>()) {
        machine_->slow_stream = controls_->slow_stream.load();
        controls_->seen.streams.store(0);
        controls_->seen.under_way.store(0);
    }

    ~Double() override {
        const std::lock_guard<std::mutex> lock(machine_->mtx);
        machine_->stop = true;
        machine_->changed.notify_all();
    }

    cuzk_device_info info() override {
        call();
        cuzk_device_info info{};
        std::strncpy(info.name, "double", sizeof(info.name) - 1);
        info.memory_bytes = memory_bytes_;
        info.free_bytes = memory_bytes_ - controls_->seen.bytes.load();
        return info;
    }

    uint64_t keep_stacks(std::size_t) override {
        call();
        return controls_->stacks_bytes.load(); // the kernels have their streams' threads'
    }

    void *allocate(std::size_t bytes) override {
        call();
        DoubleSeen &seen = controls_->seen;
        if (bytes > memory_bytes_ - seen.bytes.load()) {
            throw Error(CUZK_DEVICE_OUT_OF_MEMORY,
                        "allocating " + std::to_string(bytes) + " bytes on the device: " +
                            std::to_string(memory_bytes_ - seen.bytes.load()) + " are free");
        }
        // Untouched pages take no memory, so a large device needs no large host.
        void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        const std::lock_guard<std::mutex> lock(machine_->mtx);
        sizes_[memory] = bytes;
        seen.allocations += 1;
        seen.live_allocations += 1;
        seen.bytes += bytes;
        seen.bytes_max = std::max(seen.bytes_max.load(), seen.bytes.load());
        return memory;
    }

    void release(void *memory) noexcept override {
        {
            const std::lock_guard<std::mutex> lock(machine_->mtx);
            controls_->seen.bytes -= sizes_[memory];
            sizes_.erase(memory);
        }
        controls_->seen.live_allocations -= 1;
        std::free(memory);
    }

    void *allocate_pinned(std::size_t bytes) override {
        call();
        void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        controls_->seen.allocations += 1;
        controls_->seen.live_allocations += 1;
        return memory;
    }

    void release_pinned(void *memory) noexcept override {
        controls_->seen.live_allocations -= 1;
        std::free(memory);
    }

    std::unique_ptr<DeviceStream> make_stream() override {
        call();
        return std::make_unique<DoubleStream>(machine_, controls_->seen);
    }

    std::unique_ptr<DeviceEvent> make_event() override {
        call();
        return std::make_unique<DoubleEvent>();
    }

    void upload(DeviceStream &stream, void *to, const void *from, std::size_t bytes) override {
        controls_->seen.uploaded_bytes += bytes;
        move(stream, to, from, bytes);
    }

    void download(DeviceStream &stream, void *to, const void *from, std::size_t bytes) override {
        move(stream, to, from, bytes);
    }

    void copy(DeviceStream &stream, void *to, const void *from, std::size_t bytes) override {
        move(stream, to, from, bytes);
    }

    void fill(DeviceStream &stream, void *to, uint8_t byte, std::size_t bytes) override {
        enqueue(stream, [=] {
            std::memset(to, byte, bytes);
            return 0;
        }, "filling memory on the device");
    }

    void launch(DeviceStream &stream, const char *what, const Launch &kernels) override {
        enqueue(stream, [kernels] { return kernels(nullptr); }, what, kKernelsOfLaunch);
    }

    void record(DeviceEvent &event, DeviceStream &stream) override {
        call();
        auto record = std::make_shared<DoubleRecord>();
        record->passed = false;
        {
            const std::lock_guard<std::mutex> lock(machine_->mtx);
            static_cast<DoubleEvent &>(event).latest = record;
        }
        static_cast<DoubleStream &>(stream).enqueue([record](std::unique_lock<std::mutex> &) {
            record->passed = true;
            record->when = std::chrono::steady_clock::now();
        }, 1);
    }

    void stream_waits(DeviceStream &base, DeviceEvent &event) override {
        call();
        auto &stream = static_cast<DoubleStream &>(base);
        const std::shared_ptr<DoubleRecord> record = latest(event);
        stream.enqueue([record, &stream](std::unique_lock<std::mutex> &lock) {
            stream.wait(lock, *record);
        }, 1);
    }

    bool wait(DeviceEvent &event, std::chrono::milliseconds limit) override {
        call();
        const std::shared_ptr<DoubleRecord> record = latest(event);
        std::unique_lock<std::mutex> lock(machine_->mtx);
        wait_within(lock, *record, limit);
        report(lock);
        if (machine_->stalled && !record->passed) {
            auto &longest = controls_->seen.stalled_wait_ms_max;
            longest = std::max(longest.load(), static_cast<uint64_t>(limit.count()));
            throw Error(CUZK_DEVICE_STALLED, "the device stands still, as a test asked");
        }
        return record->passed;
    }

    double elapsed_ms(DeviceEvent &from, DeviceEvent &to) override {
        call();
        const std::lock_guard<std::mutex> lock(machine_->mtx);
        const auto between = static_cast<DoubleEvent &>(to).latest->when -
                             static_cast<DoubleEvent &>(from).latest->when;
        return std::chrono::duration<double, std::milli>(between).count();
    }

    bool drain(std::chrono::milliseconds) noexcept override {
        controls_->seen.drains += 1;
        const std::lock_guard<std::mutex> lock(machine_->mtx);
        return !machine_->stalled;
    }

private:
    std::shared_ptr<DoubleRecord> latest(DeviceEvent &event) {
        const std::lock_guard<std::mutex> lock(machine_->mtx);
        return static_cast<DoubleEvent &>(event).latest;
    }

    // If the device does nothing, the limit need not be waited for.
    void wait_within(std::unique_lock<std::mutex> &lock, const DoubleRecord &record,
                     std::chrono::milliseconds limit) {
        auto &awaited = machine_->awaited;
        awaited.push_back(&record);
        machine_->changed.notify_all();
        machine_->changed.wait_for(lock, limit, [&] {
            return !machine_->lost.empty() || machine_->stalled || record.passed;
        });
        awaited.erase(std::find(awaited.begin(), awaited.end(), &record));
    }

    // Throws the failure of the device. On a lost device nothing runs any more.
    void report(std::unique_lock<std::mutex> &lock) {
        if (!machine_->lost.empty()) {
            machine_->changed.wait(lock, [&] { return machine_->running == 0; });
            throw Error(CUZK_DEVICE_LOST, machine_->lost);
        }
        if (!machine_->failed.empty()) {
            throw Error(CUZK_DEVICE_ERROR, std::exchange(machine_->failed, {}));
        }
    }

    // Counts a call and fails it, if it is the one that is to fail.
    void call() {
        const uint64_t number = ++controls_->seen.calls;
        std::unique_lock<std::mutex> lock(machine_->mtx);
        if (!machine_->lost.empty()) {
            report(lock);
        }
        if (number != controls_->fault.call.load()) {
            return;
        }
        switch (controls_->fault.kind.load()) {
        case CUZK_TEST_FAULT_OUT_OF_MEMORY:
            throw Error(CUZK_DEVICE_OUT_OF_MEMORY, "out of memory, as a test asked");
        case CUZK_TEST_FAULT_ERROR:
            throw Error(CUZK_DEVICE_ERROR, "an error, as a test asked");
        case CUZK_TEST_FAULT_STICKY:
            machine_->lost = "the device is lost, as a test asked";
            machine_->changed.notify_all();
            report(lock);
            return;
        case CUZK_TEST_FAULT_STALL:
            machine_->stalled = true;
            return;
        case CUZK_TEST_FAULT_KERNEL:
            // Fails the work that is enqueued next.
            machine_->kernel_fails = true;
            return;
        case CUZK_TEST_FAULT_EXCEPTION:
            throw std::runtime_error("an exception, as a test asked");
        case CUZK_TEST_FAULT_INT:
            throw 7;
        default:
            return;
        }
    }

    void move(DeviceStream &stream, void *to, const void *from, std::size_t bytes) {
        enqueue(stream, [=] {
            if (bytes == sizeof(uint32_t)) {
                // A word arrives whole, and kernels may read it at the same time.
                __atomic_store_n(static_cast<uint32_t *>(to), *static_cast<const uint32_t *>(from),
                                 __ATOMIC_RELAXED);
            } else {
                std::memcpy(to, from, bytes);
            }
            return 0;
        }, "copying");
    }

    template <class Run>
    void enqueue(DeviceStream &base, Run run, const char *what, uint32_t kernels = 1) {
        call();
        const std::string name = what;
        DoubleMachine &machine = *machine_;
        bool faulty = false;
        {
            const std::lock_guard<std::mutex> lock(machine.mtx);
            faulty = std::exchange(machine.kernel_fails, false);
        }
        static_cast<DoubleStream &>(base).enqueue(
            [run, faulty, name, &machine](std::unique_lock<std::mutex> &lock) {
                if (!machine.lost.empty()) {
                    return; // nothing runs on a device that is lost
                }
                ++machine.running;
                lock.unlock();
                const int error = run();
                lock.lock();
                --machine.running;
                if (faulty) {
                    machine.lost = name + ": an illegal address, as a test asked";
                } else if (error != 0) {
                    machine.failed = name + ": error " + std::to_string(error);
                }
            },
            kernels);
    }

    uint64_t memory_bytes_;
    std::shared_ptr<DoubleControls> controls_;
    std::shared_ptr<DoubleMachine> machine_;
    std::map<void *, std::size_t> sizes_;
};

} // namespace

std::unique_ptr<DeviceApi> open_double(uint64_t memory_bytes,
                                       std::shared_ptr<DoubleControls> controls) {
    return std::make_unique<Double>(memory_bytes, std::move(controls));
}

} // namespace cuzk
