// What tests need of the runtime that stands in for CUDA's.
#include "../prover.hpp"
#include "../status.hpp"
#include "cuda_runtime_api.h"

extern "C" cuzk_status cuzk_test_cuda_open(uint32_t ordinal, const cuzk_device_options *options,
                                           gpu_resources *resources, cuzk_device **out) noexcept {
    return cuzk::guard([&] {
        *out = cuzk::emulated::open_device(cuzk::emulated::open_cuda_device(ordinal), *options,
                                           *resources)
                   .release();
    });
}

extern "C" void cuzk_test_cuda_fail(uint64_t call, uint32_t of_context) noexcept {
    cuzk::fake_cuda::Runtime &runtime = cuzk::fake_cuda::runtime;
    runtime.is_lost.store(false);
    runtime.is_of_context.store(of_context != 0);
    runtime.error.store(of_context != 0 ? cudaErrorIllegalAddress : cudaErrorMemoryAllocation);
    runtime.fails_at.store(call == 0 ? 0 : runtime.calls.load() + call);
}

extern "C" cuzk_test_cuda_seen cuzk_test_cuda_get_seen(void) noexcept {
    const cuzk::fake_cuda::Runtime &runtime = cuzk::fake_cuda::runtime;
    return {runtime.calls.load(), runtime.live.load(), cuzk::fake_cuda::last_error};
}
