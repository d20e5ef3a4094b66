// The access of tests to the runtime that takes the place of CUDA's.
#include "../prover.hpp"
#include "../status.hpp"
#include "cuda_runtime_api.h"

namespace {

cudaError_t error_of(int32_t error) {
    switch (error) {
    case CUZK_TEST_CUDA_NO_MEMORY:
        return cudaErrorMemoryAllocation;
    case CUZK_TEST_CUDA_CONTEXT:
        return cudaErrorIllegalAddress;
    case CUZK_TEST_CUDA_NO_DEVICE:
        return cudaErrorNoDevice;
    case CUZK_TEST_CUDA_NO_DRIVER:
    case CUZK_TEST_CUDA_OLD_DRIVER:
        return cudaErrorInsufficientDriver;
    case CUZK_TEST_CUDA_OTHER_DRIVER:
        return cudaErrorSystemDriverMismatch;
    case CUZK_TEST_CUDA_NOT_COMPATIBLE:
        return cudaErrorCompatNotSupportedOnDevice;
    case CUZK_TEST_CUDA_NO_IMAGE:
        return cudaErrorNoKernelImageForDevice;
    case CUZK_TEST_CUDA_NEW_PTX:
        return cudaErrorUnsupportedPtxVersion;
    case CUZK_TEST_CUDA_BAD_PTX:
        return cudaErrorInvalidPtx;
    default:
        return cudaErrorInvalidValue;
    }
}

} // namespace

extern "C" cuzk_status cuzk_test_cuda_count(uint32_t *out) noexcept {
    return cuzk::guard([&] { *out = cuzk::emulated::cuda_device_count(); });
}

extern "C" cuzk_status cuzk_test_cuda_open(uint32_t ordinal, const cuzk_device_options *options,
                                           gpu_resources *resources, cuzk_device **out) noexcept {
    return cuzk::guard([&] {
        *out = cuzk::emulated::open_device(cuzk::emulated::open_cuda_device(ordinal), *options,
                                           *resources)
                   .release();
    });
}

extern "C" void cuzk_test_cuda_fail(uint64_t call, int32_t error) noexcept {
    cuzk::fake_cuda::Runtime &runtime = cuzk::fake_cuda::runtime;
    runtime.is_lost.store(false);
    if (runtime.is_stalled.exchange(false)) {
        runtime.live.store(0);
    }
    runtime.stalls.store(error == CUZK_TEST_CUDA_STALL);
    runtime.is_of_context.store(error == CUZK_TEST_CUDA_CONTEXT);
    runtime.has_driver.store(error != CUZK_TEST_CUDA_NO_DRIVER);
    runtime.error.store(error_of(error));
    runtime.fails_at.store(call == 0 ? 0 : runtime.calls.load() + call);
}

extern "C" cuzk_test_cuda_seen cuzk_test_cuda_get_seen(void) noexcept {
    const cuzk::fake_cuda::Runtime &runtime = cuzk::fake_cuda::runtime;
    return {runtime.calls.load(), runtime.live.load(), cuzk::fake_cuda::last_error};
}
