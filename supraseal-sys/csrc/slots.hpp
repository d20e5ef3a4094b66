// Who may use the memory of a device's workers, and which circuit it is laid
// out for. Not gpu_mtx, which guards the device region.
//
// Invariants: callers are served in the order they came, so none starves; a
// worker's memory is given to one proof at a time; the circuit changes only
// while every worker is free. A holder needs nothing that a waiter has, so
// every wait ends.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace cuzk {

class Slots {
public:
    explicit Slots(std::size_t workers) : busy_(workers, false) {}

    // Waits for a turn and a free worker. Before the first of another circuit
    // calls change(), alone; if that throws, no circuit is there afterwards.
    std::size_t acquire(const void *circuit, const std::function<void()> &change) {
        std::unique_lock<std::mutex> lock(mtx_);
        const uint64_t turn = next_++;
        changed_.wait(lock, [&] {
            return turn == serving_ && (circuit == circuit_ ? any_free() : all_free());
        });
        // The next in line is served when this is over, however it ends.
        struct Served {
            Slots &slots;
            std::unique_lock<std::mutex> &lock;
            ~Served() {
                if (!lock.owns_lock()) {
                    lock.lock();
                }
                ++slots.serving_;
                slots.changed_.notify_all();
            }
        } served{*this, lock};
        if (circuit != circuit_) {
            circuit_ = nullptr;
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

    // For a circuit that ends: another at its address must not be taken for it.
    void forget(const void *circuit) noexcept {
        const std::lock_guard<std::mutex> lock(mtx_);
        if (circuit_ == circuit) {
            circuit_ = nullptr;
        }
    }

private:
    bool any_free() const { return std::find(busy_.begin(), busy_.end(), false) != busy_.end(); }
    bool all_free() const { return std::find(busy_.begin(), busy_.end(), true) == busy_.end(); }

    std::mutex mtx_;
    std::condition_variable changed_;
    uint64_t next_ = 0;
    uint64_t serving_ = 0;
    const void *circuit_ = nullptr;
    std::vector<bool> busy_;
};

} // namespace cuzk
