// The threads of the CPU work that accompanies a device: `gpu_threads` of them,
// all devices and callers together. Not a general executor: no futures, no
// nesting, and a caller waits without working, so that gpu_threads is the whole
// number of cores this side can occupy. Only what a device stands still for is
// done by its caller, too, however busy the threads are.
//
// Invariants: a worker runs one task at a time, so worker-indexed scratch
// needs no lock; an exception in a task reaches the caller of for_each and
// leaves the pool as it was.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cuzk {

class Pool {
public:
    using Task = std::function<void(std::size_t task, std::size_t worker)>;

    // Starts `threads` workers (1 to CUZK_THREADS_MAX).
    explicit Pool(std::size_t threads);
    // Joins the workers. No for_each may be running.
    ~Pool();

    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    std::size_t size() const noexcept { return workers_.size(); }

    // Runs body(task, worker) for every task in [0, tasks), worker in
    // [0, size()), and returns when all have ended. After the first exception
    // no further task of this call starts; the exception is rethrown here.
    // Any number of threads may call it at once; calls are served in order.
    // From inside a task it throws, because it could only deadlock.
    void for_each(std::size_t tasks, const Task &body);
    // The same before all other calls, and on the calling thread, too, as
    // worker size(): for short tasks that must not wait for long ones.
    void for_each_at_once(std::size_t tasks, const Task &body);

private:
    struct Job;

    void stop_and_join() noexcept;
    void work(std::size_t worker);
    void call(std::size_t tasks, const Task &body, bool at_once);
    void run_one(std::unique_lock<std::mutex> &lock, Job &job, std::size_t worker);
    void remove(const Job &job);

    std::mutex mtx_;
    std::condition_variable wake_;
    std::deque<Job *> jobs_; // those with tasks not yet handed out
    bool stop_ = false;
    std::vector<std::thread> workers_;
};

// The process-wide pool; throws CUZK_POOL_NOT_STARTED before its size is set.
Pool &shared_pool();

} // namespace cuzk
