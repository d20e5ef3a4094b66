// The part of CUDA's runtime that device_cuda.cpp calls, in host memory: for tests
// of that file without a card. It does not test kernels, which run when they are
// launched, nor streams, which never run concurrently (device_double.cpp has both).
//
// Like CUDA's: a thread's last error stays until it is asked for, including "not
// ready". An error of the context comes with each later call. An object of a device
// is refused while another device is selected.
//
// Stricter than CUDA: a thread that has selected no device has none and frees
// nothing. Host memory that is not pinned is not copied from or to.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

enum cudaError_t {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInsufficientDriver,
    cudaErrorNoDevice,
    cudaErrorInvalidDevice,
    cudaErrorSystemDriverMismatch,
    cudaErrorCompatNotSupportedOnDevice,
    cudaErrorNoKernelImageForDevice,
    cudaErrorUnsupportedPtxVersion,
    cudaErrorInvalidPtx,
    cudaErrorInvalidResourceHandle,
    cudaErrorIllegalAddress,
    cudaErrorNotReady,
};

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaDeviceAttr {
    cudaDevAttrClockRate,
    cudaDevAttrMemoryClockRate,
    cudaDevAttrGlobalMemoryBusWidth,
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxThreadsPerMultiProcessor,
};
enum cudaLimit { cudaLimitStackSize };
constexpr unsigned cudaHostAllocPortable = 1;
constexpr unsigned cudaStreamNonBlocking = 1;

struct cudaDeviceProp {
    char name[256];
    int major;
    int minor;
    int multiProcessorCount;
};

struct CUstream_st {
    int device;
};
struct CUevent_st {
    int device;
    // The number of queries that are still answered "not ready".
    std::atomic<int> queries{0};
};
using cudaStream_t = CUstream_st *;
using cudaEvent_t = CUevent_st *;

namespace cuzk::fake_cuda {

constexpr int kDevices = 2;
constexpr std::size_t kMemoryBytes = std::size_t{1} << 26;

struct Runtime {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> live{0}; // allocations, streams and events
    std::atomic<uint64_t> fails_at{0};
    std::atomic<int> error{cudaSuccess};
    std::atomic<bool> is_of_context{false};
    std::atomic<bool> has_driver{true};
    std::atomic<bool> is_lost{false};
    std::atomic<bool> stalls{false}; // rather than fails
    std::atomic<bool> is_stalled{false};
};

// Host memory that is pinned, by its start.
struct Pinned {
    std::mutex mtx;
    std::map<const uint8_t *, std::size_t> bytes;

    void add(const void *memory, std::size_t size) {
        const std::lock_guard<std::mutex> lock(mtx);
        bytes[static_cast<const uint8_t *>(memory)] = size;
    }
    void remove(const void *memory) {
        const std::lock_guard<std::mutex> lock(mtx);
        bytes.erase(static_cast<const uint8_t *>(memory));
    }
    bool holds(const void *memory, std::size_t size) {
        const std::lock_guard<std::mutex> lock(mtx);
        const auto *start = static_cast<const uint8_t *>(memory);
        const auto after = bytes.upper_bound(start);
        if (after == bytes.begin()) {
            return false;
        }
        const auto block = std::prev(after);
        return start + size <= block->first + block->second;
    }
};

inline Runtime runtime;
inline Pinned pinned;
inline thread_local int selected = -1;
inline thread_local cudaError_t last_error = cudaSuccess;

inline cudaError_t left(cudaError_t error) {
    if (error != cudaSuccess) {
        last_error = error;
    }
    return error;
}

// The beginning of each call.
inline cudaError_t call() {
    const uint64_t number = ++runtime.calls;
    const auto error = static_cast<cudaError_t>(runtime.error.load());
    if (number == runtime.fails_at.load() && runtime.stalls.load()) {
        runtime.is_stalled.store(true);
        return cudaSuccess;
    }
    if (number == runtime.fails_at.load()) {
        runtime.is_lost.store(runtime.is_of_context.load());
        return left(error);
    }
    return left(runtime.is_lost.load() ? error : cudaSuccess);
}

inline cudaError_t call_of(int device) {
    const cudaError_t error = call();
    return error != cudaSuccess || device == selected ? error
                                                      : left(cudaErrorInvalidResourceHandle);
}

inline cudaError_t allocate(void **memory, std::size_t bytes) {
    const cudaError_t error = selected < 0 ? left(cudaErrorInvalidDevice) : call();
    if (error != cudaSuccess) {
        return error;
    }
    *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (*memory == nullptr) {
        return left(cudaErrorMemoryAllocation);
    }
    ++runtime.live;
    return cudaSuccess;
}

inline cudaError_t release(void *memory) {
    if (selected < 0) {
        return left(cudaErrorInvalidDevice);
    }
    if (memory != nullptr) {
        std::free(memory);
        --runtime.live;
    }
    return call();
}

// Destroys an object whatever the context's state, but only on its own device.
template <class Owned> cudaError_t destroy(Owned *owned) {
    if (owned->device != selected) {
        return left(cudaErrorInvalidResourceHandle);
    }
    delete owned;
    --runtime.live;
    return call();
}

} // namespace cuzk::fake_cuda

