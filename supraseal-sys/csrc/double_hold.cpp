// The making of a circuit that stands still until a test releases it.
#include "device_double.hpp"

#include <utility>

namespace cuzk {
namespace {

class HoldingDevice final : public cuzk_device {
public:
    HoldingDevice(std::unique_ptr<cuzk_device> device, std::shared_ptr<DoubleControls> controls)
        : device_(std::move(device)), controls_(std::move(controls)) {}

    cuzk_device_info info() override { return device_->info(); }
    std::unique_ptr<cuzk_circuit> make_circuit(const cuzk_circuit_data &data) override {
        controls_->making.pass();
        return device_->make_circuit(data);
    }

private:
    std::unique_ptr<cuzk_device> device_;
    std::shared_ptr<DoubleControls> controls_;
};

} // namespace

void DoubleHold::hold_next() {
    const std::lock_guard<std::mutex> lock(mtx_);
    state_ = State::asked;
}

void DoubleHold::release() {
    const std::lock_guard<std::mutex> lock(mtx_);
    state_ = State::open;
    changed_.notify_all();
}

void DoubleHold::pass() {
    std::unique_lock<std::mutex> lock(mtx_);
    if (state_ == State::asked) {
        state_ = State::held;
        changed_.wait(lock, [&] { return state_ == State::open; });
    }
}

uint64_t DoubleHold::held() {
    const std::lock_guard<std::mutex> lock(mtx_);
    return state_ == State::held ? 1 : 0;
}

std::unique_ptr<cuzk_device> holding(std::unique_ptr<cuzk_device> device,
                                     std::shared_ptr<DoubleControls> controls) {
    return std::make_unique<HoldingDevice>(std::move(device), std::move(controls));
}

} // namespace cuzk
