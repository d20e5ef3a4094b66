// The operations that the host side needs of a device: memory, streams, events and
// copies. There are two implementations. One is CUDA's runtime (device_cuda.cpp;
// tests put another runtime in its place, fake_cuda/). The other is a double in
// host memory (device_double.cpp), which runs the same kernels as plain C++.
//
// Invariants: memory is allocated and freed while a device starts, loads a circuit
// or stops, never in between. Only `drain` waits for a whole device, and only
// stopping calls it. Every failure is a cuzk::Error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "status.hpp"

struct CUstream_st;

namespace cuzk {

// The stream that kernels take: a cudaStream_t.
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
    // Enqueues kernels and returns the result of the launch: a cudaError_t.
    using Launch = std::function<int(NativeStream)>;

    virtual ~DeviceApi() = default;

    virtual cuzk_device_info info() = 0;

    // Keeps a stack of so many bytes for each thread that can be on the device at
    // once. It is kept from the next launch on, rather than from that of a kernel
    // that needs it. Returns the bytes of all stacks together.
    virtual uint64_t keep_stacks(std::size_t each) = 0;

    // Allocate device memory, and host memory that the device copies from and to
    // while the host goes on. Throw CUZK_DEVICE_OUT_OF_MEMORY or
    // CUZK_OUT_OF_MEMORY.
    virtual void *allocate(std::size_t bytes) = 0;
    virtual void release(void *memory) noexcept = 0;
    virtual void *allocate_pinned(std::size_t bytes) = 0;
    virtual void release_pinned(void *memory) noexcept = 0;

    virtual std::unique_ptr<DeviceStream> make_stream() = 0;
    virtual std::unique_ptr<DeviceEvent> make_event() = 0;

    // Copy in the order of the stream. The host memory must be pinned, and must
    // stay unchanged until the stream has passed.
    virtual void upload(DeviceStream &stream, void *to, const void *from, std::size_t bytes) = 0;
    virtual void download(DeviceStream &stream, void *to, const void *from, std::size_t bytes) = 0;
    virtual void copy(DeviceStream &stream, void *to, const void *from, std::size_t bytes) = 0;
    virtual void fill(DeviceStream &stream, void *to, uint8_t byte, std::size_t bytes) = 0;
    // `what` names the kernels in the message of a failure.
    virtual void launch(DeviceStream &stream, const char *what, const Launch &kernels) = 0;

    virtual void record(DeviceEvent &event, DeviceStream &stream) = 0;
    // Later work on `stream` waits for all work before the event's record.
    virtual void stream_waits(DeviceStream &stream, DeviceEvent &event) = 0;
    // Makes the calling thread wait; returns false if the event did not pass within
    // `limit`.
    virtual bool wait(DeviceEvent &event, std::chrono::milliseconds limit) = 0;
    // Returns the time between two events that have passed.
    virtual double elapsed_ms(DeviceEvent &from, DeviceEvent &to) = 0;

    // Waits for all work on the device. Returns false if it did not end within
    // `limit`, or failed.
    virtual bool drain(std::chrono::milliseconds limit) noexcept = 0;
};

// Memory that is freed with its owner.
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
    // For a device that may still write to the memory: freeing it could hang or
    // corrupt.
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
// The same code on a runtime that takes the place of CUDA's.
namespace emulated {
uint32_t cuda_device_count();
std::unique_ptr<DeviceApi> open_cuda_device(uint32_t ordinal);
} // namespace emulated
#endif

} // namespace cuzk