inline const char *cudaGetErrorName(cudaError_t) { return "an error"; }
inline const char *cudaGetErrorString(cudaError_t) { return "as a test asked"; }

inline cudaError_t cudaGetLastError() {
    const cudaError_t error = cuzk::fake_cuda::last_error;
    cuzk::fake_cuda::last_error = cudaSuccess;
    return error;
}

inline cudaError_t cudaGetDeviceCount(int *count) {
    *count = cuzk::fake_cuda::kDevices;
    return cuzk::fake_cuda::call();
}

inline cudaError_t cudaDriverGetVersion(int *version) {
    *version = cuzk::fake_cuda::runtime.has_driver.load() ? 13000 : 0;
    return cudaSuccess;
}

inline cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= cuzk::fake_cuda::kDevices) {
        return cuzk::fake_cuda::left(cudaErrorInvalidDevice);
    }
    cuzk::fake_cuda::selected = device;
    return cuzk::fake_cuda::call();
}

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    *properties = {{}, 9, 0, 1};
    const std::string name = "fake " + std::to_string(device);
    name.copy(properties->name, sizeof(properties->name) - 1);
    return cuzk::fake_cuda::call();
}

inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) {
    *value = 1;
    return cuzk::fake_cuda::call();
}

inline cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) { return cuzk::fake_cuda::call(); }

inline cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total) {
    *free = *total = cuzk::fake_cuda::kMemoryBytes;
    return cuzk::fake_cuda::call();
}

inline cudaError_t cudaMalloc(void **memory, std::size_t bytes) {
    return cuzk::fake_cuda::allocate(memory, bytes);
}
inline cudaError_t cudaHostAlloc(void **memory, std::size_t bytes, unsigned) {
    const cudaError_t error = cuzk::fake_cuda::allocate(memory, bytes);
    if (error == cudaSuccess) {
        cuzk::fake_cuda::pinned.add(*memory, bytes);
    }
    return error;
}
inline cudaError_t cudaFree(void *memory) { return cuzk::fake_cuda::release(memory); }
inline cudaError_t cudaFreeHost(void *memory) {
    if (cuzk::fake_cuda::selected >= 0) {
        cuzk::fake_cuda::pinned.remove(memory);
    }
    return cuzk::fake_cuda::release(memory);
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    const cudaError_t error = cuzk::fake_cuda::call();
    if (error == cudaSuccess) {
        *stream = new CUstream_st{cuzk::fake_cuda::selected};
        ++cuzk::fake_cuda::runtime.live;
    }
    return error;
}

inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return cuzk::fake_cuda::destroy(stream);
}

inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return cuzk::fake_cuda::call_of(stream->device);
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
    const cudaError_t error = cuzk::fake_cuda::call();
    if (error == cudaSuccess) {
        *event = new CUevent_st;
        (*event)->device = cuzk::fake_cuda::selected;
        ++cuzk::fake_cuda::runtime.live;
    }
    return error;
}

inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return cuzk::fake_cuda::destroy(event);
}

inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    if (event->device != stream->device) {
        return cuzk::fake_cuda::left(cudaErrorInvalidResourceHandle);
    }
    event->queries.store(2);
    return cuzk::fake_cuda::call_of(stream->device);
}

inline cudaError_t cudaEventQuery(cudaEvent_t event) {
    const cudaError_t error = cuzk::fake_cuda::call_of(event->device);
    if (error == cudaSuccess && cuzk::fake_cuda::runtime.is_stalled.load()) {
        return cuzk::fake_cuda::left(cudaErrorNotReady);
    }
    if (error != cudaSuccess || event->queries.load() == 0) {
        return error;
    }
    event->queries.fetch_sub(1);
    return cuzk::fake_cuda::left(cudaErrorNotReady);
}

inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t) {
    *ms = 0;
    return cuzk::fake_cuda::call_of(from->device);
}

inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t, unsigned) {
    return cuzk::fake_cuda::call_of(stream->device);
}

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
    const void *host = kind == cudaMemcpyDeviceToHost ? to : from;
    if (kind != cudaMemcpyDeviceToDevice && !cuzk::fake_cuda::pinned.holds(host, bytes)) {
        return cuzk::fake_cuda::left(cudaErrorInvalidValue);
    }
    const cudaError_t error = cuzk::fake_cuda::call_of(stream->device);
    if (error == cudaSuccess) {
        std::memcpy(to, from, bytes);
    }
    return error;
}

inline cudaError_t cudaMemsetAsync(void *to, int byte, std::size_t bytes, cudaStream_t stream) {
    const cudaError_t error = cuzk::fake_cuda::call_of(stream->device);
    if (error == cudaSuccess) {
        std::memset(to, byte, bytes);
    }
    return error;
}
