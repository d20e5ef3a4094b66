#include "resources.hpp"

#include "checkpoint.hpp"
#include "status.hpp"

extern "C" cuzk_status cuzk_gpu_resources_create(const gpu_resources *beside,
                                                 gpu_resources **out) noexcept {
    return cuzk::guard([&] { *out = new gpu_resources(beside); });
}

extern "C" void cuzk_gpu_resources_destroy(gpu_resources *resources) noexcept {
    const bool held =
        resources != nullptr && resources->gpu_owner.load() != std::thread::id();
    if (!held) {
        delete resources;
    }
}

extern "C" int32_t *cuzk_gpu_resources_throttle(gpu_resources *resources) noexcept {
    return reinterpret_cast<int32_t *>(&resources->membw_throttle);
}

extern "C" cuzk_status cuzk_gpu_lock(gpu_resources *resources,
                                     cuzk_checkpoint checkpoint) noexcept {
    return cuzk::guard([&] {
        // Only this thread can store its own id, so a match is not a race.
        if (resources->gpu_owner.load() == std::this_thread::get_id()) {
            throw cuzk::Error(CUZK_GPU_LOCK_HELD,
                              "this thread already holds the lock of the device: release the "
                              "first guard before locking again");
        }
        std::unique_lock<std::mutex> waiting(resources->waiting_mtx);
        auto &line = resources->line;
        const auto place = line.insert(line.end(), std::this_thread::get_id());
        const auto is_ours = [&] {
            return line.begin() == place && resources->gpu_mtx.try_lock();
        };
        try {
            while (!resources->freed.wait_for(waiting, cuzk::kCheckpointEvery, is_ours)) {
                waiting.unlock();
                cuzk::pass(checkpoint);
                waiting.lock();
            }
        } catch (...) {
            // It stopped while it did not hold the mutex. The next thread has its turn.
            waiting.lock();
            line.erase(place);
            resources->freed.notify_all();
            throw;
        }
        line.erase(place);
        resources->gpu_owner.store(std::this_thread::get_id());
    });
}

extern "C" void cuzk_gpu_unlock(gpu_resources *resources) noexcept {
    const std::lock_guard<std::mutex> waiting(resources->waiting_mtx);
    resources->gpu_owner.store(std::thread::id());
    resources->gpu_mtx.unlock();
    resources->freed.notify_all();
}
