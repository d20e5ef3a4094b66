// The interface of the device prover that the C ABI holds. It does not depend on
// the way in which the kernels are compiled. The one implementation (device.cpp,
// device_circuit.cpp, device_proof.cpp, device_msms.cpp) is compiled for a card and as
// plain C++.
#pragma once

#include <memory>

#include "../wrapper.h"
#include "device_api.hpp"
#include "resources.hpp"

struct cuzk_proof {
    virtual ~cuzk_proof() = default;
    // `intermediates` may be null.
    virtual void run(bool b_g1, bool host_b_g2, const cuzk_intermediates *intermediates,
                     const cuzk_checkpoint &checkpoint, cuzk_proof_figures &figures) = 0;
    virtual void finish(const cuzk_checkpoint &checkpoint, cuzk_sums &sums,
                        cuzk_proof_figures &figures) = 0;
};

struct cuzk_circuit {
    virtual ~cuzk_circuit() = default;
    virtual const cuzk_device_plan &plan() const = 0;
    virtual std::unique_ptr<cuzk_proof> stage(const cuzk_witness &witness,
                                              const cuzk_checkpoint &checkpoint) = 0;
};

struct cuzk_device {
    virtual ~cuzk_device() = default;
    virtual cuzk_device_info info() = 0;
    virtual std::unique_ptr<cuzk_circuit> make_circuit(const cuzk_circuit_data &data) = 0;
};

namespace cuzk {

#ifdef CUZK_CUDA
namespace card {
std::unique_ptr<cuzk_device> open_device(std::unique_ptr<DeviceApi> api,
                                         const cuzk_device_options &options,
                                         gpu_resources &resources);
cuzk_device_plan plan_summary(const cuzk_circuit_shape &shape, const cuzk_device_options &options);
} // namespace card
#endif

#ifdef CUZK_DOUBLE
namespace emulated {
std::unique_ptr<cuzk_device> open_device(std::unique_ptr<DeviceApi> api,
                                         const cuzk_device_options &options,
                                         gpu_resources &resources);
cuzk_device_plan plan_summary(const cuzk_circuit_shape &shape, const cuzk_device_options &options);
} // namespace emulated
#endif

} // namespace cuzk
