/*
 * The C ABI of the C++ side: all that Rust may call, and the input of bindgen. It
 * is plain C, so that no C++ type, name or exception crosses it.
 *
 * Invariants:
 * - A function that can fail returns a cuzk_status by value and never throws. The
 *   message lives inside the status, so reporting a failure allocates nothing and
 *   leaves nothing to free.
 * - On failure no output parameter has been written.
 * - Lengths are in elements, and pointers of length 0 are never read.
 */
#ifndef CUZK_SUPRASEAL_WRAPPER_H
#define CUZK_SUPRASEAL_WRAPPER_H

#include <stddef.h>
#include <stdint.h>

#include "blst.h"

/* The layout that both languages assert for the throttle at compile time. */
#define CUZK_THROTTLE_BYTES 4
#define CUZK_THROTTLE_ALIGN 4

/* The most threads that gpu_threads may ask for. It is above any machine that
 * exists, and low enough that a misread number cannot exhaust the process table. */
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
#define CUZK_NO_CUDA 9
#define CUZK_NO_DEVICE 10
#define CUZK_DRIVER_TOO_OLD 11
#define CUZK_NO_KERNEL_IMAGE 12
#define CUZK_DEVICE_OUT_OF_MEMORY 13
#define CUZK_DEVICE_LOST 14
#define CUZK_DEVICE_STALLED 15
#define CUZK_DEVICE_ERROR 16
#define CUZK_CIRCUIT_TOO_LARGE 17
#define CUZK_INVALID_POINT 18
#define CUZK_INVALID_STATE 19
#define CUZK_STOPPED 20

