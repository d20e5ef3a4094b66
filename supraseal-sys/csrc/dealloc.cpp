#include "dealloc.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/resource.h>
#endif

#include "../wrapper.h"

namespace cuzk {
namespace {

// Leaked, like everything that the background thread uses: it may be freeing while
// static destructors run.
std::mutex &dealloc_mtx = *new std::mutex();

// A few values of each worker. They are large, so more of them would hold memory
// that the next proof needs.
constexpr std::size_t kQueueMax = 64;

// A tenth of the weight of other threads. It frees in the time that they leave, and
// about a GiB a second even if they leave none. Nobody waits for the memory freed
// here, so with less weight it would pile up.
constexpr int32_t kNice = 10;

// True if each value is freed on a thread of its own.
std::atomic<bool> &unbounded = *new std::atomic<bool>(false);

class Queue {
public:
    // Frees the garbage at once on a new thread, or here if there is none.
    void free_unbounded(std::unique_ptr<Garbage> garbage) noexcept;
    // Takes the garbage, or leaves it when the caller must free it.
    void push(std::unique_ptr<Garbage> &garbage) noexcept;
    // Frees it on this thread when it is its turn.
    void free_now(std::unique_ptr<Garbage> garbage) noexcept;
    void flush();
    cuzk_dealloc_stats stats();

private:
    void start();
    void work();
    void unbounded_is_over() noexcept;

    std::mutex mtx_; // never held while freeing
    std::condition_variable changed_;
    std::deque<std::unique_ptr<Garbage>> waiting_;
    uint64_t queued_ever_ = 0;
    uint64_t freed_of_queued_ = 0;
    uint64_t freeing_ = 0;
    uint64_t freed_ = 0;
    uint64_t unbounded_ = 0; // values that are being freed on their own threads
    bool started_ = false;
};

Queue &queue = *new Queue();

void Queue::start() {
    if (!started_) {
        std::thread([this] { work(); }).detach();
        started_ = true;
    }
}

void Queue::push(std::unique_ptr<Garbage> &garbage) noexcept {
    try {
        std::lock_guard<std::mutex> lock(mtx_);
        start();
        if (waiting_.size() < kQueueMax) {
            waiting_.emplace_back();
            waiting_.back() = std::move(garbage);
            ++queued_ever_;
        }
    } catch (...) {
        // There is no thread or no memory: the garbage still belongs to the caller.
    }
    changed_.notify_all();
}

void Queue::free_unbounded(std::unique_ptr<Garbage> garbage) noexcept {
    {
        std::lock_guard<std::mutex> lock(mtx_);
        ++unbounded_;
        ++freeing_;
    }
    try {
        std::thread([this, freed = std::move(garbage)]() mutable {
            freed.reset();
            unbounded_is_over();
        }).detach();
    } catch (...) {
        // There is no thread, and the garbage was freed here, with the closure.
        unbounded_is_over();
    }
}

void Queue::unbounded_is_over() noexcept {
    {
        std::lock_guard<std::mutex> lock(mtx_);
        --unbounded_;
        --freeing_;
        ++freed_;
    }
    changed_.notify_all();
}

void Queue::free_now(std::unique_ptr<Garbage> garbage) noexcept {
    std::lock_guard<std::mutex> one_at_a_time(dealloc_mtx);
    {
        std::lock_guard<std::mutex> lock(mtx_);
        ++freeing_;
    }
    garbage.reset();
    std::lock_guard<std::mutex> lock(mtx_);
    --freeing_;
    ++freed_;
}

void Queue::work() {
    cuzk_dealloc_give_way(kNice);
    for (;;) {
        std::unique_ptr<Garbage> garbage;
        {
            std::unique_lock<std::mutex> lock(mtx_);
            changed_.wait(lock, [&] { return !waiting_.empty(); });
            garbage = std::move(waiting_.front());
            waiting_.pop_front();
        }
        free_now(std::move(garbage));
        {
            std::lock_guard<std::mutex> lock(mtx_);
            ++freed_of_queued_;
        }
        changed_.notify_all();
    }
}

void Queue::flush() {
    std::unique_lock<std::mutex> lock(mtx_);
    // The queue is first in, first out, so a count tells which values are freed.
    const uint64_t queued_before = queued_ever_;
    changed_.wait(lock, [&] { return freed_of_queued_ >= queued_before && unbounded_ == 0; });
}

cuzk_dealloc_stats Queue::stats() {
    std::lock_guard<std::mutex> lock(mtx_);
    return {waiting_.size(), freeing_, freed_};
}

} // namespace

void dealloc_async(std::unique_ptr<Garbage> garbage) noexcept {
    if (unbounded.load(std::memory_order_relaxed)) {
        queue.free_unbounded(std::move(garbage));
        return;
    }
    queue.push(garbage);
    if (garbage != nullptr) {
        queue.free_now(std::move(garbage));
    }
}

} // namespace cuzk

extern "C" void cuzk_dealloc_give_way(int32_t nice) noexcept {
#ifdef __linux__
    // On Linux this value belongs to the thread. Beyond the largest value the
    // system takes that one.
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + nice);
#else
    (void)nice;
#endif
}

extern "C" void cuzk_dealloc_set_unbounded(bool unbounded) noexcept {
    cuzk::unbounded.store(unbounded, std::memory_order_relaxed);
}

extern "C" void cuzk_dealloc_flush(void) noexcept {
    cuzk::queue.flush();
}

extern "C" void cuzk_dealloc_trim_heap(void) noexcept {
#ifdef __GLIBC__
    std::lock_guard<std::mutex> one_at_a_time(cuzk::dealloc_mtx);
    malloc_trim(0);
#endif
}

extern "C" cuzk_dealloc_stats cuzk_dealloc_get_stats(void) noexcept {
    return cuzk::queue.stats();
}
