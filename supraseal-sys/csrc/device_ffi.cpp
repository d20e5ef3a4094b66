// The device prover's part of the C ABI: it chooses the implementation that a call
// goes to, and puts the guard around it.
#include <chrono>
#include <string>

#include "plan.hpp"
#include "prover.hpp"
#include "status.hpp"
#ifdef CUZK_DOUBLE
#include "device_double.hpp"
#endif

namespace {

#ifndef CUZK_CUDA
[[noreturn]] void no_cuda() {
    throw cuzk::Error(CUZK_NO_CUDA, "this program was built without the feature `cuda`");
}
#endif

} // namespace

extern "C" cuzk_status cuzk_device_count([[maybe_unused]] uint32_t *out) noexcept {
    return cuzk::guard([&] {
#ifdef CUZK_CUDA
        *out = cuzk::card::cuda_device_count();
#else
        no_cuda();
#endif
    });
}

extern "C" cuzk_status cuzk_device_open([[maybe_unused]] uint32_t ordinal,
                                        [[maybe_unused]] const cuzk_device_options *options,
                                        [[maybe_unused]] gpu_resources *resources,
                                        [[maybe_unused]] cuzk_device **out) noexcept {
    return cuzk::guard([&] {
#ifdef CUZK_CUDA
        *out = cuzk::card::open_device(cuzk::card::open_cuda_device(ordinal), *options, *resources)
                   .release();
#else
        no_cuda();
#endif
    });
}

extern "C" void cuzk_device_close(cuzk_device *device) noexcept {
    delete device;
}

extern "C" cuzk_status cuzk_device_get_info(cuzk_device *device, cuzk_device_info *out) noexcept {
    return cuzk::guard([&] { *out = device->info(); });
}

extern "C" cuzk_status cuzk_device_make_plan([[maybe_unused]] const cuzk_circuit_shape *shape,
                                             [[maybe_unused]] const cuzk_device_options *options,
                                             [[maybe_unused]] cuzk_device_plan *out) noexcept {
    return cuzk::guard([&] {
#if defined(CUZK_CUDA)
        *out = cuzk::card::plan_summary(*shape, *options);
#elif defined(CUZK_DOUBLE)
        *out = cuzk::emulated::plan_summary(*shape, *options);
#else
        no_cuda();
#endif
    });
}

extern "C" cuzk_status cuzk_circuit_create(cuzk_device *device, const cuzk_circuit_data *data,
                                           cuzk_circuit **out) noexcept {
    return cuzk::guard([&] { *out = device->make_circuit(*data).release(); });
}

extern "C" void cuzk_circuit_destroy(cuzk_circuit *circuit) noexcept {
    delete circuit;
}

extern "C" cuzk_device_plan cuzk_circuit_plan(const cuzk_circuit *circuit) noexcept {
    return circuit->plan();
}

extern "C" cuzk_status cuzk_prove_stage(cuzk_circuit *circuit, const cuzk_witness *witness,
                                        cuzk_checkpoint checkpoint, cuzk_proof **out) noexcept {
    return cuzk::guard([&] { *out = circuit->stage(*witness, checkpoint).release(); });
}

extern "C" uint64_t cuzk_clock_ns(void) noexcept {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

extern "C" cuzk_status cuzk_prove_run(cuzk_proof *proof, uint32_t b_g1, uint32_t host_b_g2,
                                      const cuzk_intermediates *intermediates,
                                      cuzk_checkpoint checkpoint,
                                      cuzk_proof_figures *figures) noexcept {
    return cuzk::guard(
        [&] { proof->run(b_g1 != 0, host_b_g2 != 0, intermediates, checkpoint, *figures); });
}

extern "C" cuzk_status cuzk_prove_finish(cuzk_proof *proof, cuzk_checkpoint checkpoint,
                                         cuzk_sums *sums, cuzk_proof_figures *figures) noexcept {
    return cuzk::guard([&] { proof->finish(checkpoint, *sums, *figures); });
}

extern "C" void cuzk_proof_destroy(cuzk_proof *proof) noexcept {
    delete proof;
}

#ifdef CUZK_DOUBLE

struct cuzk_test_controls {
    std::shared_ptr<cuzk::DoubleControls> shared = std::make_shared<cuzk::DoubleControls>();
};

extern "C" cuzk_status cuzk_test_controls_create(cuzk_test_controls **out) noexcept {
    return cuzk::guard([&] { *out = new cuzk_test_controls(); });
}

extern "C" void cuzk_test_controls_destroy(cuzk_test_controls *controls) noexcept {
    delete controls;
}

extern "C" void cuzk_test_fault(cuzk_test_controls *controls, uint64_t call,
                                int32_t kind) noexcept {
    cuzk::DoubleControls &shared = *controls->shared;
    shared.fault.kind.store(kind);
    shared.fault.call.store(call == 0 ? 0 : shared.seen.calls.load() + call);
}

extern "C" void cuzk_test_stacks(cuzk_test_controls *controls, uint64_t bytes) noexcept {
    controls->shared->stacks_bytes.store(bytes);
}

extern "C" void cuzk_test_slow_stream(cuzk_test_controls *controls, uint64_t number) noexcept {
    controls->shared->slow_stream.store(number);
}

extern "C" void cuzk_test_hold_making(cuzk_test_controls *controls) noexcept {
    controls->shared->making.hold_next();
}

extern "C" void cuzk_test_release_making(cuzk_test_controls *controls) noexcept {
    controls->shared->making.release();
}

extern "C" cuzk_test_device_seen cuzk_test_device_get_seen(cuzk_test_controls *controls) noexcept {
    const cuzk::DoubleSeen &seen = controls->shared->seen;
    return {seen.calls.load(),     seen.allocations.load(),    seen.live_allocations.load(),
            seen.bytes.load(),     seen.bytes_max.load(),      seen.uploaded_bytes.load(),
            seen.drains.load(),    controls->shared->making.held(), seen.stalled_wait_ms_max.load(),
            seen.streams.load(),   seen.under_way.load()};
}

extern "C" cuzk_status cuzk_test_device_open(uint64_t memory_bytes,
                                             const cuzk_device_options *options,
                                             gpu_resources *resources,
                                             cuzk_test_controls *controls,
                                             cuzk_device **out) noexcept {
    return cuzk::guard([&] {
        auto device = cuzk::emulated::open_device(
            cuzk::open_double(memory_bytes, controls->shared), *options, *resources);
        *out = cuzk::holding(std::move(device), controls->shared).release();
    });
}

#endif
