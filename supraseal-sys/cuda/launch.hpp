// Kernels that compile two ways: as CUDA, and as loops over blocks and threads.
//
// A kernel is a struct. Its members are the arguments. `THREADS` is the size of a
// block. `Shared` is the memory that the threads of a block share. `run` is the
// body of one block, written in phases:
//
//     block.each([&](uint32_t thread) { ... });
//
// Between two phases there is a barrier, so a phase sees all writes of the phases
// before it. Within a phase threads run in any order and must not see each other's
// writes. Local variables outside the phases belong to the block, and are equal in
// all its threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"

#ifdef CUZK_EMULATED
#include <atomic>

#define CUZK_BODY inline
#define CUZK_FN inline
#define CUZK_CALL inline
#define CUZK_UNROLL
#else
// For functions of the device alone, which run only in a kernel.
#define CUZK_BODY __device__ __forceinline__
// For functions of host and device. CUZK_CALL is for long functions that are called
// from several places: inlined, they would take most of the compiler's time.
#define CUZK_FN __host__ __device__ __forceinline__
#define CUZK_CALL static __host__ __device__ __noinline__
#define CUZK_UNROLL _Pragma("unroll")
#endif

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

constexpr Error OK = 0;
constexpr Error INVALID_VALUE = 1; // cudaErrorInvalidValue

struct Nothing {};

template <class T> CUZK_FN constexpr T div_ceil(T a, T b) { return (a + b - 1) / b; }

template <class T> CUZK_FN constexpr T min_of(T a, T b) { return b < a ? b : a; }

template <class T> CUZK_FN constexpr T max_of(T a, T b) { return a < b ? b : a; }

#ifdef CUZK_EMULATED

template <uint32_t THREADS> struct Block {
    uint32_t index;
    uint32_t phase = 0;

    // Every second phase runs backwards. So a thread that sees another's writes
    // within a phase has the wrong result in one of the two.
    template <class F> void each(const F &f) {
        const bool backwards = phase++ % 2 == 1;
        for (uint32_t i = 0; i < THREADS; ++i) {
            f(backwards ? THREADS - 1 - i : i);
        }
    }
};

// The launches of this process, for tests: kernels, by their type, and blocks that
// nothing stopped.
inline std::atomic<uint32_t> kernels_launched{0};
inline std::atomic<uint64_t> blocks_run{0};

template <class K> Error launch(const K &kernel, uint64_t blocks, Stream stream) {
    [[maybe_unused]] static const uint32_t is_counted = ++kernels_launched;
    for (uint64_t index = 0; index < blocks; ++index) {
        if (stream.stop != nullptr && __atomic_load_n(stream.stop, __ATOMIC_RELAXED) != 0) {
            return OK;
        }
        blocks_run.fetch_add(1, std::memory_order_relaxed);
        typename K::Shared shared;
        // Shared memory begins with arbitrary contents.
        std::memset(static_cast<void *>(&shared), 0xa5, sizeof shared);
        Block<K::THREADS> block{static_cast<uint32_t>(index)};
        kernel.run(block, shared);
    }
    return OK;
}

inline Error zero(void *bytes, size_t length, Stream) {
    std::memset(bytes, 0, length);
    return OK;
}

inline uint32_t atomic_add(uint32_t *word, uint32_t value) {
    const uint32_t before = *word;
    *word += value;
    return before;
}

inline void atomic_min(uint32_t *word, uint32_t value) { *word = min_of(*word, value); }

inline uint32_t popcount(uint64_t word) {
    return static_cast<uint32_t>(__builtin_popcountll(word));
}

inline uint32_t lowest_bit(uint64_t word) {
    return static_cast<uint32_t>(__builtin_ctzll(word));
}

inline uint64_t reverse_bits(uint64_t word) {
    uint64_t reversed = 0;
    for (int i = 0; i < 64; ++i) {
        reversed |= (word >> i & 1) << (63 - i);
    }
    return reversed;
}

#else

template <uint32_t THREADS> struct Block {
    uint32_t index;

    template <class F> __device__ __forceinline__ void each(const F &f) {
        f(threadIdx.x);
        __syncthreads();
    }
};

template <class K>
__global__ void __launch_bounds__(K::THREADS) kernel(const K arguments, const uint32_t *stop) {
    // The word is written while kernels run. The data that this block reads was
    // written before its kernel began. So if an earlier kernel was cut short, this
    // one is, too. All threads of the block must see the same value.
    if (stop != nullptr) {
        const bool is_stopped =
            threadIdx.x == 0 && *static_cast<const volatile uint32_t *>(stop) != 0;
        if (__syncthreads_or(is_stopped) != 0) {
            return;
        }
    }
    __shared__ typename K::Shared shared;
    Block<K::THREADS> block{blockIdx.x};
    arguments.run(block, shared);
}

template <class K> Error launch(const K &arguments, uint64_t blocks, Stream stream) {
    if (blocks == 0) {
        return OK;
    }
    if (blocks > INT32_MAX) {
        return INVALID_VALUE;
    }
    kernel<K><<<static_cast<uint32_t>(blocks), K::THREADS, 0, stream.raw>>>(arguments, stream.stop);
    return cudaGetLastError();
}

inline Error zero(void *bytes, size_t length, Stream stream) {
    return cudaMemsetAsync(bytes, 0, length, stream.raw);
}

CUZK_BODY uint32_t atomic_add(uint32_t *word, uint32_t value) { return atomicAdd(word, value); }

CUZK_BODY void atomic_min(uint32_t *word, uint32_t value) { atomicMin(word, value); }

CUZK_BODY uint32_t popcount(uint64_t word) {
    return static_cast<uint32_t>(__popcll(static_cast<long long>(word)));
}

CUZK_BODY uint32_t lowest_bit(uint64_t word) {
    return static_cast<uint32_t>(__ffsll(static_cast<long long>(word)) - 1);
}

CUZK_BODY uint64_t reverse_bits(uint64_t word) { return __brevll(word); }

#endif

// Hands out pieces of scratch, each aligned to 256 bytes.
class Arena {
public:
    explicit Arena(void *start) : next_(static_cast<unsigned char *>(start)) {}

    template <class T> T *take(size_t count) {
        T *piece = reinterpret_cast<T *>(next_);
        next_ += bytes<T>(count);
        return piece;
    }

    template <class T> static constexpr size_t bytes(size_t count) {
        return div_ceil<size_t>(count * sizeof(T), 256) * 256;
    }

private:
    unsigned char *next_;
};

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
