// MSMs by the bucket method (Pippenger; Bernstein, Doumen, Lange, Oosterwijk,
// "Faster batch forgery identification", eprint 2012/549, section 4) with signed
// digits.
//
// 1. A counting sort lists the digits of all scalars by bucket (digit_sort.hpp).
// 2. Threads add up equal pieces of the list (buckets.hpp). This step decides the
//    time.
// 3. Σ k·bucket[k] by running sums over chunks of buckets, and a sum over the
//    chunks.
#pragma once

#include "buckets.hpp"
#include "load.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

inline bool is_valid(const Scalars &scalars, Windows windows) {
    return windows.bits >= WINDOW_BITS_MIN && windows.bits <= WINDOW_BITS_MAX &&
           windows.windows == div_ceil(255U, windows.bits) &&
           uint64_t{scalars.n} * windows.windows <= UINT32_MAX && scalars.n < SIGN_BIT;
}

template <class F> size_t msm_scratch_bytes(uint32_t n, Windows windows) {
    return MsmScratch<F>::bytes(n, windows);
}

template <class F>
Error msm(const Affine<F> *bases, const Scalars &scalars, Windows windows, void *memory,
          Xyzz<F> *sums, Stream stream) {
    if (!is_valid(scalars, windows)) {
        return INVALID_VALUE;
    }
    const Layout layout = Layout::of(scalars.n, windows);
    const MsmScratch<F> scratch(memory, scalars.n, windows);
    Error error = sort_digits(scalars, windows, layout.total, scratch.ends, scratch.totals,
                              scratch.list, stream);
    if (error == OK) {
        error = zero(scratch.buckets, layout.total * sizeof *scratch.buckets, stream);
    }
    if (error == OK) {
        error = launch(Accumulate<F>{bases, scratch.list, scratch.ends, layout, scratch.buckets,
                                     scratch.keys[0], scratch.partials[0]},
                       div_ceil(layout.threads, Accumulate<F>::THREADS), stream);
    }
    if (error == OK) {
        error = reduce_partials(scratch, layout.partials, stream);
    }
    const uint32_t chunks = layout.chunks * windows.windows;
    if (error == OK) {
        error = launch(ReduceBuckets<F>{scratch.buckets, layout, chunks, scratch.chunks},
                       div_ceil(chunks, ReduceBuckets<F>::THREADS), stream);
    }
    if (error == OK) {
        error = sum_points(scratch.chunks, windows.windows, layout.chunks, scratch.spare, sums,
                           stream);
    }
    return error;
}

// Horner's rule, on the host.
template <class F> Jacobian<F> finish(const Xyzz<F> *sums, Windows windows) {
    Xyzz<F> result = infinity<F>();
    for (uint32_t window = windows.windows; window-- > 0;) {
        for (uint32_t bit = 0; bit < windows.bits; ++bit) {
            result = dbl(result);
        }
        result = add(result, sums[window]);
    }
    return to_jacobian(result);
}

// The files of both groups contain the kernels, too, that do not know the group.
template <class F> Error load_sums(Stream stream) {
    return load<CountDigits, ListDigits, Accumulate<F>, ReducePartials<F>, ReduceBuckets<F>,
                ScanTiles, ScanTotals, AddTotals, CountSelected, ListSelected, SumListed<F>,
                SumPoints<F>>(stream);
}

// All sums of points and all MSMs of one group.
#define CUZK_INSTANTIATE_SUMS(F)                                                                   \
    template size_t sum_scratch_bytes<F>(uint32_t);                                                \
    template Error sum(const Affine<F> *, const Query &, const uint64_t *, uint32_t, void *,       \
                       Xyzz<F> *, Stream);                                                         \
    template size_t msm_scratch_bytes<F>(uint32_t, Windows);                                       \
    template Error msm(const Affine<F> *, const Scalars &, Windows, void *, Xyzz<F> *, Stream);    \
    template Jacobian<F> finish(const Xyzz<F> *, Windows);

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
