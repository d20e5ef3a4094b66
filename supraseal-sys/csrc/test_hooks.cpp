// Access for tests to the inside: pools of a chosen size, and failures on demand.
// Compiled only with the feature `test-hooks`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "b_g2_msm.hpp"
#include "copy.hpp"
#include "dealloc.hpp"
#include "pool.hpp"
#include "resources.hpp"
#include "status.hpp"

namespace {

void throw_what(int32_t what) {
    switch (what) {
    case CUZK_TEST_THROW_NOTHING:
        return;
    case CUZK_TEST_THROW_RUNTIME_ERROR:
        throw std::runtime_error("thrown by a test");
    case CUZK_TEST_THROW_BAD_ALLOC:
        throw std::bad_alloc();
    case CUZK_TEST_THROW_INT:
        throw 7;
    default:
        throw cuzk::Error(CUZK_INVALID_ARGUMENT, "throw_what: got " + std::to_string(what));
    }
}

thread_local bool is_giver = false;

// The counts of the destructors of one test's values.
struct Seen {
    std::atomic<uint32_t> now{0};
    std::atomic<uint32_t> max{0};
    std::atomic<uint32_t> by_givers{0};
};

class Slow final : public cuzk::Garbage {
public:
    Slow(Seen &seen, std::chrono::microseconds free_time) : seen_(seen), free_time_(free_time) {}

    ~Slow() override {
        const uint32_t now = seen_.now.fetch_add(1) + 1;
        uint32_t max = seen_.max.load();
        while (max < now && !seen_.max.compare_exchange_weak(max, now)) {
        }
        std::this_thread::sleep_for(free_time_);
        seen_.by_givers.fetch_add(is_giver ? 1 : 0);
        seen_.now.fetch_sub(1);
    }

private:
    Seen &seen_;
    std::chrono::microseconds free_time_;
};

// A value that another language frees.
class Foreign final : public cuzk::Garbage {
public:
    Foreign(void (*drop)(void *), void *value) : drop_(drop), value_(value) {}

    ~Foreign() override { drop_(value_); }

private:
    void (*drop_)(void *);
    void *value_;
};

// One caller of a shared pool. Every third caller throws on its first task and
// expects to get that exception back; the others count their tasks.
void call_pool(cuzk::Pool &pool, uint32_t caller, uint32_t tasks, std::atomic<uint64_t> &counted,
               std::atomic<uint32_t> &failures) {
    const bool throws = caller % 3 == 0;
    try {
        pool.for_each(tasks, [&](std::size_t task, std::size_t worker) {
            if (worker >= pool.size()) {
                failures.fetch_add(1);
            }
            if (throws && task == 0) {
                throw static_cast<int>(caller);
            }
            if (!throws) {
                counted.fetch_add(1);
            }
        });
        failures.fetch_add(throws ? 1 : 0);
    } catch (int thrown) {
        failures.fetch_add(throws && thrown == static_cast<int>(caller) ? 0 : 1);
    }
}

} // namespace

struct cuzk_test_held_pool {
    cuzk_test_held_pool() {
        cuzk::Pool &pool = cuzk::shared_pool();
        holder_ = std::thread([this, &pool] {
            pool.for_each(pool.size(), [this](std::size_t, std::size_t) { stand_still(); });
        });
        std::unique_lock<std::mutex> lock(mtx_);
        changed_.wait(lock, [&] { return still_ == pool.size(); });
    }
    ~cuzk_test_held_pool() {
        {
            std::lock_guard<std::mutex> lock(mtx_);
            released_ = true;
        }
        changed_.notify_all();
        holder_.join();
    }

private:
    void stand_still() {
        std::unique_lock<std::mutex> lock(mtx_);
        ++still_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return released_; });
    }

    std::mutex mtx_;
    std::condition_variable changed_;
    std::size_t still_ = 0;
    bool released_ = false;
    std::thread holder_;
};

extern "C" cuzk_status cuzk_test_pool_hold(cuzk_test_held_pool **out) noexcept {
    return cuzk::guard([&] { *out = new cuzk_test_held_pool(); });
}

extern "C" void cuzk_test_pool_release(cuzk_test_held_pool *held) noexcept {
    delete held;
}

extern "C" cuzk_status cuzk_test_dealloc_value(void (*drop)(void *value), void *value) noexcept {
    return cuzk::guard([&] { cuzk::dealloc_async(std::make_unique<Foreign>(drop, value)); });
}

extern "C" cuzk_status cuzk_test_b_g2_msm(gpu_resources *resources, uint32_t threads,
                                          int32_t what, const blst_p2_affine *bases,
                                          size_t num_bases, const blst_fr *scalars,
                                          size_t num_scalars, blst_p2 *out) noexcept {
    return cuzk::guard([&] {
        cuzk::Pool pool(threads);
        *out = cuzk::b_g2_msm(pool, resources->membw_throttle,
                              {bases, scalars, std::min(num_bases, num_scalars)},
                              [what] { throw_what(what); });
    });
}

extern "C" cuzk_status cuzk_test_pool(uint32_t threads, uint32_t callers, uint32_t rounds,
                                      uint32_t tasks, uint64_t *counted) noexcept {
    return cuzk::guard([&] {
        cuzk::Pool pool(threads);
        std::atomic<uint64_t> total{0};
        std::atomic<uint32_t> failures{0};
        std::vector<std::thread> running;
        for (uint32_t caller = 0; caller < callers; ++caller) {
            running.emplace_back([&, caller] {
                for (uint32_t round = 0; round < rounds; ++round) {
                    call_pool(pool, caller, tasks, total, failures);
                }
            });
        }
        for (std::thread &thread : running) {
            thread.join();
        }
        if (failures.load() != 0) {
            throw std::runtime_error("an exception was lost, invented or misdelivered");
        }
        *counted = total.load();
    });
}

extern "C" cuzk_status cuzk_test_pool_at_once(uint32_t tasks, uint32_t *before) noexcept {
    return cuzk::guard([&] {
        cuzk::Pool pool(1);
        std::atomic<uint32_t> ended{0};
        std::atomic<uint32_t> seen{UINT32_MAX};
        std::thread urgent;
        pool.for_each(tasks, [&](std::size_t task, std::size_t) {
            if (task == 0) {
                urgent = std::thread([&] {
                    pool.for_each_at_once(
                        1, [&](std::size_t, std::size_t) { seen.store(ended.load()); });
                });
            }
            if (seen.load() == UINT32_MAX) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            ended.fetch_add(1);
        });
        urgent.join();
        *before = seen.load();
    });
}

extern "C" cuzk_status cuzk_test_copy(uint8_t *to, const uint8_t *from, size_t bytes,
                                      cuzk_checkpoint checkpoint) noexcept {
    return cuzk::guard([&] { cuzk::copy_at_once(to, from, bytes, checkpoint); });
}

extern "C" cuzk_status cuzk_test_dealloc(uint32_t values, uint32_t free_us,
                                         cuzk_test_dealloc_seen *out) noexcept {
    return cuzk::guard([&] {
        Seen seen;
        std::vector<std::thread> givers;
        for (uint32_t giver = 0; giver < 4; ++giver) {
            givers.emplace_back([&, giver] {
                is_giver = true;
                for (uint32_t value = giver; value < values; value += 4) {
                    cuzk::dealloc_async(
                        std::make_unique<Slow>(seen, std::chrono::microseconds(free_us)));
                }
            });
        }
        for (std::thread &thread : givers) {
            thread.join();
        }
        cuzk_dealloc_flush();
        *out = {seen.max.load(), seen.by_givers.load()};
    });
}
