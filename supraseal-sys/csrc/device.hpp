// The device and its circuits, and the streams and memory that they lend to a
// proof.
//
// Invariants:
// - The piece buffers, and the part of the frame that belongs to no worker, are
//   used only by the holder of gpu_mtx, on the streams `compute`, `side` and
//   `transfer`. The lock is released only when these have passed, or the device was
//   given up.
// - A worker's memory is released only when all that was sent to it on `witnesses`
//   has arrived, too.
// - Nothing is allocated on the device after a circuit's arrays are there.
// - There are four streams however many workers there are, so that each has a
//   hardware queue of its own. Streams that share a queue wait for each other, and
//   a driver has eight queues unless it is configured otherwise.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "checkpoint.hpp"
#include "device_api.hpp"
#include "pinned.hpp"
#include "prover.hpp"
#include "residency.hpp"
#include "resources.hpp"
#include "slots.hpp"
#include "variant.hpp"

namespace cuzk::CUZK_VARIANT {

// One device with its streams and all its memory.
class Device final : public cuzk_device {
public:
    Device(std::unique_ptr<DeviceApi> api, const cuzk_device_options &options,
           gpu_resources &resources);
    ~Device() override;

    cuzk_device_info info() override { return api_->info(); }
    std::unique_ptr<cuzk_circuit> make_circuit(const cuzk_circuit_data &data) override;

    // Throws if the device was given up.
    void check_alive() const;
    bool is_given_up() const { return lost_.load(); }
    // Returns true if it was given up before it ended its work. Then it may still
    // write.
    bool may_be_at_work() const { return stalled_.load(); }
    // After a failure: waits until the device's own streams, or a worker's, have
    // passed, or gives the device up. Afterwards the memory that they use may be
    // used again. Call settle() only under gpu_mtx.
    void settle() noexcept;
    void settle_worker(std::size_t worker) noexcept;
    // Throws CUZK_DEVICE_STALLED after the stall limit. The device may still be at
    // work then, so its memory must not be freed or reused. Throws CUZK_STOPPED if
    // the checkpoint says so; the caller must then stop the work that is under way.
    void wait(DeviceEvent &event, const cuzk_checkpoint &checkpoint = {});

    cuzk_device_options options;
    gpu_resources &resources;
    Slots slots;
    Residency residency;
    std::unique_ptr<DeviceApi> api_;
    DeviceMemory arena;
    Pinned pinned;

    std::unique_ptr<DeviceStream> compute;
    std::unique_ptr<DeviceStream> side; // of the sums beside the main ones
    std::unique_ptr<DeviceStream> transfer;
    // The stream of all workers' witnesses, which are sent without the lock, and of
    // the word that stops kernels.
    std::unique_ptr<DeviceStream> witnesses;
    std::vector<std::unique_ptr<DeviceEvent>> uploaded; // by worker
    std::unique_ptr<DeviceEvent> begun;
    std::unique_ptr<DeviceEvent> quotient_done;
    std::unique_ptr<DeviceEvent> side_done;
    std::unique_ptr<DeviceEvent> sums_done;
    std::unique_ptr<DeviceEvent> settled;
    // The marks of the MSMs' streams (pace.hpp).
    std::unique_ptr<DeviceEvent> compute_marks[2];
    std::unique_ptr<DeviceEvent> side_marks[2];
    // By piece buffer: its points have arrived; its points are decoded.
    std::unique_ptr<DeviceEvent> piece_there[2];
    std::unique_ptr<DeviceEvent> piece_free[2];

private:
    void take_memory();
    // Runs `work` on `compute`, with memory of the caller's, and waits for it.
    template <class Work> void at_start(DeviceMemory &memory, const Work &work);
    void load_kernels();
    void self_test();
    void wait_for(DeviceEvent &event, std::chrono::milliseconds limit,
                  const cuzk_checkpoint &checkpoint);
    void settle(DeviceStream &stream, DeviceEvent &event) noexcept;

    std::atomic<bool> lost_{false};
    std::atomic<bool> stalled_{false};
    // True if a wait reached the stall limit, and the work under way is not settled
    // yet.
    std::atomic<bool> is_overdue_{false};
};

} // namespace cuzk::CUZK_VARIANT
