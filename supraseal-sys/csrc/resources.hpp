// gpu_resources: the lock and the throttle that the workers of one device share. It
// holds no device memory. The pool is shared by all devices.
//
// Invariants: one thread locks and unlocks gpu_mtx, and gpu_owner names it in
// between. Both happen under waiting_mtx, so that a waiting thread learns that the
// lock is free. Threads get the lock in the order in which they came.
// membw_throttle is the number of bandwidth-bound sections that run now, so each
// raise is matched by one lowering on every exit. It is shared by devices that were
// created beside each other, and lives as long as the last of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "../wrapper.h"

struct gpu_resources {
    explicit gpu_resources(const gpu_resources *beside)
        : throttle_count(beside == nullptr ? std::make_shared<std::atomic<int>>(0)
                                           : beside->throttle_count) {}

    std::mutex gpu_mtx;
    // A thread that waits for gpu_mtx waits on this, so that it can ask a
    // checkpoint in between. (A timed mutex would do, but ThreadSanitizer does not
    // know its timed lock.)
    std::mutex waiting_mtx;
    std::condition_variable freed;
    // The threads that wait, the first to come in front. Only that one takes the lock, so
    // that a worker that comes back at once does not pass one that waits.
    std::list<std::thread::id> line;
    const std::shared_ptr<std::atomic<int>> throttle_count;
    std::atomic<int> &membw_throttle = *throttle_count;
    std::atomic<std::thread::id> gpu_owner{};
};

// Rust reads and writes the throttle as an AtomicI32 at the same address.
static_assert(sizeof(std::atomic<int>) == CUZK_THROTTLE_BYTES, "Rust sees an AtomicI32");
static_assert(alignof(std::atomic<int>) == CUZK_THROTTLE_ALIGN, "Rust sees an AtomicI32");
static_assert(std::atomic<int>::is_always_lock_free, "a hidden lock would not be Rust's");

namespace cuzk {

// Raises a throttle by one for as long as it lives.
class ThrottleRaise {
public:
    explicit ThrottleRaise(std::atomic<int> &throttle) noexcept : throttle_(throttle) {
        throttle_.fetch_add(1, std::memory_order_acq_rel);
    }
    ~ThrottleRaise() { throttle_.fetch_sub(1, std::memory_order_acq_rel); }

    ThrottleRaise(const ThrottleRaise &) = delete;
    ThrottleRaise &operator=(const ThrottleRaise &) = delete;

private:
    std::atomic<int> &throttle_;
};

} // namespace cuzk
