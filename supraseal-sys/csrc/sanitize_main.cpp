// Drives the C++ side from several threads, for sanitize.sh. The Rust tests check
// the results. Here only the sanitizers judge, and each status must be the expected
// one.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../wrapper.h"
#include "sanitize.hpp"

namespace {

struct Input {
    std::vector<blst_p2_affine> bases;
    std::vector<blst_fr> scalars;
};

// Makes multiples of the generator, with an infinity now and then. A third of the
// scalars is zero, and a third is one.
Input make_input(size_t len) {
    Input input{std::vector<blst_p2_affine>(len), std::vector<blst_fr>(len)};
    const blst_p2_affine *generator = blst_p2_affine_generator();
    blst_p2 point;
    blst_p2_from_affine(&point, generator);
    for (size_t i = 0; i < len; ++i) {
        const uint64_t full[4] = {i * 0x9e3779b97f4a7c15, i * i, ~i, i};
        const uint64_t bit[4] = {i % 3, 0, 0, 0};
        blst_fr_from_uint64(&input.scalars[i], i % 3 == 2 ? full : bit);
        if (i % 50 == 49) {
            continue;
        }
        blst_p2_to_affine(&input.bases[i], &point);
        blst_p2_add_or_double_affine(&point, &point, generator);
    }
    return input;
}

cuzk_status msm(gpu_resources *resources, const Input &input, size_t len) {
    blst_p2 out;
    return cuzk_b_g2_msm(resources, input.bases.data(), len, input.scalars.data(), len, &out);
}

void work(gpu_resources *resources, const Input &input) {
    for (size_t len : {0, 1, 31, 32, 100, 4000}) {
        expect(msm(resources, input, len), CUZK_OK, "b_g2_msm");
        expect(cuzk_gpu_lock(resources, {}), CUZK_OK, "lock");
        expect(cuzk_gpu_lock(resources, {}), CUZK_GPU_LOCK_HELD, "lock again");
        cuzk_gpu_unlock(resources);
        (void)cuzk_dealloc_get_stats();
    }
    blst_p2 out;
    const int32_t codes[] = {CUZK_OK, CUZK_EXCEPTION, CUZK_OUT_OF_MEMORY, CUZK_UNKNOWN_EXCEPTION};
    for (int32_t what = 0; what < 4; ++what) {
        expect(cuzk_test_b_g2_msm(resources, 3, what, input.bases.data(), 300,
                                  input.scalars.data(), 300, &out),
               codes[what], "b_g2_msm that throws");
    }
}

} // namespace

int main() {
    gpu_resources *resources = nullptr;
    expect(cuzk_gpu_resources_create(nullptr, &resources), CUZK_OK, "create");
    const Input small = make_input(4000);
    expect(msm(resources, small, 10), CUZK_POOL_NOT_STARTED, "before the pool is started");
    expect(cuzk_gpu_threads_set(3), CUZK_OK, "first size");
    expect(cuzk_gpu_threads_set(4), CUZK_POOL_SIZE_FIXED, "second size");

    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i) {
        workers.emplace_back([&] { work(resources, small); });
    }
    for (std::thread &worker : workers) {
        worker.join();
    }
    if (*cuzk_gpu_resources_throttle(resources) != 0) {
        std::fprintf(stderr, "the throttle was not lowered\n");
        return 1;
    }

    // Enough full-size scalars that their buffers go to the dealloc thread.
    const Input large = make_input(120000);
    expect(msm(resources, large, 120000), CUZK_OK, "large b_g2_msm");
    uint64_t counted = 0;
    expect(cuzk_test_pool(3, 6, 50, 17, &counted), CUZK_OK, "pool");
    cuzk_test_dealloc_seen seen{};
    expect(cuzk_test_dealloc(200, 50, &seen), CUZK_OK, "dealloc");
    prove_on_doubles(resources);
    cuzk_gpu_resources_destroy(resources);
    std::printf("sanitize: ok, %llu tasks, %u freeing at once\n",
                static_cast<unsigned long long>(counted), seen.concurrent_max);
    // Returns with the pool and the dealloc thread alive, as a process does.
    return 0;
}
