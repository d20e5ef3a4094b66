// The streams and events of the double: a stream is a thread, and an event is the
// record that the thread made last. device_double.hpp says how they differ from a
// card's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device_api.hpp"
#include "device_double.hpp"

namespace cuzk {

class DoubleStream;

// One record of an event, under the machine's lock.
struct DoubleRecord {
    bool passed = true;
    std::chrono::steady_clock::time_point when;
};

// The state that the streams and events of one device share.
struct DoubleMachine {
    std::mutex mtx;
    std::condition_variable changed;
    bool stop = false;    // streams end without doing what is left
    bool stalled = false; // no stream goes on
    bool kernel_fails = false;
    uint32_t running = 0; // kernels and copies, without the lock
    std::string lost;     // why the device is lost; empty while it is not
    std::string failed;   // a kernel's error, reported once
    uint64_t slow_stream = 0; // by number; 0 for none
    std::vector<const DoubleStream *> streams;
    std::vector<const DoubleRecord *> awaited; // by threads of the host
};

// As with CUDA, a wait for an event is a wait for its latest record.
class DoubleEvent final : public DeviceEvent {
public:
    std::shared_ptr<DoubleRecord> latest = std::make_shared<DoubleRecord>();
};

class DoubleStream final : public DeviceStream {
public:
    using Work = std::function<void(std::unique_lock<std::mutex> &)>;

    // Its number is from 1.
    DoubleStream(std::shared_ptr<DoubleMachine> machine, DoubleSeen &seen);
    ~DoubleStream() override;

    // `kernels` counts copies and records, too. Throws if more would be under way
    // than a driver takes.
    void enqueue(Work work, uint32_t kernels);

    // Waits inside work until the record has passed. The end of the device ends the
    // wait, too.
    void wait(std::unique_lock<std::mutex> &lock, const DoubleRecord &record);

private:
    struct Item {
        Work work;
        uint32_t kernels;
    };

    // Returns true if this stream has work that may be done.
    bool has_more() const;
    // Returns true if it is this stream's turn. The turn of a slow stream comes
    // only when the host waits and no other stream has work that may be done.
    bool may_begin() const;
    void run();

    std::shared_ptr<DoubleMachine> machine_;
    DoubleSeen &seen_;
    std::deque<Item> queue_;
    uint32_t kernels_ = 0; // in the queue, or running
    bool ending_ = false;
    bool is_slow_ = false;
    bool is_working_ = false;
    const DoubleRecord *awaited_ = nullptr;
    std::thread thread_;
};

} // namespace cuzk
