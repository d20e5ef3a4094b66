// The threads of the CPU work that accompanies a device: `gpu_threads` of them, for
// all devices and callers together. It is not a general executor: it has no futures
// and no nesting. A caller waits without working, so that gpu_threads is the number
// of cores that this side can occupy. The only exception is work that a device
// stands still for: its caller takes part in it, however busy the threads are.
//
// Invariants: a worker runs one task at a time, so scratch that is indexed by
// worker needs no lock. An exception in a task reaches the caller of for_each and
// leaves the pool unchanged.
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

    // Runs body(task, worker) for all tasks in [0, tasks), with worker in [0,
    // size()), and returns when all have ended. After the first exception no
    // further task of this call starts, and the exception is rethrown here. Any
    // number of threads may call it at once; calls are served in order. A call from
    // inside a task throws, because it could only deadlock.
    void for_each(std::size_t tasks, const Task &body);
    // Does the same before all other calls, and also on the calling thread, as
    // worker size(). For short tasks that must not wait for long ones.
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
