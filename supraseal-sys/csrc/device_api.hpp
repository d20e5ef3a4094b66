// What the host side asks of a device, and nothing more: memory, streams,
// events and copies. Two implementations: CUDA's runtime (device_cuda.cpp; in
// tests with another runtime in its place, fake_cuda/) and a double in host
// memory (device_double.cpp), which runs the same kernels as plain C++.
//
// Invariants: memory is allocated and freed while a device starts, loads a
// circuit or stops, never in between; nothing here waits for a whole device
// except `drain`, which only stopping calls; every failure is a cuzk::Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "status.hpp"

struct CUstream_st;

namespace cuzk {

// What the kernels take: a cudaStream_t.
using NativeStream = CUstream_st *;

class DeviceStream {
public:
    virtual ~DeviceStream() = default;
};

class DeviceEvent {
public:
    virtual ~DeviceEvent() = default;
};

class DeviceApi {
public:
    // Enqueues kernels and returns what the launch said: a cudaError_t.
    using Launch = std::function<int(NativeStream)>;

    virtual ~DeviceApi() = default;

    virtual cuzk_device_info info() = 0;

    // Keeps a stack of so many bytes for every thread that can be on the device at
    // once, from the next launch on, rather than from that of a kernel that needs
    // it. Returns what they take together.
    virtual uint64_t keep_stacks(std::size_t each) = 0;

    // Device memory, and host memory that the device copies from and to while
    // the host goes on. Throw CUZK_DEVICE_OUT_OF_MEMORY or CUZK_OUT_OF_MEMORY.
    virtual void *allocate(std::size_t bytes) = 0;
    virtual void release(void *memory) noexcept = 0;
    virtual void *allocate_pinned(std::size_t bytes) = 0;
    virtual void release_pinned(void *memory) noexcept = 0;

    virtual std::unique_ptr<DeviceStream> make_stream() = 0;
    virtual std::unique_ptr<DeviceEvent> make_event() = 0;

    // In the order of the stream. The host memory must be pinned and stay as
    // it is until the stream has passed.
    virtual void upload(DeviceStream &stream, void *to, const void *from, std::size_t bytes) = 0;
    virtual void download(DeviceStream &stream, void *to, const void *from, std::size_t bytes) = 0;
    virtual void copy(DeviceStream &stream, void *to, const void *from, std::size_t bytes) = 0;
    virtual void fill(DeviceStream &stream, void *to, uint8_t byte, std::size_t bytes) = 0;
    // `what` names the kernels in the message of a failure.
    virtual void launch(DeviceStream &stream, const char *what, const Launch &kernels) = 0;

    virtual void record(DeviceEvent &event, DeviceStream &stream) = 0;
    // What follows on `stream` waits for what came before the event's record.
    virtual void stream_waits(DeviceStream &stream, DeviceEvent &event) = 0;
    // The calling thread waits; false if the event did not pass within `limit`.
    virtual bool wait(DeviceEvent &event, std::chrono::milliseconds limit) = 0;
    // Between two events that have passed.
    virtual double elapsed_ms(DeviceEvent &from, DeviceEvent &to) = 0;

    // Waits for everything on the device; false if it did not come to an end
    // within `limit` or failed.
    virtual bool drain(std::chrono::milliseconds limit) noexcept = 0;
};

// Memory that ends with its owner.
class DeviceMemory {
public:
    DeviceMemory() = default;
    DeviceMemory(DeviceApi &api, std::size_t bytes, bool pinned)
        : api_(&api), pinned_(pinned), bytes_(bytes),
          start_(static_cast<uint8_t *>(pinned ? api.allocate_pinned(bytes) : api.allocate(bytes))) {}
    DeviceMemory(DeviceMemory &&other) noexcept { swap(other); }
    DeviceMemory &operator=(DeviceMemory &&other) noexcept {
        swap(other);
        return *this;
    }
    ~DeviceMemory() {
        if (start_ != nullptr) {
            pinned_ ? api_->release_pinned(start_) : api_->release(start_);
        }
    }

    uint8_t *at(std::size_t offset) const { return start_ + offset; }
    std::size_t bytes() const { return bytes_; }
    // For a device that may still write to it: freeing could hang or corrupt.
    void leak() noexcept { start_ = nullptr; }

private:
    void swap(DeviceMemory &other) noexcept {
        std::swap(api_, other.api_);
        std::swap(pinned_, other.pinned_);
        std::swap(bytes_, other.bytes_);
        std::swap(start_, other.start_);
    }

    DeviceApi *api_ = nullptr;
    bool pinned_ = false;
    std::size_t bytes_ = 0;
    uint8_t *start_ = nullptr;
};

#ifdef CUZK_CUDA
namespace card {
uint32_t cuda_device_count();
std::unique_ptr<DeviceApi> open_cuda_device(uint32_t ordinal);
} // namespace card
#endif

#ifdef CUZK_DOUBLE
// The same code on a runtime that stands in for CUDA's.
namespace emulated {
uint32_t cuda_device_count();
std::unique_ptr<DeviceApi> open_cuda_device(uint32_t ordinal);
} // namespace emulated
#endif

} // namespace cuzk
