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
    /* NUL-terminated; bytes as the exception had them, cut to fit. */
    char message[CUZK_MESSAGE_BYTES];
} cuzk_status;

/* Asked by the calling thread, every millisecond or so while it waits; after a 0
 * the call ends with CUZK_STOPPED. A null `pass` lets everything go on. */
typedef struct {
    int32_t (*pass)(void *context);
    void *context;
} cuzk_checkpoint;

/* One per device: the lock around its kernels and the bandwidth throttle. */
typedef struct gpu_resources gpu_resources;

/* With a throttle of its own if `beside` is null, or else with that one's: memory
 * bandwidth is the machine's, however many devices there are. */
cuzk_status cuzk_gpu_resources_create(const gpu_resources *beside,
                                      gpu_resources **out) CUZK_NOEXCEPT;
/* Null is allowed. If gpu_mtx is still held the memory is leaked on purpose:
 * destroying a held mutex is undefined. */
void cuzk_gpu_resources_destroy(gpu_resources *resources) CUZK_NOEXCEPT;
/* The address of the atomic int, valid until the resources are destroyed. */
int32_t *cuzk_gpu_resources_throttle(gpu_resources *resources) CUZK_NOEXCEPT;
/* Waits until gpu_mtx is free; CUZK_GPU_LOCK_HELD if this thread holds it. */
cuzk_status cuzk_gpu_lock(gpu_resources *resources, cuzk_checkpoint checkpoint) CUZK_NOEXCEPT;
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

/*
 * The device prover. Without the feature `cuda` opening a device fails with
 * CUZK_NO_CUDA.
 *
 * A proof goes through cuzk_prove_stage, cuzk_prove_run and cuzk_prove_finish,
 * once each and in this order, and may be destroyed after any of them. What the
 * caller lends (a circuit's arrays, a witness) must stay as it is until the
 * circuit or the proof is destroyed.
 */

typedef struct {
    char name[64];
    uint64_t memory_bytes;
    uint64_t free_bytes;
    /* Bytes a second, at most; 0 where that is not known. */
    uint64_t memory_bandwidth;
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t multiprocessors;
    uint32_t clock_khz;
} cuzk_device_info;

/* After CUDA_VISIBLE_DEVICES and in CUDA's order. None is not a failure. */
cuzk_status cuzk_device_count(uint32_t *out) CUZK_NOEXCEPT;

/* Where the sum in G2 runs: on b_g2_msm's pool; on the device; or on the device
 * for circuits all of whose points stay there, those in G2 too. */
#define CUZK_B_G2_CPU 0
#define CUZK_B_G2_DEVICE 1
#define CUZK_B_G2_AUTO 2

typedef struct {
    /* The most device memory to take, all of it when the device is opened: less
     * where less is free then, after a reserve for the driver. 0 for no limit. */
    uint64_t memory_bytes;
    /* Proofs that may be between staging and the end of their device region. */
    uint32_t workers;
    uint32_t b_g2;
    /* How long the device may take over what should take seconds. */
    uint32_t stall_limit_ms;
    /* The longest pieces of points that are streamed, two to this in G1; 0 for the
     * planner's choice. */
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

/* The sizes of a circuit, on which the use of memory depends alone. */
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

/* A flat compiled circuit, as cuda/kernels.hpp says, and the encoded points of
 * its parameters. */
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
    /* Bit i of word i / 64: auxiliary i is in the query. */
    const uint64_t *a_aux;
    const uint64_t *b_aux;
    /* The inputs in the queries over B, ascending. */
    const uint32_t *b_inputs;
    const uint8_t *points[CUZK_QUERIES];
} cuzk_circuit_data;

/* How device memory is used for a circuit. */
typedef struct {
    /* Of all that follows. */
    uint64_t total_bytes;
    /* One worker's: its witness and its results. */
    uint64_t worker_bytes;
    /* What goes up of a partition, at most: its witness, if every variable that may
     * be is neither 0 nor 1. */
    uint64_t witness_bytes;
    /* The compiled circuit and the roots of unity. */
    uint64_t circuit_bytes;
    /* The device region's, which one worker uses at a time. */
    uint64_t region_bytes;
    uint64_t resident_bytes;
    /* Pinned host memory, all workers together. */
    uint64_t pinned_bytes;
    /* Points in G1 that are streamed at a time. */
    uint64_t piece_points;
    /* Whether the sum in G2 runs on the device. */
    uint32_t b_g2_on_device;
    /* By query: the points at its start that stay on the device. */
    uint64_t resident_points[CUZK_QUERIES];
} cuzk_device_plan;

