// The device and its circuits, and what they lend to a proof.
//
// Invariants: what of the frame is no worker's and the piece buffers are touched
// only by the holder of gpu_mtx, on the streams `compute`, `side` and `transfer`, and the
// lock is released only when these have passed, or the device was given up; a worker's
// memory is released only when what was sent to it on `witnesses` has come, too. Nothing
// is allocated on the device after a circuit's arrays are there. There are four streams
// however many workers there are, so that each has a hardware queue for itself: streams
// that share one wait for each other, and a driver has eight unless it is told otherwise.
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
    // Whether it was given up before it ended its work: then it may still write.
    bool may_be_at_work() const { return stalled_.load(); }
    // After a failure: waits until the device's own streams have passed, or a
    // worker's, or gives the device up, so that what they use may be used
    // again. The first only under gpu_mtx.
    void settle() noexcept;
    void settle_worker(std::size_t worker) noexcept;
    // CUZK_DEVICE_STALLED after the stall limit: the device may still be at work
    // then, so its memory must not be freed or reused. CUZK_STOPPED if the
    // checkpoint says so; the caller has to stop what is under way.
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
    // Of all workers' witnesses, which come without the lock, and of what stops kernels.
    std::unique_ptr<DeviceStream> witnesses;
    std::vector<std::unique_ptr<DeviceEvent>> uploaded; // by worker
    std::unique_ptr<DeviceEvent> begun;
    std::unique_ptr<DeviceEvent> quotient_done;
    std::unique_ptr<DeviceEvent> side_done;
    std::unique_ptr<DeviceEvent> sums_done;
    std::unique_ptr<DeviceEvent> settled;
    // Of the sums' streams (pace.hpp).
    std::unique_ptr<DeviceEvent> compute_marks[2];
    std::unique_ptr<DeviceEvent> side_marks[2];
    // By piece buffer: its points are there; its points are decoded.
    std::unique_ptr<DeviceEvent> piece_there[2];
    std::unique_ptr<DeviceEvent> piece_free[2];

private:
    void take_memory();
    // Does this on `compute`, with memory of the caller's, and waits for it.
    template <class Work> void at_start(DeviceMemory &memory, const Work &work);
    void load_kernels();
    void self_test();
    void wait_for(DeviceEvent &event, std::chrono::milliseconds limit,
                  const cuzk_checkpoint &checkpoint);
    void settle(DeviceStream &stream, DeviceEvent &event) noexcept;

    std::atomic<bool> lost_{false};
    std::atomic<bool> stalled_{false};
    // Whether a wait came to the stall limit, and what is under way is not settled yet.
    std::atomic<bool> is_overdue_{false};
};

} // namespace cuzk::CUZK_VARIANT
