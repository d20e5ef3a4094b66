// A device as CUDA's runtime shows it. Ordinals are CUDA's, after
// CUDA_VISIBLE_DEVICES. The C++ compiler compiles this file: with the feature
// `cuda`, and for tests with another runtime in CUDA's place. It contains no
// kernel.
//
// Invariants: each call selects its device first, including one that frees. The
// reason is that any thread may call, and one that has selected no device would
// start another one. Streams do not synchronise with the default stream. An error
// from which the context does not recover is distinguished from one from which it
// does.
#include "device_api.hpp"

#include "variant.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>

namespace cuzk {
namespace {

int32_t code_of(cudaError_t error) {
    switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
        return CUZK_NO_DEVICE;
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        return CUZK_DRIVER_TOO_OLD;
    case cudaErrorMemoryAllocation:
        return CUZK_DEVICE_OUT_OF_MEMORY;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
        return CUZK_NO_KERNEL_IMAGE;
    default:
        return CUZK_DEVICE_ERROR;
    }
}

const char *advice(int32_t code) {
    switch (code) {
    case CUZK_NO_DEVICE:
        return "; see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case CUZK_DRIVER_TOO_OLD:
        return "; install or update the NVIDIA driver";
    case CUZK_NO_KERNEL_IMAGE:
        return "; build with SUPRASEAL_CUDA_ARCH naming this card";
    default:
        return "";
    }
}

// If there is no driver, the runtime calls it too old.
bool has_driver() {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version != 0;
}

[[noreturn]] void fail(int32_t code, cudaError_t error, const char *what) {
    if (error == cudaErrorInsufficientDriver && !has_driver()) {
        throw Error(CUZK_NO_DEVICE, std::string(what) + ": there is no NVIDIA driver");
    }
    throw Error(code, std::string(what) + ": " + cudaGetErrorString(error) + " (" +
                          cudaGetErrorName(error) + ")" + advice(code));
}

// The runtime keeps a thread's last error, including "not ready", until it is asked
// for it, and a launch reports nothing else. An error that the context keeps comes
// again.
void forget_error() noexcept { cudaGetLastError(); }

class CudaStream final : public DeviceStream {
public:
    explicit CudaStream(int ordinal) : ordinal_(ordinal) {}
    ~CudaStream() override {
        if (raw != nullptr) {
            cudaSetDevice(ordinal_);
            cudaStreamDestroy(raw);
            forget_error();
        }
    }
    cudaStream_t raw = nullptr;

private:
    const int ordinal_;
};

class CudaEvent final : public DeviceEvent {
public:
    explicit CudaEvent(int ordinal) : ordinal_(ordinal) {}
    ~CudaEvent() override {
        if (raw != nullptr) {
            cudaSetDevice(ordinal_);
            cudaEventDestroy(raw);
            forget_error();
        }
    }
    cudaEvent_t raw = nullptr;

private:
    const int ordinal_;
};

cudaStream_t raw(DeviceStream &stream) { return static_cast<CudaStream &>(stream).raw; }
cudaEvent_t raw(DeviceEvent &event) { return static_cast<CudaEvent &>(event).raw; }

class CudaDevice final : public DeviceApi {
public:
    explicit CudaDevice(uint32_t ordinal)
        : ordinal_(static_cast<int>(ordinal)), probe_(ordinal_) {
        use();
        // Creates the context, which is where an old driver shows.
        check(cudaFree(nullptr), "starting the device");
        check(cudaStreamCreateWithFlags(&probe_.raw, cudaStreamNonBlocking), "creating a stream");
    }

