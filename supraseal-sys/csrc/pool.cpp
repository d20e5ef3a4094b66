#include "pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>

#ifdef __linux__
#include <pthread.h>
#endif

#include "status.hpp"

namespace cuzk {
namespace {

// The pool whose worker this thread is.
thread_local const Pool *worker_of = nullptr;

void name_this_thread(std::size_t worker) {
#ifdef __linux__
    // The kernel keeps 15 bytes; "cuzk-gpu-4095" fits.
    const std::string name = "cuzk-gpu-" + std::to_string(worker);
    pthread_setname_np(pthread_self(), name.c_str());
#else
    (void)worker;
#endif
}

} // namespace

// One call of for_each, on its caller's stack, guarded by the pool's mutex.
struct Pool::Job {
    const Task &body;
    std::size_t tasks;
    std::size_t next = 0;
    std::size_t running = 0;
    std::exception_ptr error;
    std::condition_variable done;

    Job(const Task &body_, std::size_t tasks_) : body(body_), tasks(tasks_) {}

    bool ended() const { return next == tasks && running == 0; }
};

Pool::Pool(std::size_t threads) {
    if (threads == 0 || threads > CUZK_THREADS_MAX) {
        throw Error(CUZK_INVALID_ARGUMENT,
                    "gpu_threads: expected 1 to " + std::to_string(CUZK_THREADS_MAX) + ", got " +
                        std::to_string(threads));
    }
    workers_.reserve(threads);
    try {
        for (std::size_t worker = 0; worker < threads; ++worker) {
            workers_.emplace_back([this, worker] { work(worker); });
        }
    } catch (...) {
        // Destroying a joinable std::thread ends the process.
        stop_and_join();
        throw;
    }
}

Pool::~Pool() {
    stop_and_join();
}

void Pool::stop_and_join() noexcept {
    {
        std::lock_guard<std::mutex> lock(mtx_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread &worker : workers_) {
        worker.join();
    }
}

void Pool::for_each(std::size_t tasks, const Task &body) {
    call(tasks, body, false);
}

void Pool::for_each_at_once(std::size_t tasks, const Task &body) {
    call(tasks, body, true);
}

void Pool::call(std::size_t tasks, const Task &body, bool at_once) {
    if (worker_of == this) {
        throw Error(CUZK_INVALID_ARGUMENT, "a task of the pool may not wait for the pool");
    }
    if (tasks == 0) {
        return;
    }
    Job job(body, tasks);
    {
        std::unique_lock<std::mutex> lock(mtx_);
        jobs_.insert(at_once ? jobs_.begin() : jobs_.end(), &job);
        wake_.notify_all();
        while (at_once && job.next != job.tasks) {
            run_one(lock, job, size());
        }
        job.done.wait(lock, [&] { return job.ended(); });
    }
    if (job.error) {
        std::rethrow_exception(job.error);
    }
}

void Pool::work(std::size_t worker) {
    worker_of = this;
    name_this_thread(worker);
    std::unique_lock<std::mutex> lock(mtx_);
    for (;;) {
        wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
        if (jobs_.empty()) {
            return;
        }
        run_one(lock, *jobs_.front(), worker);
    }
}

// Takes one task of a job that has one, runs it unlocked, and records its end.
void Pool::run_one(std::unique_lock<std::mutex> &lock, Job &job, std::size_t worker) {
    const std::size_t task = job.next++;
    ++job.running;
    if (job.next == job.tasks) {
        remove(job);
    }

    lock.unlock();
    std::exception_ptr error;
    try {
        job.body(task, worker);
    } catch (...) {
        error = std::current_exception();
    }
    lock.lock();

    --job.running;
    if (error && !job.error) {
        job.error = std::move(error);
        if (job.next != job.tasks) {
            job.next = job.tasks;
            remove(job);
        }
    }
    if (job.ended()) {
        // Under the lock: the caller destroys the job as soon as it has the lock.
        job.done.notify_one();
    }
}

void Pool::remove(const Job &job) {
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
}

namespace {

// Written once and leaked. A worker or a caller may still be in the pool while
// static destructors run, and the end of the process ends idle threads anyway.
std::atomic<Pool *> the_pool{nullptr};

} // namespace

Pool &shared_pool() {
    Pool *pool = the_pool.load(std::memory_order_acquire);
    if (pool == nullptr) {
        throw Error(CUZK_POOL_NOT_STARTED, "gpu_threads was not set before the pool was used");
    }
    return *pool;
}

} // namespace cuzk

extern "C" cuzk_status cuzk_gpu_threads_set(uint32_t threads) noexcept {
    return cuzk::guard([&] {
        static std::mutex start_mtx;
        std::lock_guard<std::mutex> lock(start_mtx);
        const uint32_t started = cuzk_gpu_threads();
        if (started == 0) {
            auto pool = std::make_unique<cuzk::Pool>(threads);
            cuzk::the_pool.store(pool.release(), std::memory_order_release);
        } else if (started != threads) {
            throw cuzk::Error(CUZK_POOL_SIZE_FIXED,
                              "gpu_threads: the pool already runs with " + std::to_string(started) +
                                  " threads, got " + std::to_string(threads) +
                                  "; it is set once, before the first use");
        }
    });
}

extern "C" uint32_t cuzk_gpu_threads(void) noexcept {
    const cuzk::Pool *pool = cuzk::the_pool.load(std::memory_order_acquire);
    return pool == nullptr ? 0 : static_cast<uint32_t>(pool->size());
}
