#include "double_stream.hpp"

#include <algorithm>
#include <utility>

namespace cuzk {
namespace {

// The most kernels that a stream takes before they pass.
constexpr uint32_t kKernelsMax = 1000;

} // namespace

DoubleStream::DoubleStream(std::shared_ptr<DoubleMachine> machine, DoubleSeen &seen)
    : machine_(std::move(machine)), seen_(seen) {
    const uint64_t number = ++seen_.streams;
    const std::lock_guard<std::mutex> lock(machine_->mtx);
    is_slow_ = number == machine_->slow_stream;
    machine_->streams.push_back(this);
    thread_ = std::thread([this] { run(); });
}

DoubleStream::~DoubleStream() {
    {
        const std::lock_guard<std::mutex> lock(machine_->mtx);
        ending_ = true;
        machine_->changed.notify_all();
    }
    thread_.join();
    const std::lock_guard<std::mutex> lock(machine_->mtx);
    auto &streams = machine_->streams;
    streams.erase(std::find(streams.begin(), streams.end(), this));
}

void DoubleStream::enqueue(Work work, uint32_t kernels) {
    const std::lock_guard<std::mutex> lock(machine_->mtx);
    if (kernels_ + kernels > kKernelsMax) {
        throw Error(CUZK_DEVICE_ERROR, "more is enqueued than a driver takes without a wait");
    }
    kernels_ += kernels;
    queue_.push_back({std::move(work), kernels});
    seen_.under_way += 1;
    machine_->changed.notify_all();
}

void DoubleStream::wait(std::unique_lock<std::mutex> &lock, const DoubleRecord &record) {
    awaited_ = &record;
    machine_->changed.notify_all();
    machine_->changed.wait(
        lock, [&] { return machine_->stop || machine_->stalled || record.passed; });
    awaited_ = nullptr;
}

bool DoubleStream::has_more() const {
    return is_working_ ? awaited_ == nullptr || awaited_->passed : !queue_.empty();
}

bool DoubleStream::may_begin() const {
    if (!is_slow_ || ending_) {
        return true;
    }
    const auto &streams = machine_->streams;
    const auto &awaited = machine_->awaited;
    return std::any_of(awaited.begin(), awaited.end(),
                       [](const DoubleRecord *record) { return !record->passed; }) &&
           std::none_of(streams.begin(), streams.end(), [&](const DoubleStream *stream) {
               return stream != this && stream->has_more();
           });
}

void DoubleStream::run() {
    std::unique_lock<std::mutex> lock(machine_->mtx);
    for (;;) {
        machine_->changed.wait(lock, [&] {
            return machine_->stop ||
                   (!machine_->stalled && !queue_.empty() && may_begin()) ||
                   (ending_ && (queue_.empty() || machine_->stalled));
        });
        if (machine_->stop || machine_->stalled || queue_.empty()) {
            return;
        }
        const Item item = std::move(queue_.front());
        queue_.pop_front();
        is_working_ = true;
        item.work(lock);
        is_working_ = false;
        seen_.under_way -= 1;
        kernels_ -= item.kernels;
        machine_->changed.notify_all();
    }
}

} // namespace cuzk
