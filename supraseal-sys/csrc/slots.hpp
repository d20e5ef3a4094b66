// The right to use the memory of a device's workers, and the circuit that this
// memory is laid out for. gpu_mtx, which guards the device region, is separate.
//
// Invariants: callers are served in the order in which they came, except those that
// stop waiting, so none starves. A worker's memory is given to one proof at a time.
// The circuit changes only while all workers are free. A holder needs nothing that
// a waiting caller has, so each wait ends.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "checkpoint.hpp"

namespace cuzk {

class Slots {
public:
    explicit Slots(std::size_t workers) : busy_(workers, false) {}

    // Waits for a turn and a free worker, unless the checkpoint stops it. Before
    // the first proof of another circuit, and when it is asked to, it calls
    // change() while no worker is busy. If change() throws, no circuit is there
    // afterwards.
    std::size_t acquire(const void *circuit, const cuzk_checkpoint &checkpoint,
                        const std::function<void()> &change) {
        std::unique_lock<std::mutex> lock(mtx_);
        const Turn turn(*this, lock);
        const auto has_come = [&] {
            return turn.is_next() && (is_there(circuit) ? any_free() : all_free());
        };
        while (!changed_.wait_for(lock, kCheckpointEvery, has_come)) {
            lock.unlock();
            pass(checkpoint);
            lock.lock();
        }
        if (!is_there(circuit)) {
            circuit_ = nullptr;
            must_change_ = false;
            lock.unlock();
            change();
            lock.lock();
            circuit_ = circuit;
        }
        const auto free = std::find(busy_.begin(), busy_.end(), false);
        *free = true;
        return static_cast<std::size_t>(free - busy_.begin());
    }

    void release(std::size_t worker) noexcept {
        const std::lock_guard<std::mutex> lock(mtx_);
        busy_[worker] = false;
        changed_.notify_all();
    }

    // Calls change() if no worker is busy, no caller waits for one, and none can
    // begin to wait in the meantime. Otherwise, or if change() returns true, the
    // next acquire calls its own change().
    void change_if_idle(const std::function<bool()> &change) {
        const std::lock_guard<std::mutex> lock(mtx_);
        if (!line_.empty() || !all_free() || change()) {
            must_change_ = true;
        }
    }

    // For a circuit that ends: another circuit at its address must not be taken for
    // it.
    void forget(const void *circuit) noexcept {
        const std::lock_guard<std::mutex> lock(mtx_);
        if (circuit_ == circuit) {
            circuit_ = nullptr;
        }
    }

private:
    // A place in the line, which is left when this is destroyed.
    class Turn {
    public:
        Turn(Slots &slots, std::unique_lock<std::mutex> &lock)
            : slots_(slots), lock_(lock), number_(slots.next_++) {
            slots_.line_.push_back(number_);
        }
        ~Turn() {
            if (!lock_.owns_lock()) {
                lock_.lock();
            }
            slots_.line_.erase(std::find(slots_.line_.begin(), slots_.line_.end(), number_));
            slots_.changed_.notify_all();
        }
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;

        bool is_next() const { return slots_.line_.front() == number_; }

    private:
        Slots &slots_;
        std::unique_lock<std::mutex> &lock_;
        const uint64_t number_;
    };

    bool is_there(const void *circuit) const { return circuit == circuit_ && !must_change_; }
    bool any_free() const { return std::find(busy_.begin(), busy_.end(), false) != busy_.end(); }
    bool all_free() const { return std::find(busy_.begin(), busy_.end(), true) == busy_.end(); }

    std::mutex mtx_;
    std::condition_variable changed_;
    uint64_t next_ = 0;
    std::deque<uint64_t> line_; // those that wait or are being served, in order
    const void *circuit_ = nullptr;
    bool must_change_ = false; // before anybody is served
    std::vector<bool> busy_;
};

} // namespace cuzk
