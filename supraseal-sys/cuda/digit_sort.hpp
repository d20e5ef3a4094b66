// The counting sort of an MSM: lists the digits of all scalars by bucket.
//
// The digits are counted by bucket, the counts are summed, and each scalar's place
// and sign are listed in each of its buckets. For 2^22 scalars there are 63 M
// digits: 126 M atomic additions in 4 MB, which stay in L2, and 252 MB of scattered
// words. Digits are computed twice, because that is a multiplication and some
// shifts; keeping them would take 504 MB.
#pragma once

#include "digits.hpp"
#include "scan.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The sign of a listed digit, beside its place.
constexpr uint32_t SIGN_BIT = 1U << 31;

// Counts the digits of each bucket.
struct CountDigits {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Scalars scalars;
    Windows windows;
    uint32_t *counts; // by window and magnitude less one

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t at = block.index * THREADS + thread;
            if (at >= scalars.n ||
                (scalars.places != nullptr && scalars.places[at] == NO_BASE)) {
                return;
            }
            const uint32_t log_buckets = windows.bits - 1;
            uint32_t *const to = counts;
            for_each_digit(scalars.values[at], scalars.form, windows,
                           [&](uint32_t window, uint32_t magnitude, bool) {
                               atomic_add(to + ((window << log_buckets) + magnitude - 1), 1);
                           });
        });
    }
};

// Turns the start of each bucket into its end.
struct ListDigits {
    static constexpr uint32_t THREADS = 256;
    using Shared = Nothing;
    Scalars scalars;
    Windows windows;
    uint32_t *starts;
    uint32_t *list;

    template <class B> CUZK_BODY void run(B &block, Shared &) const {
        block.each([&](uint32_t thread) {
            const uint32_t at = block.index * THREADS + thread;
            if (at >= scalars.n) {
                return;
            }
            const uint32_t place = scalars.places == nullptr ? at : scalars.places[at];
            if (place == NO_BASE) {
                return;
            }
            const uint32_t log_buckets = windows.bits - 1;
            uint32_t *const to = starts;
            uint32_t *const listed = list;
            for_each_digit(
                scalars.values[at], scalars.form, windows,
                [&](uint32_t window, uint32_t magnitude, bool is_negative) {
                    const uint32_t slot =
                        atomic_add(to + ((window << log_buckets) + magnitude - 1), 1);
                    listed[slot] = place | (is_negative ? SIGN_BIT : 0);
                });
        });
    }
};

// Lists the digits by bucket.
inline Error sort_digits(const Scalars &scalars, Windows windows, uint32_t total, uint32_t *ends,
                         uint32_t *totals, uint32_t *list, Stream stream) {
    const uint32_t blocks = div_ceil(scalars.n, CountDigits::THREADS);
    Error error = zero(ends, size_t{total} * sizeof *ends, stream);
    if (error == OK) {
        error = launch(CountDigits{scalars, windows, ends}, blocks, stream);
    }
    if (error == OK) {
        error = scan(ends, total, totals, stream);
    }
    if (error == OK) {
        error = launch(ListDigits{scalars, windows, ends, list}, blocks, stream);
    }
    return error;
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