/* Plans without a device. CUZK_CIRCUIT_TOO_LARGE, with the least that would do
 * in the message, if it cannot be done in options->memory_bytes. */
cuzk_status cuzk_device_make_plan(const cuzk_circuit_shape *shape,
                                  const cuzk_device_options *options,
                                  cuzk_device_plan *out) CUZK_NOEXCEPT;

/* Plans for this circuit; its arrays go to the device when it is first used,
 * and again when they had to make room for another's meanwhile. */
cuzk_status cuzk_circuit_create(cuzk_device *device, const cuzk_circuit_data *data,
                                cuzk_circuit **out) CUZK_NOEXCEPT;
/* Null is allowed. No proof of it may be left. */
void cuzk_circuit_destroy(cuzk_circuit *circuit) CUZK_NOEXCEPT;
cuzk_device_plan cuzk_circuit_plan(const cuzk_circuit *circuit) CUZK_NOEXCEPT;

typedef struct {
    const blst_fr *inputs;
    /* Bit i of word i / 64: auxiliary i is 1; or it is neither 0 nor 1, and its
     * value the next of wide_values. num_words of each. */
    const uint64_t *bits;
    const uint64_t *wide;
    size_t num_words;
    const blst_fr *wide_values;
    size_t num_wide;
} cuzk_witness;

/* Waits for a free worker, brings the circuit if it is not there, and sends the
 * witness up, outside the device's lock. */
cuzk_status cuzk_prove_stage(cuzk_circuit *circuit, const cuzk_witness *witness,
                             cuzk_checkpoint checkpoint, cuzk_proof **out) CUZK_NOEXCEPT;

typedef struct {
    blst_p1 h;
    blst_p1 l;
    blst_p1 a;
    /* Zero, if it was not wanted. */
    blst_p1 b_g1;
    blst_p2 b_g2;
} cuzk_sums;

typedef struct {
    /* Waiting for a free worker, and for another circuit to leave. */
    double worker_wait_ms;
    double lock_wait_ms;
    /* When gpu_mtx was taken, by cuzk_clock_ns, and how long it was held. */
    uint64_t locked_at_ns;
    uint64_t region_ns;
    /* By the device's clock: evaluation and transforms; sums. */
    double quotient_ms;
    double sums_ms;
    double b_g2_ms;
    uint64_t uploaded_bytes;
    uint64_t streamed_bytes;
} cuzk_proof_figures;

/* The clock of this side: nanoseconds since some time, the same for all threads. */
uint64_t cuzk_clock_ns(void) CUZK_NOEXCEPT;

/* What lies between a witness and its sums, to be written: as many values each as the
 * domain has. A and B on the witness in the order of their bits reversed, and the
 * quotient's coefficients, h, in theirs and not in Montgomery's form. */
typedef struct {
    blst_fr *a;
    blst_fr *b;
    blst_fr *h;
    size_t len;
} cuzk_intermediates;

/* The device region: holds gpu_mtx, while b_g2_msm runs on its pool. Its time
 * is not yet in the figures. The sum over B in G1, whose points never stay on
 * the device, is made if `b_g1` is not 0. `intermediates`, which may be null, is for
 * comparing with another prover: it costs pinned memory and three copies. */
cuzk_status cuzk_prove_run(cuzk_proof *proof, uint32_t b_g1,
                           const cuzk_intermediates *intermediates, cuzk_checkpoint checkpoint,
                           cuzk_proof_figures *figures) CUZK_NOEXCEPT;
/* Waits for b_g2_msm, outside the lock. */
cuzk_status cuzk_prove_finish(cuzk_proof *proof, cuzk_checkpoint checkpoint, cuzk_sums *sums,
                              cuzk_proof_figures *figures) CUZK_NOEXCEPT;
/* Null is allowed, and so is any state. Waits for what still uses the witness. */
void cuzk_proof_destroy(cuzk_proof *proof) CUZK_NOEXCEPT;

typedef struct {
    uint64_t queued;
    uint64_t freeing;
    uint64_t freed;
} cuzk_dealloc_stats;

/* For a dealloc thread, at its start: from now on it gives way to whatever else
 * wants the processor, by a nice value as much higher, 0 to 19. Advice only: where the
 * system has no such thing for a thread, or refuses it, the thread competes as any does. */
