// Integers of N 32-bit limbs, least first: sums with carries, and the
// Montgomery product made of them.
//
// The product (Montgomery, "Modular multiplication without trial division",
// Math. Comp. 44, 1985) adds a·b[i] and a multiple of the modulus that clears
// the lowest limb, then drops that limb, for each i. A product of two limbs is
// two limbs wide, so products of the limbs of even number follow each other
// without overlap, and so do those of odd number: `even` and `odd` are two
// accumulators, the latter one limb higher, and each row is two chains of
// multiply-adds in each. After a limb is dropped, the two change roles.
// N·(2N + 1) multiply-adds of 32 bits: 136 for 8 limbs, 300 for 12.
#pragma once

#include "launch.hpp"

namespace cuzk::device {
inline namespace CUZK_NAMESPACE {

// The plain chains: the meaning of those in `chains.cuh`.
template <int N> struct PlainChains {
    // sum += Σ a[2k]·b·2^(64k) for k < N/2; returns the carry.
    static CUZK_FN uint32_t add_products(uint32_t *sum, const uint32_t *a, uint32_t b) {
        uint64_t carry = 0;
        CUZK_UNROLL
        for (int k = 0; k < N; k += 2) {
            const uint64_t product = static_cast<uint64_t>(a[k]) * b;
            const uint64_t low = sum[k] + (product & UINT32_MAX) + carry;
            const uint64_t high = sum[k + 1] + (product >> 32) + (low >> 32);
            sum[k] = static_cast<uint32_t>(low);
            sum[k + 1] = static_cast<uint32_t>(high);
            carry = high >> 32;
        }
        return static_cast<uint32_t>(carry);
    }

    // low += sum[1]; then sum, two limbs further down and zeros above, plus the
    // products and that addition's carry. sum[0] is zero before.
    static CUZK_FN void shift_add_products(uint32_t *sum, uint32_t *low, const uint32_t *a,
                                           uint32_t b) {
        uint64_t carry = static_cast<uint64_t>(*low) + sum[1];
        *low = static_cast<uint32_t>(carry);
        carry >>= 32;
        CUZK_UNROLL
        for (int k = 0; k < N; k += 2) {
            const uint64_t product = static_cast<uint64_t>(a[k]) * b;
            const uint64_t next = k + 2 < N ? sum[k + 2] : 0;
            const uint64_t after = k + 2 < N ? sum[k + 3] : 0;
            const uint64_t lower = next + (product & UINT32_MAX) + carry;
            const uint64_t upper = after + (product >> 32) + (lower >> 32);
            sum[k] = static_cast<uint32_t>(lower);
            sum[k + 1] = static_cast<uint32_t>(upper);
            carry = upper >> 32;
        }
    }

    // a += b; returns the carry.
    static CUZK_FN uint32_t add(uint32_t *a, const uint32_t *b) {
        uint64_t carry = 0;
        CUZK_UNROLL
        for (int i = 0; i < N; ++i) {
            carry += static_cast<uint64_t>(a[i]) + b[i];
            a[i] = static_cast<uint32_t>(carry);
            carry >>= 32;
        }
        return static_cast<uint32_t>(carry);
    }

    // a −= b; returns all ones if b was larger, else 0.
    static CUZK_FN uint32_t subtract(uint32_t *a, const uint32_t *b) {
        uint64_t borrow = 0;
        CUZK_UNROLL
        for (int i = 0; i < N; ++i) {
            const uint64_t difference = static_cast<uint64_t>(a[i]) - b[i] - (borrow & 1);
            a[i] = static_cast<uint32_t>(difference);
            borrow = difference >> 32;
        }
        return static_cast<uint32_t>(borrow);
    }
};

template <int N> struct Chains;

// a := a·b / 2^(32N) modulo m, reduced. All are below m, and 2m < 2^(32N);
// inverse is −1/m modulo 2^32.
template <class C, int N>
CUZK_FN void montgomery_product(uint32_t *a, const uint32_t *b, const uint32_t *m,
                                uint32_t inverse) {
    uint32_t rows[2][N];
    CUZK_UNROLL
    for (int k = 0; k < N; k += 2) {
        const uint64_t low = static_cast<uint64_t>(a[k]) * b[0];
        const uint64_t high = static_cast<uint64_t>(a[k + 1]) * b[0];
        rows[0][k] = static_cast<uint32_t>(low);
        rows[0][k + 1] = static_cast<uint32_t>(low >> 32);
        rows[1][k] = static_cast<uint32_t>(high);
        rows[1][k + 1] = static_cast<uint32_t>(high >> 32);
    }
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        uint32_t *even = rows[i % 2];
        uint32_t *odd = rows[1 - i % 2];
        if (i > 0) {
            // `odd` was the even one of the row before.
            C::shift_add_products(odd, even, a + 1, b[i]);
            odd[N - 1] += C::add_products(even, a, b[i]);
        }
        const uint32_t multiple = even[0] * inverse;
        C::add_products(odd, m + 1, multiple);
        odd[N - 1] += C::add_products(even, m, multiple);
    }
    // even[0] is zero: what is left is odd + even / 2^32.
    const uint32_t *even = rows[(N - 1) % 2];
    uint32_t *odd = rows[N % 2];
    uint32_t rest[N];
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        rest[i] = i + 1 < N ? even[i + 1] : 0;
    }
    C::add(odd, rest);
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        a[i] = odd[i];
    }
    const uint32_t borrow = C::subtract(a, m);
    CUZK_UNROLL
    for (int i = 0; i < N; ++i) {
        a[i] = borrow != 0 ? odd[i] : a[i];
    }
}

} // namespace CUZK_NAMESPACE
} // namespace cuzk::device