#ifdef __cplusplus
#define CUZK_NOEXCEPT noexcept
extern "C" {
#else
#define CUZK_NOEXCEPT
#endif

typedef struct {
    int32_t code;
    /* NUL-terminated. The bytes are the exception's, cut to fit. */
    char message[CUZK_MESSAGE_BYTES];
} cuzk_status;

/* The calling thread asks it every millisecond or so while it waits. After a 0 the
 * call ends with CUZK_STOPPED. A null `pass` never stops a call. */
typedef struct {
    int32_t (*pass)(void *context);
    void *context;
} cuzk_checkpoint;

/* One per device: the lock around its kernels and the bandwidth throttle. */
typedef struct gpu_resources gpu_resources;

/* With a throttle of its own if `beside` is null, or else with that one's: memory
 * bandwidth belongs to the machine, however many devices there are. */
cuzk_status cuzk_gpu_resources_create(const gpu_resources *beside,
                                      gpu_resources **out) CUZK_NOEXCEPT;
/* Null is allowed. If gpu_mtx is still held, the memory is leaked on purpose:
 * destroying a held mutex is undefined. */
void cuzk_gpu_resources_destroy(gpu_resources *resources) CUZK_NOEXCEPT;
/* The address of the atomic int, valid until the resources are destroyed. */
int32_t *cuzk_gpu_resources_throttle(gpu_resources *resources) CUZK_NOEXCEPT;
/* Waits until gpu_mtx is free; CUZK_GPU_LOCK_HELD if this thread holds it. */
cuzk_status cuzk_gpu_lock(gpu_resources *resources, cuzk_checkpoint checkpoint) CUZK_NOEXCEPT;
/* Only on the thread that locked. */
void cuzk_gpu_unlock(gpu_resources *resources) CUZK_NOEXCEPT;

/* Starts the process-wide pool with this many threads (1 to CUZK_THREADS_MAX). It
 * can be started once: a second call with the same number does nothing, and with
 * another number fails. */
cuzk_status cuzk_gpu_threads_set(uint32_t threads) CUZK_NOEXCEPT;
/* The number of threads of the process-wide pool, 0 before it is started. */
uint32_t cuzk_gpu_threads(void) CUZK_NOEXCEPT;

/* out = sum of scalars[i] * bases[i], on the process-wide pool, with the throttle
 * raised by one while it runs. Scalars are in Montgomery form. */
cuzk_status cuzk_b_g2_msm(gpu_resources *resources, const blst_p2_affine *bases, size_t num_bases,
                          const blst_fr *scalars, size_t num_scalars, blst_p2 *out) CUZK_NOEXCEPT;

typedef struct {
    /* Pippenger buckets of all threads together. */
    size_t buckets_bytes;
    /* The selected scalars and base pointers, if no scalar is zero or one. */
    size_t selection_bytes;
} cuzk_msm_scratch;

/* An upper bound of the large buffers of cuzk_b_g2_msm on this many threads. */
cuzk_msm_scratch cuzk_b_g2_msm_scratch(size_t num_scalars, uint32_t threads) CUZK_NOEXCEPT;

/*
 * The device prover. Without the feature `cuda`, opening a device fails with
 * CUZK_NO_CUDA.
 *
 * A proof goes through cuzk_prove_stage, cuzk_prove_run and cuzk_prove_finish, once
 * each and in this order. It may be destroyed after any of them. The memory that
 * the caller lends (a circuit's arrays, a witness) must stay unchanged until the
 * circuit or the proof is destroyed.
 */

typedef struct {
    char name[64];
    uint64_t memory_bytes;
    uint64_t free_bytes;
    /* The highest bandwidth in bytes per second; 0 if it is not known. */
    uint64_t memory_bandwidth;
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t multiprocessors;
    uint32_t clock_khz;
} cuzk_device_info;

/* After CUDA_VISIBLE_DEVICES and in CUDA's order. Zero devices are not a failure. */
cuzk_status cuzk_device_count(uint32_t *out) CUZK_NOEXCEPT;

/* The place of the MSM in G2: on b_g2_msm's pool; on the device; or on the device
 * for circuits all of whose points stay there, including those in G2. */
#define CUZK_B_G2_CPU 0
#define CUZK_B_G2_DEVICE 1
#define CUZK_B_G2_AUTO 2

typedef struct {
    /* The most device memory to take, all of it when the device is opened. Less is
     * taken if less is free then, after a reserve for the driver. 0 means no limit. */
    uint64_t memory_bytes;
    /* Proofs that may be between staging and the end of their device region. */
    uint32_t workers;
    uint32_t b_g2;
    /* The time after which a device that does not end its work is given up; the
     * work should take seconds. */
    uint32_t stall_limit_ms;
    /* The logarithm of the longest pieces of points that are streamed, in G1; 0
     * means the planner's choice. */
    uint32_t log_piece_max;
} cuzk_device_options;

typedef struct cuzk_device cuzk_device;
typedef struct cuzk_circuit cuzk_circuit;
typedef struct cuzk_proof cuzk_proof;

/* The resources must outlive the device. */
cuzk_status cuzk_device_open(uint32_t ordinal, const cuzk_device_options *options,
                             gpu_resources *resources, cuzk_device **out) CUZK_NOEXCEPT;
/* Null is allowed. No circuit and no proof of it may be left. */
void cuzk_device_close(cuzk_device *device) CUZK_NOEXCEPT;
cuzk_status cuzk_device_get_info(cuzk_device *device, cuzk_device_info *out) CUZK_NOEXCEPT;

/* The queries of a proof, by their place in arrays. */
#define CUZK_QUERY_H 0
#define CUZK_QUERY_L 1
#define CUZK_QUERY_A 2
#define CUZK_QUERY_B_G1 3
#define CUZK_QUERY_B_G2 4
#define CUZK_QUERIES 5

/* The sizes of a circuit. Its use of memory depends on them only. */
typedef struct {
    uint32_t log_domain;
    uint32_t rows;
    uint32_t num_inputs;
    uint32_t num_aux;
    /* The most auxiliary variables that are neither 0 nor 1. */
    uint32_t max_wide;
    uint32_t num_b_inputs;
    uint32_t num_coefficients;
    uint32_t num_parts;
    uint32_t num_items;
    uint32_t num_shapes;
    uint32_t num_unit_rows;
    uint32_t num_references;
    uint64_t num_points[CUZK_QUERIES];
} cuzk_circuit_shape;

/* A flat compiled circuit, as in cuda/kernels.hpp, and the encoded points of its
 * parameters. */
typedef struct {
    cuzk_circuit_shape shape;
    const blst_fr *coefficients;
    const int32_t *integers;
    const uint32_t *part_ends;
    const uint32_t *items;
    const uint32_t *shapes;
    const uint32_t *unit_rows;
    const uint32_t *references;
    const uint32_t *block_references;
    /* Bit i of word i / 64 tells if auxiliary i is in the query. */
    const uint64_t *a_aux;
    const uint64_t *b_aux;
    /* The inputs in the queries over B, ascending. */
    const uint32_t *b_inputs;
    const uint8_t *points[CUZK_QUERIES];
} cuzk_circuit_data;

/* The use of device memory for a circuit. */
typedef struct {
    /* The sum of all bytes below that are on the device. */
    uint64_t total_bytes;
    /* The memory of one worker: its witness and its results. */
    uint64_t worker_bytes;
    /* The most that is uploaded for a partition: its witness, if each variable that
     * may be is neither 0 nor 1. */
    uint64_t witness_bytes;
    /* The compiled circuit and the roots of unity. */
    uint64_t circuit_bytes;
    /* The memory of the device region, which one worker uses at a time. */
    uint64_t region_bytes;
    uint64_t resident_bytes;
    /* Pinned host memory of all workers together. */
    uint64_t pinned_bytes;
    /* The number of points in G1 that are streamed at a time. */
    uint64_t piece_points;
    /* 1 if the MSM in G2 runs on the device, otherwise 0. */
    uint32_t b_g2_on_device;
    /* By query: the number of points at its start that stay on the device. */
    uint64_t resident_points[CUZK_QUERIES];
} cuzk_device_plan;

/* Plans without a device. Fails with CUZK_CIRCUIT_TOO_LARGE if
 * options->memory_bytes are too few; its message names the least that would
 * suffice. */
cuzk_status cuzk_device_make_plan(const cuzk_circuit_shape *shape,
                                  const cuzk_device_options *options,
                                  cuzk_device_plan *out) CUZK_NOEXCEPT;

/* Plans the memory for this circuit. Its arrays are uploaded when it is first used,
 * and again if they had to make room for another circuit since. */
cuzk_status cuzk_circuit_create(cuzk_device *device, const cuzk_circuit_data *data,
                                cuzk_circuit **out) CUZK_NOEXCEPT;
/* Null is allowed. No proof of it may be left. */
void cuzk_circuit_destroy(cuzk_circuit *circuit) CUZK_NOEXCEPT;
cuzk_device_plan cuzk_circuit_plan(const cuzk_circuit *circuit) CUZK_NOEXCEPT;

typedef struct {
    const blst_fr *inputs;
    /* Bit i of word i / 64 of `bits` is set if auxiliary i is 1. That of `wide` is
     * set if it is neither 0 nor 1; then its value is the next one of wide_values.
     * Both have num_words words. */
    const uint64_t *bits;
    const uint64_t *wide;
    size_t num_words;
    const blst_fr *wide_values;
    size_t num_wide;
} cuzk_witness;

/* Waits for a free worker, uploads the circuit if it is not on the device, and then
 * the witness, outside the device's lock. */
cuzk_status cuzk_prove_stage(cuzk_circuit *circuit, const cuzk_witness *witness,
                             cuzk_checkpoint checkpoint, cuzk_proof **out) CUZK_NOEXCEPT;

typedef struct {
    blst_p1 h;
    blst_p1 l;
    blst_p1 a;
    /* Both zero, if they were not requested. */
    blst_p1 b_g1;
    blst_p2 b_g2;
} cuzk_sums;

typedef struct {
    /* Time waiting for a free worker, and for another circuit to leave. */
    double worker_wait_ms;
    double lock_wait_ms;
    /* The time at which gpu_mtx was taken, by cuzk_clock_ns, and the time for which
     * it was held. */
    uint64_t locked_at_ns;
    uint64_t region_ns;
    /* By the device's clock: evaluation and transforms; MSMs. */
    double quotient_ms;
    double sums_ms;
    double b_g2_ms;
    uint64_t uploaded_bytes;
    uint64_t streamed_bytes;
} cuzk_proof_figures;

/* The clock of this side: nanoseconds since some time, the same time for all
 * threads. */
uint64_t cuzk_clock_ns(void) CUZK_NOEXCEPT;

/* The vectors between a witness and its MSMs, to be written. Each has as many
 * values as the domain. A and B on the witness are in bit-reversed order. The
 * quotient's coefficients, h, are in natural order and not in Montgomery form. */
typedef struct {
    blst_fr *a;
    blst_fr *b;
    blst_fr *h;
    size_t len;
} cuzk_intermediates;

/* Runs the device region: holds gpu_mtx, while b_g2_msm runs on its pool. The figures
 * have no time of b_g2_msm yet. The MSM over B in G1, whose points never stay on the
 * device, is computed if `b_g1` is not 0. b_g2_msm does not run if `host_b_g2` is 0.
 * `intermediates` may be null. It is for a comparison with another prover, and costs
 * pinned memory and three copies. */
cuzk_status cuzk_prove_run(cuzk_proof *proof, uint32_t b_g1, uint32_t host_b_g2,
                           const cuzk_intermediates *intermediates, cuzk_checkpoint checkpoint,
                           cuzk_proof_figures *figures) CUZK_NOEXCEPT;
/* Waits for b_g2_msm, outside the lock. */
cuzk_status cuzk_prove_finish(cuzk_proof *proof, cuzk_checkpoint checkpoint, cuzk_sums *sums,
                              cuzk_proof_figures *figures) CUZK_NOEXCEPT;
/* Null is allowed, and so is any state. Waits for all that still uses the witness. */
void cuzk_proof_destroy(cuzk_proof *proof) CUZK_NOEXCEPT;

typedef struct {
    uint64_t queued;
    uint64_t freeing;
    uint64_t freed;
} cuzk_dealloc_stats;

/* For a dealloc thread, at its start: it gives way to all other threads from now
 * on, by a nice value that is higher by 0 to 19. This is advice only. A system
 * without such a value for a thread ignores it. */
void cuzk_dealloc_give_way(int32_t nice) CUZK_NOEXCEPT;
/* If true, C++ buffers are freed at once, each on its own thread. See dealloc.hpp. */
void cuzk_dealloc_set_unbounded(bool unbounded) CUZK_NOEXCEPT;
/* Waits until all C++ buffers given to be freed so far are freed. */
void cuzk_dealloc_flush(void) CUZK_NOEXCEPT;
/* Makes malloc give back unused pages, in its turn, if malloc has such a call. */
void cuzk_dealloc_trim_heap(void) CUZK_NOEXCEPT;
cuzk_dealloc_stats cuzk_dealloc_get_stats(void) CUZK_NOEXCEPT;

/*
 * Test hooks: defined only when built with the feature `test-hooks`.
 */

#define CUZK_TEST_THROW_NOTHING 0
#define CUZK_TEST_THROW_RUNTIME_ERROR 1
#define CUZK_TEST_THROW_BAD_ALLOC 2
#define CUZK_TEST_THROW_INT 3

/* Computes cuzk_b_g2_msm on a pool of its own. If asked to, a worker throws before
 * the first piece of work is done. */
cuzk_status cuzk_test_b_g2_msm(gpu_resources *resources, uint32_t threads, int32_t what,
                               const blst_p2_affine *bases, size_t num_bases,
                               const blst_fr *scalars, size_t num_scalars,
                               blst_p2 *out) CUZK_NOEXCEPT;
/* Runs `tasks` tasks on one pool of `threads` from `callers` threads at once, for
 * `rounds` rounds. Every third caller throws each time. *counted is the number of
 * tasks that ran for the callers that do not throw. */
cuzk_status cuzk_test_pool(uint32_t threads, uint32_t callers, uint32_t rounds, uint32_t tasks,
                           uint64_t *counted) CUZK_NOEXCEPT;
/* Runs `tasks` long tasks on a pool of one thread, and a short one that is called
 * at once when the first of them begins. *before is the number of long ones that
 * had ended when the short one began. */
cuzk_status cuzk_test_pool_at_once(uint32_t tasks, uint32_t *before) CUZK_NOEXCEPT;
/* Copies in the way that points are copied for a device. */
cuzk_status cuzk_test_copy(uint8_t *to, const uint8_t *from, size_t bytes,
                           cuzk_checkpoint checkpoint) CUZK_NOEXCEPT;
typedef struct cuzk_test_held_pool cuzk_test_held_pool;

/* Returns when all threads of the process-wide pool stand still. They stand still
 * until they are released. */
cuzk_status cuzk_test_pool_hold(cuzk_test_held_pool **out) CUZK_NOEXCEPT;
void cuzk_test_pool_release(cuzk_test_held_pool *held) CUZK_NOEXCEPT;

typedef struct {
    /* The most values that were being freed at one time. */
    uint32_t concurrent_max;
    /* The number of values that the giving thread had to free itself. */
    uint32_t freed_by_givers;
} cuzk_test_dealloc_seen;

/* Gives `values` values to the dealloc thread from four threads. Each value takes
 * `free_us` to free. */
cuzk_status cuzk_test_dealloc(uint32_t values, uint32_t free_us,
                              cuzk_test_dealloc_seen *out) CUZK_NOEXCEPT;

/* Gives the dealloc thread a value, which `drop` frees: once, unless this fails. */
cuzk_status cuzk_test_dealloc_value(void (*drop)(void *value), void *value) CUZK_NOEXCEPT;

/* The device double: its kernels are plain C++, its streams are threads, and its
 * memory is as large as asked. */

#define CUZK_TEST_FAULT_NOTHING 0
#define CUZK_TEST_FAULT_OUT_OF_MEMORY 1
#define CUZK_TEST_FAULT_ERROR 2
/* All calls from this one on fail. */
#define CUZK_TEST_FAULT_STICKY 3
/* From this call on the device does nothing any more. */
#define CUZK_TEST_FAULT_STALL 4
/* The work that the call enqueues fails when the device comes to it, permanently. */
#define CUZK_TEST_FAULT_KERNEL 5
#define CUZK_TEST_FAULT_EXCEPTION 6
#define CUZK_TEST_FAULT_INT 7

typedef struct cuzk_test_controls cuzk_test_controls;

cuzk_status cuzk_test_controls_create(cuzk_test_controls **out) CUZK_NOEXCEPT;
void cuzk_test_controls_destroy(cuzk_test_controls *controls) CUZK_NOEXCEPT;
/* Makes call number `call` from now on fail: 1 is the next one, 0 is none. */
void cuzk_test_fault(cuzk_test_controls *controls, uint64_t call, int32_t kind) CUZK_NOEXCEPT;
/* Sets the memory that the stacks of kernels take together, from the next device
 * on. */
void cuzk_test_stacks(cuzk_test_controls *controls, uint64_t bytes) CUZK_NOEXCEPT;
/* Makes a stream of the next device slow: its work begins only when the host waits
 * and no other stream can go on. Streams have numbers from 1 in the order of their
 * making; 0 means none. */
void cuzk_test_slow_stream(cuzk_test_controls *controls, uint64_t number) CUZK_NOEXCEPT;
/* Makes the next circuit of the double stand still while it is made, until it is
 * released. */
void cuzk_test_hold_making(cuzk_test_controls *controls) CUZK_NOEXCEPT;
void cuzk_test_release_making(cuzk_test_controls *controls) CUZK_NOEXCEPT;

typedef struct {
    uint64_t calls;
    uint64_t allocations;
    uint64_t live_allocations;
    uint64_t bytes;
    uint64_t bytes_max;
    uint64_t uploaded_bytes;
    uint64_t drains;
    /* Circuits whose making stands still, 0 or 1. */
    uint64_t held_makings;
    /* The longest limit of a wait for the device while it stood still. */
    uint64_t stalled_wait_ms_max;
    /* Streams of the device that was opened last. */
    uint64_t streams;
    /* Operations that its streams were given and have not passed. */
    uint64_t under_way;
} cuzk_test_device_seen;

cuzk_test_device_seen cuzk_test_device_get_seen(cuzk_test_controls *controls) CUZK_NOEXCEPT;
/* A double with this much memory. The controls must outlive it. */
cuzk_status cuzk_test_device_open(uint64_t memory_bytes, const cuzk_device_options *options,
                                  gpu_resources *resources, cuzk_test_controls *controls,
                                  cuzk_device **out) CUZK_NOEXCEPT;

/* A device of CUDA's runtime, with another runtime in its place: two devices in
 * host memory, on which nothing runs concurrently. */
cuzk_status cuzk_test_cuda_open(uint32_t ordinal, const cuzk_device_options *options,
                                gpu_resources *resources, cuzk_device **out) CUZK_NOEXCEPT;
cuzk_status cuzk_test_cuda_count(uint32_t *out) CUZK_NOEXCEPT;

/* The failure of a call of that runtime. */
#define CUZK_TEST_CUDA_NO_MEMORY 0
/* An error of the context: all later calls fail, too. */
#define CUZK_TEST_CUDA_CONTEXT 1
#define CUZK_TEST_CUDA_NO_DEVICE 2
#define CUZK_TEST_CUDA_NO_DRIVER 3
#define CUZK_TEST_CUDA_OLD_DRIVER 4
#define CUZK_TEST_CUDA_OTHER_DRIVER 5
#define CUZK_TEST_CUDA_NOT_COMPATIBLE 6
#define CUZK_TEST_CUDA_NO_IMAGE 7
#define CUZK_TEST_CUDA_NEW_PTX 8
#define CUZK_TEST_CUDA_BAD_PTX 9
#define CUZK_TEST_CUDA_OTHER 10
/* From that call on no event passes; ended, what was kept for it is not counted. */
#define CUZK_TEST_CUDA_STALL 11

/* Makes call number `call` of that runtime from now on fail: 1 is the next one, 0
 * is none. */
void cuzk_test_cuda_fail(uint64_t call, int32_t error) CUZK_NOEXCEPT;

typedef struct {
    uint64_t calls;
    /* Allocations, streams and events. */
    uint64_t live;
    /* A cudaError_t; 0 for none. */
    int32_t last_error_of_this_thread;
} cuzk_test_cuda_seen;

cuzk_test_cuda_seen cuzk_test_cuda_get_seen(void) CUZK_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