    cuzk_device_info info() override {
        use();
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, ordinal_), "asking for the device's properties");
        std::size_t free = 0;
        std::size_t total = 0;
        check(cudaMemGetInfo(&free, &total), "asking for the device's memory");
        cuzk_device_info info{};
        const std::string name(properties.name);
        name.copy(info.name, sizeof(info.name) - 1);
        info.memory_bytes = total;
        info.free_bytes = free;
        info.compute_major = static_cast<uint32_t>(properties.major);
        info.compute_minor = static_cast<uint32_t>(properties.minor);
        info.multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
        info.clock_khz = attribute(cudaDevAttrClockRate);
        // Each of the bus's lines carries a bit twice per clock.
        info.memory_bandwidth = uint64_t{attribute(cudaDevAttrMemoryClockRate)} * 1000 * 2 *
                                attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
        return info;
    }

    uint64_t keep_stacks(std::size_t each) override {
        use();
        check(cudaDeviceSetLimit(cudaLimitStackSize, each), "setting the size of stacks");
        return uint64_t{attribute(cudaDevAttrMultiProcessorCount)} *
               attribute(cudaDevAttrMaxThreadsPerMultiProcessor) * each;
    }

    void *allocate(std::size_t bytes) override {
        use();
        void *memory = nullptr;
        check(cudaMalloc(&memory, bytes),
              ("allocating " + std::to_string(bytes) + " bytes on the device").c_str());
        return memory;
    }

    void release(void *memory) noexcept override {
        cudaSetDevice(ordinal_);
        cudaFree(memory);
        forget_error();
    }

    void *allocate_pinned(std::size_t bytes) override {
        use();
        void *memory = nullptr;
        const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
        if (error == cudaErrorMemoryAllocation) {
            forget_error();
            fail(CUZK_OUT_OF_MEMORY, error,
                 ("pinning " + std::to_string(bytes) + " bytes of host memory").c_str());
        }
        check(error, "pinning host memory");
        return memory;
    }

    void release_pinned(void *memory) noexcept override {
        cudaSetDevice(ordinal_);
        cudaFreeHost(memory);
        forget_error();
    }

    std::unique_ptr<DeviceStream> make_stream() override {
        use();
        auto stream = std::make_unique<CudaStream>(ordinal_);
        check(cudaStreamCreateWithFlags(&stream->raw, cudaStreamNonBlocking), "creating a stream");
        return stream;
    }

    std::unique_ptr<DeviceEvent> make_event() override {
        use();
        auto event = std::make_unique<CudaEvent>(ordinal_);
        check(cudaEventCreate(&event->raw), "creating an event");
        return event;
    }

    void upload(DeviceStream &stream, void *to, const void *from, std::size_t bytes) override {
        transfer(stream, to, from, bytes, cudaMemcpyHostToDevice, "copying to the device");
    }

    void download(DeviceStream &stream, void *to, const void *from, std::size_t bytes) override {
        transfer(stream, to, from, bytes, cudaMemcpyDeviceToHost, "copying from the device");
    }

    void copy(DeviceStream &stream, void *to, const void *from, std::size_t bytes) override {
        transfer(stream, to, from, bytes, cudaMemcpyDeviceToDevice, "copying on the device");
    }

    void fill(DeviceStream &stream, void *to, uint8_t byte, std::size_t bytes) override {
        use();
        check(cudaMemsetAsync(to, byte, bytes, raw(stream)), "filling memory on the device");
    }

    void launch(DeviceStream &stream, const char *what, const Launch &kernels) override {
        use();
        // An error that other calls left in this thread would be taken for the
        // launch's.
        forget_error();
        check(static_cast<cudaError_t>(kernels(raw(stream))), what);
    }

    void record(DeviceEvent &event, DeviceStream &stream) override {
        use();
        check(cudaEventRecord(raw(event), raw(stream)), "recording an event");
    }

    void stream_waits(DeviceStream &stream, DeviceEvent &event) override {
        use();
        check(cudaStreamWaitEvent(raw(stream), raw(event), 0), "waiting for an event");
    }

    bool wait(DeviceEvent &event, std::chrono::milliseconds limit) override {
        use();
        return poll([&] { return cudaEventQuery(raw(event)); }, limit);
    }

    double elapsed_ms(DeviceEvent &from, DeviceEvent &to) override {
        use();
        float ms = 0;
        check(cudaEventElapsedTime(&ms, raw(from), raw(to)), "reading the time between events");
        return ms;
    }

    bool drain(std::chrono::milliseconds limit) noexcept override {
        // This does not use cudaDeviceSynchronize, which has no limit. An event in
        // the legacy stream would not see non-blocking streams. So the owner's
        // streams are waited for by their events, and this only asks if the context
        // still answers.
        try {
            use();
            return poll([&] { return cudaStreamQuery(probe_.raw); }, limit);
        } catch (...) {
            return false;
        }
    }

private:
    uint32_t attribute(cudaDeviceAttr attribute) {
        int value = 0;
        check(cudaDeviceGetAttribute(&value, attribute, ordinal_),
              "asking for the device's attributes");
        return static_cast<uint32_t>(std::max(value, 0));
    }

    void use() { check(cudaSetDevice(ordinal_), "selecting the device"); }

    void transfer(DeviceStream &stream, void *to, const void *from, std::size_t bytes,
                  cudaMemcpyKind kind, const char *what) {
        use();
        check(cudaMemcpyAsync(to, from, bytes, kind, raw(stream)), what);
    }

    template <class Query> bool poll(const Query &query, std::chrono::milliseconds limit) {
        const auto start = std::chrono::steady_clock::now();
        for (std::chrono::microseconds pause(5);;) {
            const cudaError_t error = query();
            if (error != cudaErrorNotReady) {
                check(error, "work on the device");
                return true;
            }
            forget_error();
            if (std::chrono::steady_clock::now() - start > limit) {
                return false;
            }
            std::this_thread::sleep_for(pause);
            pause = std::min(pause * 2, std::chrono::microseconds(200));
        }
    }

    void check(cudaError_t error, const char *what) {
        if (error == cudaSuccess) {
            return;
        }
        forget_error();
        const cudaError_t after = probe_.raw == nullptr ? cudaSuccess : cudaStreamQuery(probe_.raw);
        const bool lost = after != cudaSuccess && after != cudaErrorNotReady;
        fail(lost ? CUZK_DEVICE_LOST : code_of(error), error, what);
    }

    int ordinal_;
    CudaStream probe_;
};

} // namespace

namespace CUZK_VARIANT {

uint32_t cuda_device_count() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice) {
        cudaGetLastError();
        return 0;
    }
    if (error != cudaSuccess) {
        cudaGetLastError();
        fail(code_of(error), error, "counting CUDA devices");
    }
    return static_cast<uint32_t>(count);
}

std::unique_ptr<DeviceApi> open_cuda_device(uint32_t ordinal) {
    return std::make_unique<CudaDevice>(ordinal);
}

} // namespace CUZK_VARIANT
} // namespace cuzk