void cuzk_dealloc_give_way(int32_t nice) CUZK_NOEXCEPT;
/* Waits until every C++ buffer given to the dealloc thread so far is freed. */
void cuzk_dealloc_flush(void) CUZK_NOEXCEPT;
/* Has malloc give back the pages that nobody uses, in its turn. Does nothing
 * where malloc has no such call. */
void cuzk_dealloc_trim_heap(void) CUZK_NOEXCEPT;
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
/* Of `tasks` long tasks of a pool of one thread, *before is how many had ended when
 * a short one that was called at once with the first of them began. */
cuzk_status cuzk_test_pool_at_once(uint32_t tasks, uint32_t *before) CUZK_NOEXCEPT;
/* Copies as points are copied for a device. */
cuzk_status cuzk_test_copy(uint8_t *to, const uint8_t *from, size_t bytes,
                           cuzk_checkpoint checkpoint) CUZK_NOEXCEPT;
typedef struct cuzk_test_held_pool cuzk_test_held_pool;

/* Returns when every thread of the process-wide pool stands still, which they do
 * until they are released. */
cuzk_status cuzk_test_pool_hold(cuzk_test_held_pool **out) CUZK_NOEXCEPT;
void cuzk_test_pool_release(cuzk_test_held_pool *held) CUZK_NOEXCEPT;

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

/* Gives the dealloc thread a value, which is freed by `drop`: once, unless this
 * fails. */
cuzk_status cuzk_test_dealloc_value(void (*drop)(void *value), void *value) CUZK_NOEXCEPT;

/*
 * The device double: kernels as plain C++, streams as threads, memory as asked.
 */

#define CUZK_TEST_FAULT_NOTHING 0
#define CUZK_TEST_FAULT_OUT_OF_MEMORY 1
#define CUZK_TEST_FAULT_ERROR 2
/* From this call on every call fails. */
#define CUZK_TEST_FAULT_STICKY 3
/* From this call on the device does nothing any more. */
#define CUZK_TEST_FAULT_STALL 4
/* What the call enqueues fails when the device comes to it, and is sticky. */
#define CUZK_TEST_FAULT_KERNEL 5
#define CUZK_TEST_FAULT_EXCEPTION 6
#define CUZK_TEST_FAULT_INT 7

typedef struct cuzk_test_controls cuzk_test_controls;

cuzk_status cuzk_test_controls_create(cuzk_test_controls **out) CUZK_NOEXCEPT;
void cuzk_test_controls_destroy(cuzk_test_controls *controls) CUZK_NOEXCEPT;
/* Lets call number `call` from now on (1 is the next) fail; 0 for none. */
void cuzk_test_fault(cuzk_test_controls *controls, uint64_t call, int32_t kind) CUZK_NOEXCEPT;
/* What the stacks of kernels take together, from the next device on. */
void cuzk_test_stacks(cuzk_test_controls *controls, uint64_t bytes) CUZK_NOEXCEPT;
/* On the next device what is on the stream of this number, from 1 in the order of their
 * making, begins only when the host waits and no other stream can go on; 0 for none. */
void cuzk_test_slow_stream(cuzk_test_controls *controls, uint64_t number) CUZK_NOEXCEPT;
/* Lets the next circuit that is made for the double stand still until it is released. */
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
    /* Of the device that was opened last. */
    uint64_t streams;
    /* What its streams were given and have not passed. */
    uint64_t under_way;
} cuzk_test_device_seen;

cuzk_test_device_seen cuzk_test_device_get_seen(cuzk_test_controls *controls) CUZK_NOEXCEPT;
/* A double with this much memory. The controls must outlive it. */
cuzk_status cuzk_test_device_open(uint64_t memory_bytes, const cuzk_device_options *options,
                                  gpu_resources *resources, cuzk_test_controls *controls,
                                  cuzk_device **out) CUZK_NOEXCEPT;

/* A device of CUDA's runtime, with another in its place: two devices in host
 * memory, on which nothing runs beside anything else. */
cuzk_status cuzk_test_cuda_open(uint32_t ordinal, const cuzk_device_options *options,
                                gpu_resources *resources, cuzk_device **out) CUZK_NOEXCEPT;
cuzk_status cuzk_test_cuda_count(uint32_t *out) CUZK_NOEXCEPT;

/* What a call of that runtime fails with. */
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

/* Lets call number `call` of that runtime from now on (1 is the next, 0 none) fail. */
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
