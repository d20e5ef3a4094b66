// Holds gpu_mtx while a value lives. It uses the C ABI's own functions, which know
// the thread that holds it.
#pragma once

#include "resources.hpp"
#include "status.hpp"

namespace cuzk {

class GpuRegion {
public:
    GpuRegion(gpu_resources &resources, const cuzk_checkpoint &checkpoint)
        : resources_(resources) {
        const cuzk_status status = cuzk_gpu_lock(&resources, checkpoint);
        if (status.code != CUZK_OK) {
            throw Error(status.code, status.message);
        }
    }
    ~GpuRegion() { cuzk_gpu_unlock(&resources_); }

    GpuRegion(const GpuRegion &) = delete;
    GpuRegion &operator=(const GpuRegion &) = delete;

private:
    gpu_resources &resources_;
};

} // namespace cuzk
