/*
 * The C ABI of the C++ side: everything Rust may call, and the input of
 * bindgen. Plain C, so that no C++ type, name or exception crosses it.
 *
 * Invariants:
 *  - a function that can fail returns a cuzk_status by value and never throws;
 *    the message lives inside the status, so reporting a failure allocates
 *    nothing and leaves nothing to free;
 *  - on failure no output parameter has been written;
 *  - lengths are in elements, and pointers of length 0 are never read.
 */
#ifndef CUZK_SUPRASEAL_WRAPPER_H
#define CUZK_SUPRASEAL_WRAPPER_H

#include <stddef.h>
#include <stdint.h>

#include "blst.h"

/* The layout both languages assert for the throttle at compile time. */
#define CUZK_THROTTLE_BYTES 4
#define CUZK_THROTTLE_ALIGN 4

/* The most threads gpu_threads may ask for: above any machine that exists, and
 * low enough that a misread number cannot exhaust the process table. */
#define CUZK_THREADS_MAX 4096

#define CUZK_MESSAGE_BYTES 248

/* cuzk_status.code */
#define CUZK_OK 0
#define CUZK_INVALID_ARGUMENT 1
#define CUZK_LENGTH_MISMATCH 2
#define CUZK_OUT_OF_MEMORY 3
#define CUZK_POOL_SIZE_FIXED 4
#define CUZK_POOL_NOT_STARTED 5
#define CUZK_GPU_LOCK_HELD 6
#define CUZK_EXCEPTION 7
#define CUZK_UNKNOWN_EXCEPTION 8

#ifdef __cplusplus
#define CUZK_NOEXCEPT noexcept
extern "C" {
#else
#define CUZK_NOEXCEPT
#endif

typedef struct {
    int32_t code;
    /* NUL-terminated; bytes as the exception had them, cut to fit. */
    char message[CUZK_MESSAGE_BYTES];
} cuzk_status;

/* One per device: the lock around its kernels and the bandwidth throttle. */
typedef struct gpu_resources gpu_resources;

cuzk_status cuzk_gpu_resources_create(gpu_resources **out) CUZK_NOEXCEPT;
/* Null is allowed. If gpu_mtx is still held the memory is leaked on purpose:
 * destroying a held mutex is undefined. */
void cuzk_gpu_resources_destroy(gpu_resources *resources) CUZK_NOEXCEPT;
/* The address of the atomic int, valid until the resources are destroyed. */
int32_t *cuzk_gpu_resources_throttle(gpu_resources *resources) CUZK_NOEXCEPT;
/* Blocks until gpu_mtx is free; CUZK_GPU_LOCK_HELD if this thread holds it. */
cuzk_status cuzk_gpu_lock(gpu_resources *resources) CUZK_NOEXCEPT;
/* Only on the thread that locked. */
void cuzk_gpu_unlock(gpu_resources *resources) CUZK_NOEXCEPT;

/* Starts the process-wide pool with this many threads (1 to CUZK_THREADS_MAX).
 * Once: again with the same number does nothing, with another it fails. */
cuzk_status cuzk_gpu_threads_set(uint32_t threads) CUZK_NOEXCEPT;
/* The number of threads of the process-wide pool, 0 before it is started. */
uint32_t cuzk_gpu_threads(void) CUZK_NOEXCEPT;

/* out = sum of scalars[i] * bases[i], on the process-wide pool, with the
 * throttle raised by one meanwhile. Scalars in Montgomery form. */
cuzk_status cuzk_b_g2_msm(gpu_resources *resources, const blst_p2_affine *bases, size_t num_bases,
                          const blst_fr *scalars, size_t num_scalars, blst_p2 *out) CUZK_NOEXCEPT;

typedef struct {
    /* Pippenger buckets, all threads together. */
    size_t buckets_bytes;
    /* The selected scalars and base pointers, if none is zero or one. */
    size_t selection_bytes;
} cuzk_msm_scratch;

/* An upper bound of the large buffers of cuzk_b_g2_msm on this many threads. */
cuzk_msm_scratch cuzk_b_g2_msm_scratch(size_t num_scalars, uint32_t threads) CUZK_NOEXCEPT;

typedef struct {
    uint64_t queued;
    uint64_t freeing;
    uint64_t freed;
} cuzk_dealloc_stats;

/* Waits until every C++ buffer given to the dealloc thread so far is freed. */
void cuzk_dealloc_flush(void) CUZK_NOEXCEPT;
cuzk_dealloc_stats cuzk_dealloc_get_stats(void) CUZK_NOEXCEPT;

/*
 * Test hooks: defined only when built with the feature `test-hooks`.
 */

#define CUZK_TEST_THROW_NOTHING 0
#define CUZK_TEST_THROW_RUNTIME_ERROR 1
#define CUZK_TEST_THROW_BAD_ALLOC 2
#define CUZK_TEST_THROW_INT 3

/* cuzk_b_g2_msm on a pool of its own, which throws on a worker before the
 * first piece of work is done, if asked to. */
cuzk_status cuzk_test_b_g2_msm(gpu_resources *resources, uint32_t threads, int32_t what,
                               const blst_p2_affine *bases, size_t num_bases,
                               const blst_fr *scalars, size_t num_scalars,
                               blst_p2 *out) CUZK_NOEXCEPT;
/* Runs `tasks` tasks on one pool of `threads` from `callers` threads at once,
 * every third of which throws each time, for `rounds` rounds; *counted is how
 * many tasks of the callers that do not throw ran. */
cuzk_status cuzk_test_pool(uint32_t threads, uint32_t callers, uint32_t rounds, uint32_t tasks,
                           uint64_t *counted) CUZK_NOEXCEPT;
typedef struct {
    /* The most values that were being freed at one time. */
    uint32_t concurrent_max;
    /* Values that the thread which gave them had to free. */
    uint32_t freed_by_givers;
} cuzk_test_dealloc_seen;

/* Gives `values` values to the dealloc thread from four threads; each takes
 * `free_us` to free. */
cuzk_status cuzk_test_dealloc(uint32_t values, uint32_t free_us,
                              cuzk_test_dealloc_seen *out) CUZK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
